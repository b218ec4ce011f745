"""The laws about a whole command, on a store of one job: what `decide` replies, changes and leaves.

The claims are the predicates of `unswept.spec.laws` themselves, the same that the simulator and the
audit ask. The store holds the one job that a command names, or two where a law speaks of a pair;
that other jobs make no difference is an assumption (`scope.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

from attrs import evolve

from unswept.core import commands as c
from unswept.core import job as jobs
from unswept.core import lease as rules
from unswept.core import replies as r
from unswept.core import world as worlds
from unswept.core.event_log import EventLog, event_key
from unswept.core.job import Job, OnOrphan, Transport
from unswept.core.lease import Kind, Lease, RequeueRule, Status
from unswept.core.records import changed
from unswept.core.units import Ms, StoreMs
from unswept.core.values import Event, Request, Result
from unswept.core.world import Birth, DedupKey, Table, World, decide
from unswept.spec.observations import Step
from unswept.spec.theorems.drawn import Asked, Name, terms_of, unchecked
from unswept.spec.theorems.predicates import kept
from unswept.spec.theorems.steps import MOVES
from unswept.spec.theorems.theorem import Edit, Theorem, theorem

ID: Final = "j"
OTHER: Final = "k"
_NAMED: Final = {move.name: move for move in MOVES}


class Past(EventLog):
    """The events of a store, whose keys are compared one by one: a dict would need the hash of a
    drawn number."""

    def __init__(self, *events: Event) -> None:
        super().__init__()
        self._events = events

    def __getitem__(self, key: Any) -> Event:
        for event in self._events:
            if event_key(event) == key:
                return event
        raise KeyError

    def __contains__(self, key: object) -> bool:
        return any(event_key(event) == key for event in self._events)

    def __iter__(self) -> Iterator[Any]:
        return map(event_key, self._events)

    def __len__(self) -> int:
        return len(self._events)


_NOTHING: Final = Past()


def _job(lease: Lease, now: StoreMs) -> Job:
    """A job whose facts are of no consequence."""
    ended = now if lease.status in rules.TERMINAL else None
    late = StoreMs(now - 1)
    return Job(ID, lease, Transport.PROCESS, StoreMs(0), finished_at=ended, queue_deadline=late)


def _world(*held: Job, used: Collection[str] = (ID,), past: Past = _NOTHING) -> World:
    """A store of these jobs, whose ids and more have been used, with the events that they left."""
    return World(
        jobs={job.id: job for job in held},
        ids={job_id: Birth(None, StoreMs(0)) for job_id in used},
        keys={},
        requests={job.id: Request() for job in held},
        results={},
        output={},
        instances={},
        events=past,
        owned=(),
        waiting=(),
        ended=(),
    )


def _step(world: World, command: c.Command[Any], now: StoreMs) -> Step:
    """What the command comes to, as the laws look at it."""
    decision = decide(world, command, now)
    moved = [change for change in decision.changes if change.table is Table.JOBS]
    rows = [change.row for change in moved]
    was = [world.jobs.get(moved[0].key), *rows] if moved else []
    return Step(
        now=now,
        command=command,
        reply=decision.reply,
        rows=tuple(zip(was, rows, strict=False)),
        jobs=world.jobs,
        events=decision.events,
        output=any(change.table is Table.OUTPUT for change in decision.changes),
        stamps={},
        used_ids=world.ids,
        known_events=world.events,
        twin=None,
        newly_used=tuple(change.key for change in decision.changes if change.table is Table.IDS),
    )


_COMMANDS: Final[Mapping[type, Callable[[Asked], Any]]] = {
    c.Start: lambda a: unchecked(
        c.Start, job_id=ID, owner=a.owner, epoch=a.epoch, process=None, terms=terms_of(a)
    ),
    c.Complete: lambda a: unchecked(
        c.Complete, job_id=ID, owner=a.owner, epoch=a.epoch, outcome=a.outcome, result=Result()
    ),
    c.Release: lambda a: unchecked(
        c.Release, job_id=ID, owner=a.owner, epoch=a.epoch, not_before=None
    ),
    c.RequestCancel: lambda a: unchecked(c.RequestCancel, job_id=ID),
    c.Requeue: lambda a: unchecked(
        c.Requeue, job_id=ID, epoch=a.epoch, force=a.force, not_before=None, actor=None
    ),
    c.Settle: lambda a: unchecked(
        c.Settle, job_id=ID, epoch=a.epoch, outcome=a.settlement, actor=None
    ),
    c.ExpireQueued: lambda a: unchecked(c.ExpireQueued, job_id=ID),
    c.Withdraw: lambda a: unchecked(c.Withdraw, job_id=ID, owner=a.owner),
    c.Delay: lambda a: unchecked(c.Delay, job_id=ID, epoch=a.epoch, beats=a.beats, actor=None),
    c.Sweep: lambda a: unchecked(
        c.Sweep,
        sweeper="s",
        targets=(
            unchecked(c.Target, job_id=ID, epoch=a.epoch, beats=a.beats, first_seen_at=StoreMs(0)),
        ),
    ),
    c.Heartbeat: lambda a: unchecked(
        c.Heartbeat,
        instance=a.owner,
        holds=(unchecked(c.Hold, job_id=ID, epoch=a.epoch),),
        terms=terms_of(a),
        watched=(),
    ),
}


# One event for each change of status --------------------------------------------------------------


def _leaves_one_event(move: str, command: type, twin: Edit) -> Theorem:
    def claim(lease: Lease, asked: Asked) -> bool | None:
        if command is c.Complete and asked.epoch != lease.epoch:
            return None  # a stale result has a theorem of its own
        step = _step(_world(_job(lease, asked.now)), _COMMANDS[command](asked), asked.now)
        if not step.rows:
            return None if not step.events else False
        ((_, job),) = step.rows
        if job is None or len(step.events) != 1:
            return False
        (event,) = step.events
        after = job.lease
        key = (ID, after.epoch, _NAMED[move].kind(lease, after))
        if event_key(event) != key or event.status is not after.status:
            return False
        return after.status is lease.status or kept("L5", step)

    return Theorem(
        f"{move}_leaves_one_event",
        "L5",
        f"A {move} that changes the job leaves exactly one event, named after the transition, "
        "under the epoch after it; one that changes nothing leaves none.",
        claim,
        twin,
    )


def _repeats(name: str, command: type, twin: Edit) -> Theorem:
    def claim(lease: Lease, asked: Asked) -> bool | None:
        if command is c.Complete and asked.epoch != lease.epoch:
            return None  # a stale result has a theorem of its own
        world = _world(_job(lease, asked.now))
        first = decide(world, _COMMANDS[command](asked), asked.now)
        rows = [change.row for change in first.changes if change.table is Table.JOBS]
        if not rows:
            return None
        world = _world(*rows, past=Past(*first.events))
        second = _step(world, _COMMANDS[command](asked), asked.now)
        return not second.rows and not second.events

    return Theorem(
        f"a_repeated_{name}_adds_nothing",
        "L5",
        f"The same {name} once more changes nothing and leaves no event.",
        claim,
        twin,
    )


def a_stale_result_leaves_one_event(lease: Lease, asked: Asked, known: bool) -> bool | None:
    """A completion under an old epoch changes no job and leaves one event under the caller's epoch,
    unless that event is there already."""
    if not 1 <= asked.epoch < lease.epoch:
        return None
    job = _job(lease, asked.now)
    stale = worlds.stale_result(job, asked.epoch, asked.owner, asked.now)
    world = _world(job, past=Past(stale) if known else _NOTHING)
    step = _step(world, _COMMANDS[c.Complete](asked), asked.now)
    return not step.rows and step.events == (() if known else (stale,))


# A sweep acts on the job's policy ----------------------------------------------------------------


def a_requeue_by_policy_is_bounded(policy: OnOrphan, attempts: int, max_attempts: int) -> bool:
    """Only the policy requeue requeues, and only a job that was attempted less than max_attempts
    times; any other such job, and one whose policy is fail, fails; the rest stay."""
    follows = jobs.next_by_policy(policy, attempts, max_attempts)
    if policy is OnOrphan.REQUEUE:
        return follows is (Kind.REQUEUE if attempts < max_attempts else Kind.SETTLE)
    return follows is (Kind.SETTLE if policy is OnOrphan.FAIL else None)


def a_sweep_does_what_the_policy_says(
    lease: Lease, asked: Asked, policy: OnOrphan, spent: bool
) -> bool | None:
    """A swept job stays orphaned, or in the same step is requeued or failed, as its policy says;
    what moves it on fences its owner, and each of the two transitions leaves its own event. A
    requeue under a cancel request cancels it."""
    if policy is OnOrphan.REQUEUE and lease.requeue is RequeueRule.NEVER:
        return None  # refused where it is made, and by the databases' CHECK
    if lease.owner is None or lease.deadline is None or asked.epoch != lease.epoch:
        return None
    job = changed(
        _job(lease, asked.now), on_orphan=policy, attempts=2, max_attempts=2 + (not spent)
    )
    step = _step(_world(job), _COMMANDS[c.Sweep](asked), asked.now)
    if not step.rows:
        return None
    after = step.rows[-1][1]
    kinds = [event.kind for event in step.events]
    if after is None or not kept("L4", step) or not kept("L5", step):
        return False
    if policy is OnOrphan.MARK or policy is OnOrphan.HOLD:
        return after.lease.status is Status.ORPHANED and kinds == [Kind.ORPHAN]
    fenced = after.lease.epoch == lease.epoch + 1 and after.lease.owner is None
    if policy is OnOrphan.FAIL or spent:
        return fenced and after.lease.status is Status.FAILED and kinds[1:] == [Kind.SETTLE]
    back = Status.QUEUED if lease.cancel_requested_at is None else Status.CANCELED
    return fenced and after.lease.status is back and kinds[1:] == [Kind.REQUEUE]


# An id is born once -------------------------------------------------------------------------------


def a_late_enqueue_queues_nothing(
    lease: Lease, gone: bool, admitted: bool, owner: Name, now: StoreMs
) -> bool:
    """An enqueue of an id that has been used changes no row and leaves no event, whether its job
    still stands or is gone, and however it was born."""
    command = unchecked(
        c.Enqueue,
        job_id=ID,
        transport=Transport.PROCESS,
        requeue=RequeueRule.NEVER,
        request=Request(),
        partition="",
        priority=0,
        queue_deadline=None,
        not_before=None,
        labels=(),
        on_orphan=OnOrphan.MARK,
        max_attempts=None,
    )
    return _is_spent(lease, gone, owner if admitted else None, command, now)


def a_late_admit_queues_nothing(
    lease: Lease, gone: bool, first_owner: Name, asked: Asked, fresh: bool
) -> bool:
    """An admit of an id that has been used changes no row and leaves no event, whoever sends it."""
    return _is_spent(lease, gone, first_owner, _admit(ID, asked, fresh), asked.now)


def _is_spent(
    lease: Lease, gone: bool, first_owner: str | None, command: Any, now: StoreMs
) -> bool:
    job = _job(lease, now)
    world = evolve(_world(*(() if gone else (job,))), ids={ID: Birth(first_owner, StoreMs(0))})
    decision = decide(world, command, now)
    return not decision.changes and not decision.events


def a_withdrawal_spends_the_id(owner: Name, now: StoreMs) -> bool:
    """After a withdrawal of an id that never came, a late enqueue of it queues nothing."""
    withdrawn = decide(_world(used=()), unchecked(c.Withdraw, job_id=ID, owner=owner), now)
    spent = [change.key for change in withdrawn.changes if change.table is Table.IDS]
    return spent == [ID] and not withdrawn.events and len(withdrawn.changes) == 1


def a_request_before_the_birth_spends_the_id(now: StoreMs) -> bool:
    """After a cancel request for an id that has no job yet, a late enqueue of it queues nothing."""
    step = _step(_world(used=()), unchecked(c.RequestCancel, job_id=ID), now)
    return kept("L7", step) and step.newly_used == (ID,) and not step.events


# Heartbeats ---------------------------------------------------------------------------------------


def a_hold_gets_the_first_answer_that_applies(lease: Lease, asked: Asked, gone: bool) -> bool:
    """Each hold gets one answer, the first that applies: absent, fenced, terminal, orphaned,
    renewed."""
    job = _job(lease, asked.now)
    world = _world(*(() if gone else (job,)))
    return kept("L8", _step(world, _COMMANDS[c.Heartbeat](asked), asked.now))


def an_answer_bears_the_cancel_request(lease: Lease, asked: Asked) -> bool | None:
    """Every renewed or orphaned answer bears the job's first cancel request."""
    step = _step(_world(_job(lease, asked.now)), _COMMANDS[c.Heartbeat](asked), asked.now)
    (answer,) = step.reply.answers
    if answer.answer not in (r.Answer.RENEWED, r.Answer.ORPHANED):
        return None
    return bool(answer.cancel_requested_at == lease.cancel_requested_at)


def a_bad_hold_spoils_no_other(
    status: Status, owner: Name, epoch: int, deadline: StoreMs, asked: Asked, other_epoch: int
) -> bool | None:
    """What becomes of a hold is the same whether the same beat names another hold before it or not,
    whatever that one's job is."""
    if status not in rules.ACTIVE:
        return None
    good = rules.admit(asked.owner, asked.ttl_ms, asked.confirm_ms, RequeueRule.NEVER, asked.now)
    bad = changed(good, status=status, owner=owner, epoch=epoch, deadline=deadline)
    job = _job(good, asked.now)
    other = Job(OTHER, bad, Transport.PROCESS, StoreMs(0))
    mine = unchecked(c.Hold, job_id=ID, epoch=asked.epoch)
    its = unchecked(c.Hold, job_id=OTHER, epoch=other_epoch)
    alone = decide(_world(job, other), _beat(asked, mine), asked.now)
    both = decide(_world(job, other), _beat(asked, its, mine), asked.now)
    changes = tuple(change for change in both.changes if change.key == ID)
    return both.reply.answers[1] == alone.reply.answers[0] and changes == alone.changes


def _beat(asked: Asked, *holds: c.Hold) -> Any:
    return unchecked(
        c.Heartbeat, instance=asked.owner, holds=holds, terms=terms_of(asked), watched=()
    )


# Dedup --------------------------------------------------------------------------------------------


def _admit(job_id: str, asked: Asked, fresh: bool, window_ms: Ms = Ms(0)) -> Any:
    return unchecked(
        c.Admit,
        job_id=job_id,
        owner=asked.owner,
        terms=terms_of(asked),
        transport=Transport.PROCESS,
        requeue=RequeueRule.NEVER,
        request=Request(principal="p", request_key="r"),
        dedup_window_ms=window_ms,
        fresh=fresh,
        on_orphan=OnOrphan.MARK,
        max_attempts=None,
    )


def an_equal_request_gets_the_twin(
    lease: Lease, admitted_at: StoreMs, asked: Asked, window_ms: Ms
) -> bool | None:
    """An admit whose request key names a job gets that job if it was admitted within the window and
    is completed, or active and not suspect; otherwise it gets a job of its own."""
    if window_ms < 0:
        return None
    return kept("L15", _dedup(lease, admitted_at, asked, window_ms, fresh=False))


def a_fresh_request_gets_its_own_job(
    lease: Lease, admitted_at: StoreMs, asked: Asked, window_ms: Ms
) -> bool:
    """An admit that asks for a fresh job never gets another's."""
    step = _dedup(lease, admitted_at, asked, window_ms, fresh=True)
    return kept("L15", step) and isinstance(step.reply, r.Accepted)


def _dedup(lease: Lease, admitted_at: StoreMs, asked: Asked, window_ms: Ms, fresh: bool) -> Step:
    twin = changed(_job(lease, asked.now), admitted_at=admitted_at)
    world = evolve(_world(twin), keys={("p", "r"): DedupKey(ID, admitted_at)})
    command = _admit(OTHER, asked, fresh, window_ms)
    return _step(world, command, asked.now)._replace(twin=twin)


THEOREMS: Final = (
    _leaves_one_event("start", c.Start, Edit(worlds._start, "Kind.START", "Kind.ORPHAN")),
    _leaves_one_event(
        "complete",
        c.Complete,
        Edit(worlds._complete, "Kind.HEAL if healed else Kind.COMPLETE", "Kind.COMPLETE"),
    ),
    _leaves_one_event("release", c.Release, Edit(worlds._event, "after.lease.epoch", "1")),
    _leaves_one_event(
        "request_cancel",
        c.RequestCancel,
        Edit(
            worlds._ended_or_asked, "Status.CANCELED: Kind.CANCEL", "Status.CANCELED: Kind.EXPIRE"
        ),
    ),
    _leaves_one_event(
        "requeue", c.Requeue, Edit(worlds._moved_on, "done.changes, events", "done.changes, ()")
    ),
    _leaves_one_event("settle", c.Settle, Edit(worlds._settle, "Kind.SETTLE", "Kind.CANCEL")),
    _leaves_one_event("expire", c.ExpireQueued, Edit(worlds._expire, "Kind.EXPIRE", "Kind.CANCEL")),
    _leaves_one_event(
        "withdraw",
        c.Withdraw,
        Edit(worlds._ended_or_asked, "FAILED: Kind.WITHDRAW", "FAILED: Kind.CANCEL"),
    ),
    _leaves_one_event("delay", c.Delay, Edit(worlds._delay, "Kind.DELAY", "Kind.START")),
    _leaves_one_event(
        "orphan",
        c.Sweep,
        Edit(worlds._sweep, "(*events, *further)", "()"),
    ),
    _repeats(
        "completion",
        c.Complete,
        Edit(rules.complete, "MOVES[Kind.HEAL].leaves", "TERMINAL"),
    ),
    _repeats(
        "start",
        c.Start,
        Edit(rules.start, "return lease\n", "return _stamp(lease, ttl_ms, confirm_ms, now)\n"),
    ),
    _repeats(
        "cancel_request",
        c.RequestCancel,
        Edit(
            rules.request_cancel,
            "=now if lease.cancel_requested_at is None else lease.cancel_requested_at",
            "=StoreMs((lease.cancel_requested_at or 0) + 1)",
        ),
    ),
    _repeats("release", c.Release, Edit(rules.release, "fence(lease, owner, epoch)", "None")),
    _repeats("requeue", c.Requeue, Edit(rules.requeue, "_seen_orphan(lease, epoch)", "None")),
    _repeats("settlement", c.Settle, Edit(rules.settle, "_seen_orphan(lease, epoch)", "None")),
    _repeats(
        "delay",
        c.Delay,
        Edit(
            rules.delay,
            "changed(_stamp(lease, lease.ttl_ms, lease.confirm_ms, now), delayed_at=now)",
            "changed(lease, owner=lease.owner)",
        ),
    ),
    _repeats(
        "sweep",
        c.Sweep,
        Edit(rules.orphan, "status=Status.ORPHANED, deadline=None", "beats=beats"),
    ),
    theorem(
        "F2",
        a_requeue_by_policy_is_bounded,
        Edit(jobs.next_by_policy, "attempts >= max_attempts", "attempts > max_attempts"),
    ),
    theorem(
        "F2/L5",
        a_sweep_does_what_the_policy_says,
        Edit(worlds._sweep, "(*events, *further)", "tuple(events)"),
    ),
    theorem(
        "L5",
        a_stale_result_leaves_one_event,
        Edit(worlds._complete, "1 <= cmd.epoch < job.lease.epoch", "False"),
    ),
    theorem(
        "L6",
        a_late_enqueue_queues_nothing,
        Edit(worlds._enqueue, "cmd.job_id in world.ids", "cmd.job_id in world.jobs"),
    ),
    theorem(
        "L6",
        a_late_admit_queues_nothing,
        Edit(worlds._admit, "cmd.job_id in world.ids", "cmd.job_id in world.jobs"),
    ),
    theorem(
        "L6",
        a_withdrawal_spends_the_id,
        Edit(worlds._withdraw, "_spend(world, cmd.job_id, now)", "_absent(world, cmd.job_id, now)"),
    ),
    theorem(
        "L7",
        a_request_before_the_birth_spends_the_id,
        Edit(worlds._spend, "() if job_id in world.ids else (spent,)", "()"),
    ),
    theorem(
        "L8",
        a_hold_gets_the_first_answer_that_applies,
        Edit(worlds.hold_answer, "Refusal.STALE_EPOCH, Refusal.NOT_OWNER", "Refusal.NOT_OWNER,"),
    ),
    theorem(
        "L7",
        an_answer_bears_the_cancel_request,
        Edit(worlds.hold_answer, ", cancel_requested_at=asked", ""),
    ),
    theorem(
        "L8",
        a_bad_hold_spoils_no_other,
        Edit(
            worlds._heartbeat,
            "if isinstance(after, Job):",
            "if isinstance(after, Job) and len(changes) == len(answers) - 1:",
        ),
    ),
    theorem(
        "L15",
        an_equal_request_gets_the_twin,
        Edit(
            worlds.may_join,
            "job.admitted_at + window_ms >= now",
            "job.admitted_at + window_ms > now",
        ),
    ),
    theorem("L15", a_fresh_request_gets_its_own_job, Edit(worlds._admit, " and not cmd.fresh", "")),
)
