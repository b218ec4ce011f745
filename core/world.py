"""The whole store as a pure function: `decide(world, command, now)` says what a command changes.

It is the reference that every other store must equal, reply for reply. It composes the transition
functions of `unswept.core.job` with what concerns more than one row: ids that are born once, dedup
by request key, claims, and the events that a change leaves in the same step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from heapq import nsmallest
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, Generic, NamedTuple, TypeVar

from attrs import evolve, field, frozen

from unswept.core import commands as c
from unswept.core import job as jobs
from unswept.core import lease as rules
from unswept.core import outbox
from unswept.core import replies as r
from unswept.core.event_log import EventLog, event_key
from unswept.core.job import Job, OnOrphan
from unswept.core.lease import Kind, Status
from unswept.core.outbox import Consumer, DeadLetter
from unswept.core.records import changed
from unswept.core.refusal import Refusal
from unswept.core.units import Ms, StoreMs
from unswept.core.values import Cause, Chunk, Event, Instance, Request, Result

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Table(StrEnum):
    """The tables of a world, under the names that the databases use too."""

    JOBS = "jobs"
    IDS = "job_ids"
    KEYS = "dedup_keys"
    REQUESTS = "requests"
    RESULTS = "results"
    OUTPUT = "output"
    INSTANCES = "instances"
    CONSUMERS = "consumers"
    LETTERS = "dead_letters"
    EVENTS = "events"
    """A change removes all events of a job, by its id. What is added stands in a decision's
    `events`."""


@frozen
class Birth:
    """An id that has been used, for ever: what eviction leaves, and what a withdrawal spends."""

    first_owner: str | None
    """Who admitted it; None for an enqueue or a withdrawal."""
    born_at: StoreMs
    joined_to: str | None = None
    """The twin that its admit was given instead of a job of its own: a late repeat gets it too."""


@frozen
class DedupKey:
    """The newest job that was admitted under a (principal, request key)."""

    job_id: str
    admitted_at: StoreMs


KeyId = tuple[str, str]
"""(principal, request key)."""
ChunkId = tuple[int, int]
"""(epoch, chunk number)."""


LetterId = tuple[str, int]
"""(consumer, event number)."""


class Change(NamedTuple):
    """One row to put, or to remove where `row` is None."""

    table: Table
    key: Any
    row: Any


@frozen(slots=False)
class Decision(Generic[R_co]):
    """What a command comes to: the reply, and what the store must do to make it true."""

    reply: R_co
    changes: tuple[Change, ...] = ()
    events: tuple[Event, ...] = ()


@frozen
class World:
    """All rows, and three sets of job ids that only save a search: they follow from the rows."""

    jobs: Mapping[str, Job]
    ids: Mapping[str, Birth]
    keys: Mapping[KeyId, DedupKey]
    requests: Mapping[str, Request]
    results: Mapping[str, Result]
    output: Mapping[str, Mapping[ChunkId, Chunk]]
    instances: Mapping[str, Instance]
    events: EventLog
    owned: Collection[str]
    """Active jobs that have an owner."""
    waiting: Collection[str]
    """Queued jobs that are nobody's."""
    ended: Collection[str]
    """Terminal jobs."""
    consumers: Mapping[str, Consumer] = field(factory=dict)
    letters: Mapping[LetterId, DeadLetter] = field(factory=dict)

    @classmethod
    def empty(cls) -> World:
        """A store without a row."""
        return cls({}, {}, {}, {}, {}, {}, {}, EventLog(), (), (), ())

    def after(self, decision: Decision[Any]) -> World:
        """This world with a decision's changes made, as a new one."""
        tables: dict[Table, Any] = {
            table: dict(getattr(self, name)) for table, name in _TABLE_FIELDS.items()
        }
        sets: dict[str, Any] = {name: dict.fromkeys(getattr(self, name)) for name in _SETS}
        events = self.events.copy()
        make_so(decision, tables, events, sets)
        named = {name: tables[table] for table, name in _TABLE_FIELDS.items()}
        return World(**named, events=events, **sets)


_TABLE_FIELDS: Final[Mapping[Table, str]] = MappingProxyType(
    {
        Table.JOBS: "jobs",
        Table.IDS: "ids",
        Table.KEYS: "keys",
        Table.REQUESTS: "requests",
        Table.RESULTS: "results",
        Table.OUTPUT: "output",
        Table.INSTANCES: "instances",
        Table.CONSUMERS: "consumers",
        Table.LETTERS: "letters",
    }
)
_SETS: Final = ("owned", "waiting", "ended")


def make_so(
    decision: Decision[Any],
    tables: Mapping[Table, dict[Any, Any]],
    events: EventLog,
    sets: Mapping[str, dict[str, None]],
) -> None:
    """Make a decision's changes to the tables, the events, and the sets that follow from them."""
    for event in decision.events:
        events.append(event)
    for table, key, row in decision.changes:
        if table is Table.EVENTS:
            events.remove(key)
        elif row is None:
            tables[table].pop(key, None)
        else:
            tables[table][key] = row
        if table is Table.JOBS:
            classify(key, row, sets)


def classify(job_id: str, job: Job | None, sets: Mapping[str, dict[str, None]]) -> None:
    """Keep the sets `owned`, `waiting` and `ended` in step with a changed job."""
    belongs = None if job is None else _set_of(job)
    if belongs is not None and job_id in sets[belongs]:
        return  # it is in one of them at most
    for name, members in sets.items():
        if name == belongs:
            members[job_id] = None
        else:
            members.pop(job_id, None)


def _set_of(job: Job) -> str | None:
    if job.lease.status in rules.ACTIVE:
        return "waiting" if job.lease.owner is None else "owned"
    return "ended" if job.lease.status in rules.TERMINAL else None


def decide(world: World, command: c.Command[R], now: StoreMs) -> Decision[R]:
    """What `command` comes to in `world` at store time `now`: pure, and total for made commands."""
    decision: Decision[R] = _DECIDERS[type(command)](world, command, now)
    return decision


# Instances --------------------------------------------------------------------------------------


def _register(world: World, cmd: c.Register, now: StoreMs) -> Decision[r.Registered]:
    known = world.instances.get(cmd.instance)
    claim_no = cmd.claim_no if known is None else max(cmd.claim_no, known.claim_no)
    since = now if known is None or known.gone_at is not None else known.registered_at
    facts = (cmd.role, cmd.host, cmd.pid, since, now, claim_no, cmd.max_held)
    row = Instance(cmd.instance, *facts)
    return Decision(r.Registered(now, claim_no), (Change(Table.INSTANCES, cmd.instance, row),))


def _deregister(world: World, cmd: c.Deregister, now: StoreMs) -> Decision[r.Deregistered]:
    known = _registered(world, cmd.instance)
    return Decision(r.Deregistered(now), () if known is None else (_taken_away(known, now),))


def _registered(world: World, name: str) -> Instance | None:
    row = world.instances.get(name)
    return None if row is None or row.gone_at is not None else row


def _taken_away(row: Instance, now: StoreMs) -> Change:
    """What is left of an instance that is gone: if it has claimed, its last number, for ever. A
    Register and a Claim of it that come late must take nothing. (F1)"""
    left = None if row.claim_no == 0 else changed(row, gone_at=now)
    return Change(Table.INSTANCES, row.id, left)


def _list_instances(world: World, cmd: c.ListInstances, now: StoreMs) -> Decision[r.Instances]:
    rows = (world.instances[name] for name in sorted(world.instances))
    return Decision(r.Instances(now, tuple(row for row in rows if row.gone_at is None)))


# Two ways in ------------------------------------------------------------------------------------


def _admit(world: World, cmd: c.Admit, now: StoreMs) -> Decision[r.Accepted | r.Joined | r.Refused]:
    if cmd.job_id in world.ids:
        return _born_before(world, cmd.job_id, cmd.owner, now)
    key = _dedup_key(cmd.request)
    if key is not None and not cmd.fresh:
        twin = _twin(world, key, cmd.dedup_window_ms, now)
        if twin is not None:
            used = Change(Table.IDS, cmd.job_id, Birth(cmd.owner, now, twin.id))
            return Decision(r.Joined(now, r.Standing.of(twin)), (used,))
    job = jobs.admit(
        cmd.job_id,
        cmd.owner,
        cmd.transport,
        cmd.requeue,
        cmd.on_orphan,
        cmd.max_attempts,
        cmd.terms,
        now,
    )
    keyed = () if key is None else (Change(Table.KEYS, key, DedupKey(cmd.job_id, now)),)
    return _born(job, cmd.owner, cmd.request, Kind.ADMIT, now, keyed)


def _enqueue(world: World, cmd: c.Enqueue, now: StoreMs) -> Decision[c.Outcome]:
    if cmd.job_id in world.ids:
        return _born_before(world, cmd.job_id, None, now)
    job = jobs.enqueue(
        cmd.job_id,
        cmd.transport,
        cmd.requeue,
        cmd.on_orphan,
        cmd.max_attempts,
        cmd.partition,
        cmd.priority,
        cmd.queue_deadline,
        cmd.not_before,
        cmd.labels,
        now,
    )
    return _born(job, None, cmd.request, Kind.ENQUEUE, now, ())


def _born(
    job: Job,
    first_owner: str | None,
    request: Request,
    kind: Kind,
    now: StoreMs,
    keyed: tuple[Change, ...],
) -> Decision[Any]:
    changes = (
        Change(Table.IDS, job.id, Birth(first_owner, now)),
        Change(Table.JOBS, job.id, job),
        Change(Table.REQUESTS, job.id, request),
        *keyed,
    )
    return Decision(
        r.Accepted(now, r.Standing.of(job), kind), changes, (_event(kind, None, job, now),)
    )


def _born_before(world: World, job_id: str, first_owner: str | None, now: StoreMs) -> Decision[Any]:
    """An id is used once, ever: its first owner repeats, anybody else is refused. (L6)"""
    birth = world.ids[job_id]
    job = world.jobs.get(birth.joined_to or job_id)
    if job is None:
        return Decision(r.Refused(now, Refusal.SPENT, None))
    if birth.joined_to is not None:
        own = birth.first_owner == first_owner
        joined = r.Joined(now, r.Standing.of(job))
        return Decision(joined if own else r.Refused(now, Refusal.ID_USED, None))
    if birth.first_owner != first_owner:
        return _refused(Refusal.ID_USED, job, now)
    return _repeated(job, now)


def _dedup_key(request: Request) -> KeyId | None:
    if request.principal is None or request.request_key is None:
        return None
    return (request.principal, request.request_key)


def _twin(world: World, key: KeyId, window_ms: Ms, now: StoreMs) -> Job | None:
    """The newest job under this key, if it may be handed out. (L15)"""
    row = world.keys.get(key)
    job = None if row is None else world.jobs.get(row.job_id)
    if job is None or not may_join(job, window_ms, now):
        return None
    return job


def may_join(job: Job, window_ms: Ms, now: StoreMs) -> bool:
    """May an equal request get this job? Completed, or active and not suspect, and admitted within
    the window, whose last millisecond counts; a window of 0 joins nothing. (L15)"""
    alive = job.lease.status in rules.ACTIVE and not rules.is_suspect(job.lease, now)
    handed_out = alive or job.lease.status is Status.COMPLETED
    return handed_out and window_ms > 0 and job.admitted_at + window_ms >= now


def _withdraw(
    world: World, cmd: c.Withdraw, now: StoreMs
) -> Decision[r.Accepted | r.Withdrawn | r.Refused]:
    job = world.jobs.get(cmd.job_id)
    if job is None:
        return _spend(world, cmd.job_id, now)
    return _ended_or_asked(job, jobs.withdraw(job, cmd.owner, now), now, cmd.owner)


def _spend(world: World, job_id: str, now: StoreMs) -> Decision[r.Withdrawn]:
    """Nothing is there to end, or not yet: nothing will be under this id. (L6, L7)"""
    spent = Change(Table.IDS, job_id, Birth(None, now))
    changes = () if job_id in world.ids else (spent,)
    return Decision(r.Withdrawn(now, job_id), changes)


def _claim(world: World, cmd: c.Claim, now: StoreMs) -> Decision[r.Claimed | r.Refused]:
    instance = _registered(world, cmd.owner)
    if instance is None:
        return Decision(r.Refused(now, Refusal.NOT_REGISTERED, None))
    if cmd.claim_no <= instance.claim_no:
        held = sorted(job_id for job_id in world.owned if _claimed_by(world.jobs[job_id], cmd))
        grants = tuple(_grant(world, world.jobs[job_id]) for job_id in held)
        return Decision(r.Claimed(now, grants, repeated=True))
    numbered = changed(instance, claim_no=cmd.claim_no, seen_at=now)
    counted = Change(Table.INSTANCES, cmd.owner, numbered)
    room = cmd.limit
    if instance.max_held is not None:
        count = sum(1 for job_id in world.owned if _holds_by_claim(world.jobs[job_id], cmd.owner))
        room = claim_room(cmd.limit, instance.max_held, count)
    if room == 0:
        return Decision(r.Refused(now, Refusal.BUDGET, None), (counted,))
    waiting = (world.jobs[job_id] for job_id in world.waiting)
    offered = frozenset(cmd.labels)
    ready = (
        job
        for job in waiting
        if may_claim(job, cmd.partition, now) and offered.issuperset(job.labels)
    )
    before = nsmallest(room, ready, key=claim_order)
    after = [jobs.claim(job, cmd.owner, cmd.claim_no, cmd.terms, now) for job in before]
    taken = [(was, job) for was, job in zip(before, after, strict=True) if isinstance(job, Job)]
    return Decision(
        r.Claimed(now, tuple(_grant(world, job) for _, job in sorted(taken, key=_by_id)), False),
        (
            counted,
            *(Change(Table.JOBS, job.id, job) for _, job in taken),
        ),
        tuple(_event(Kind.CLAIM, was, job, now, actor=cmd.owner) for was, job in taken),
    )


def may_claim(job: Job, partition: str, now: StoreMs) -> bool:
    """Is this waiting job to be had in this partition now?"""
    ready = job.not_before is None or job.not_before <= now
    return ready and job.partition == partition and job.lease.cancel_requested_at is None


def claim_room(limit: int, max_held: int, held: int) -> int:
    """How many jobs a claim may take within its owner's budget."""
    return max(0, min(limit, max_held - held))


def claim_order(job: Job) -> tuple[int, StoreMs, str]:
    """Lowest priority number first, then the oldest, then by id."""
    return (job.priority, job.admitted_at, job.id)


def _by_id(pair: tuple[Job, Job]) -> str:
    return pair[1].id


def _claimed_by(job: Job, cmd: c.Claim) -> bool:
    return job.lease.owner == cmd.owner and job.claim_no == cmd.claim_no


def _holds_by_claim(job: Job, owner: str) -> bool:
    return job.lease.owner == owner and job.claim_no is not None


def _grant(world: World, job: Job) -> r.Grant:
    facts = (job.transport, job.lease.requeue, job.attempts)
    return r.Grant(r.Standing.of(job), *facts, world.requests[job.id])


# What an owner says, under its epoch ------------------------------------------------------------


def _start(world: World, cmd: c.Start, now: StoreMs) -> Decision[c.Outcome]:
    job = world.jobs.get(cmd.job_id)
    if job is None:
        return _absent(world, cmd.job_id, now)
    after = jobs.start(job, cmd.owner, cmd.epoch, cmd.process, cmd.terms, now)
    if isinstance(after, Refusal):
        return _refused(after, job, now)
    if after.lease is job.lease:
        changes = () if after == job else (Change(Table.JOBS, job.id, after),)
        return Decision(r.Accepted(now, r.Standing.of(after), None), changes)
    return _done(Kind.START, job, after, now, cmd.owner)


def _heartbeat(world: World, cmd: c.Heartbeat, now: StoreMs) -> Decision[r.Beaten]:
    changes: list[Change] = []
    answers: list[r.HoldAnswer] = []
    for hold in cmd.holds:
        job = world.jobs.get(hold.job_id)
        if job is None:
            answers.append(r.HoldAnswer(hold.job_id, hold.epoch, r.Answer.ABSENT))
            continue
        after = jobs.renew(job, cmd.instance, hold.epoch, cmd.terms, now)
        answers.append(hold_answer(job, hold.epoch, after))
        if isinstance(after, Job):
            changes.append(Change(Table.JOBS, job.id, after))
    instance = _registered(world, cmd.instance)
    if instance is not None:
        changes.append(Change(Table.INSTANCES, instance.id, changed(instance, seen_at=now)))
    return Decision(r.Beaten(now, tuple(answers), (), instance is not None), tuple(changes))


def hold_answer(job: Job, epoch: int, renewed: Job | Refusal) -> r.HoldAnswer:
    """The answer to one hold, from the job as it was and what its renewal came to. (L7, L8)"""
    if isinstance(renewed, Job):
        lease = renewed.lease
        return r.HoldAnswer(
            job.id, epoch, r.Answer.RENEWED, lease.deadline, lease.cancel_requested_at
        )
    if renewed is Refusal.ORPHANED:
        asked = job.lease.cancel_requested_at
        return r.HoldAnswer(job.id, epoch, r.Answer.ORPHANED, cancel_requested_at=asked)
    fenced = renewed in (Refusal.STALE_EPOCH, Refusal.NOT_OWNER)
    return r.HoldAnswer(job.id, epoch, r.Answer.FENCED if fenced else r.Answer.TERMINAL)


def _output(world: World, cmd: c.Output, now: StoreMs) -> Decision[c.Outcome]:
    job = world.jobs.get(cmd.job_id)
    if job is None:
        return _absent(world, cmd.job_id, now)
    if refusal := rules.fence(job.lease, cmd.owner, cmd.epoch):
        return _refused(refusal, job, now)
    chunks = world.output.get(cmd.job_id, {})
    number = (cmd.epoch, cmd.chunk.chunk)
    if number in chunks:
        return _repeated(job, now)
    refusal = rules.may_append(
        job.lease, cmd.owner, cmd.epoch, job.finished_at, cmd.late_output_ms, now
    )
    if refusal is not None:
        return _refused(refusal, job, now)
    row = {**chunks, number: cmd.chunk}
    reply = r.Accepted(now, r.Standing.of(job), Kind.OUTPUT)
    return Decision(reply, (Change(Table.OUTPUT, job.id, row),))


def _complete(world: World, cmd: c.Complete, now: StoreMs) -> Decision[c.Outcome]:
    job = world.jobs.get(cmd.job_id)
    if job is None:
        return _absent(world, cmd.job_id, now)
    after = jobs.complete(job, cmd.owner, cmd.epoch, cmd.outcome, now)
    if isinstance(after, Job):
        healed = job.lease.status is Status.ORPHANED
        kind = Kind.HEAL if healed else Kind.COMPLETE
        row = Change(Table.RESULTS, job.id, cmd.result)
        return _done(kind, job, after, now, cmd.owner, row)
    if after is Refusal.ALREADY_TERMINAL and _completed_so(world, job, cmd):
        return _repeated(job, now)
    events: tuple[Event, ...] = ()
    if 1 <= cmd.epoch < job.lease.epoch:
        stale = stale_result(job, cmd.epoch, cmd.owner, now)
        events = () if event_key(stale) in world.events else (stale,)
    return Decision(r.Refused(now, after, r.Standing.of(job)), events=events)


def _completed_so(world: World, job: Job, cmd: c.Complete) -> bool:
    """Was it a completion under this epoch that ended the job so? A withdrawal stored no result."""
    kinds = (Kind.COMPLETE, Kind.HEAL)
    done = any((job.id, cmd.epoch, kind) in world.events for kind in kinds)
    return done and job.lease.status is cmd.outcome


def stale_result(job: Job, epoch: int, owner: str, now: StoreMs) -> Event:
    """The one event that a late completion under an old epoch leaves. (L3, L5)"""
    return Event(
        job.id,
        epoch,
        Kind.STALE_RESULT,
        now,
        job.lease.status,
        job.lease.owner,
        actor=owner,
        beats=job.lease.beats,
        deadline=job.lease.deadline,
        beat_at=job.beat_at,
    )


def _release(world: World, cmd: c.Release, now: StoreMs) -> Decision[c.Outcome]:
    job = world.jobs.get(cmd.job_id)
    if job is None:
        return _absent(world, cmd.job_id, now)
    after = jobs.release(job, cmd.owner, cmd.epoch, cmd.not_before, now)
    if isinstance(after, Refusal) and not _released_by(world, cmd):
        return _refused(after, job, now)
    return _moved_on(world, Kind.RELEASE, cmd.epoch, job, after, now, cmd.owner)


def _released_by(world: World, cmd: c.Release) -> bool:
    """Did this very owner release that hold? A stranger's release is no repeat of it. (L3)"""
    event = world.events.get((cmd.job_id, cmd.epoch + 1, Kind.RELEASE))
    return event is not None and event.actor == cmd.owner


# What anybody may say ---------------------------------------------------------------------------


def _request_cancel(
    world: World, cmd: c.RequestCancel, now: StoreMs
) -> Decision[r.Accepted | r.Withdrawn | r.Refused]:
    job = world.jobs.get(cmd.job_id)
    if job is None:
        return _spend(world, cmd.job_id, now)
    if job.lease.status is Status.CANCELED:
        return _repeated(job, now)
    return _ended_or_asked(job, jobs.request_cancel(job, now), now, None)


def _requeue(world: World, cmd: c.Requeue, now: StoreMs) -> Decision[c.Outcome]:
    job = world.jobs.get(cmd.job_id)
    if job is None:
        return _absent(world, cmd.job_id, now)
    after = jobs.requeue(job, cmd.epoch, cmd.force, cmd.not_before, now)
    forced = job.lease.requeue is rules.RequeueRule.NEVER
    return _moved_on(world, Kind.REQUEUE, cmd.epoch, job, after, now, cmd.actor, forced)


def _settle(world: World, cmd: c.Settle, now: StoreMs) -> Decision[c.Outcome]:
    job = world.jobs.get(cmd.job_id)
    if job is None:
        return _absent(world, cmd.job_id, now)
    after = jobs.settle(job, cmd.epoch, cmd.outcome, now)
    if isinstance(after, Refusal) and job.lease.status is not cmd.outcome:
        return _refused(after, job, now)
    return _moved_on(world, Kind.SETTLE, cmd.epoch, job, after, now, cmd.actor)


def _expire(world: World, cmd: c.ExpireQueued, now: StoreMs) -> Decision[c.Outcome]:
    job = world.jobs.get(cmd.job_id)
    if job is None:
        return _absent(world, cmd.job_id, now)
    if job.lease.status is Status.EXPIRED:
        return _repeated(job, now)
    after = jobs.expire(job, now)
    if isinstance(after, Refusal):
        return _refused(after, job, now)
    return _done(Kind.EXPIRE, job, after, now, None)


# What a sweeper says ----------------------------------------------------------------------------


def _suspects(world: World, cmd: c.Suspects, now: StoreMs) -> Decision[r.SuspectsPage]:
    held = len(world.owned) if cmd.counted else None
    suspects = sorted(
        job_id
        for job_id in world.owned
        if (cmd.after is None or job_id > cmd.after)
        and rules.is_suspect(world.jobs[job_id].lease, now)
    )
    page = tuple(_suspect(world.jobs[job_id]) for job_id in suspects[: cmd.limit])
    return Decision(r.SuspectsPage(now, page, more=len(suspects) > cmd.limit, held=held))


def _suspect(job: Job) -> r.Suspect:
    lease = job.lease
    assert lease.owner is not None and lease.deadline is not None
    assert lease.ttl_ms is not None and lease.confirm_ms is not None  # well-formed, as owned
    return r.Suspect(
        job.id,
        lease.owner,
        lease.epoch,
        lease.beats,
        lease.deadline,
        lease.ttl_ms,
        lease.confirm_ms,
        lease.requeue,
        lease.delayed_at is not None,
        job.process,
    )


def _delay(world: World, cmd: c.Delay, now: StoreMs) -> Decision[c.Outcome]:
    job = world.jobs.get(cmd.job_id)
    if job is None:
        return _absent(world, cmd.job_id, now)
    after = jobs.delay(job, cmd.epoch, cmd.beats, now)
    if isinstance(after, Refusal):
        return _refused(after, job, now)
    return _done(Kind.DELAY, job, after, now, cmd.actor)


def _sweep(world: World, cmd: c.Sweep, now: StoreMs) -> Decision[r.Swept]:
    answers: list[r.SweepAnswer] = []
    changes: list[Change] = []
    events: list[Event] = []
    further: list[Event] = []  # after them all, as a database writes them
    for target in cmd.targets:
        job = world.jobs.get(target.job_id)
        if job is None:
            refusal = _absence(world, target.job_id)
            answers.append(r.SweepAnswer(target.job_id, refusal))
            continue
        after = jobs.orphan(job, target.epoch, target.beats, now)
        if isinstance(after, Refusal):
            repeated = swept_before(job, target)
            answers.append(r.SweepAnswer(job.id, None if repeated else after, repeated))
            continue
        answers.append(r.SweepAnswer(job.id, None))
        changes.append(Change(Table.JOBS, job.id, after))
        event = _event(Kind.ORPHAN, job, after, now, actor=cmd.sweeper)
        owner = job.lease.owner
        known = owner is not None and _registered(world, owner) is not None
        cause = sweep_cause(job.on_orphan, job.lease.cancel_requested_at, known)
        events.append(changed(event, first_seen_at=target.first_seen_at, cause=cause))
        kind = jobs.next_by_policy(job.on_orphan, job.attempts, job.max_attempts)
        ended = after if kind is None else jobs.by_policy(after, kind, now)
        if kind is not None and isinstance(ended, Job):
            changes.append(Change(Table.JOBS, job.id, ended))
            event = _event(kind, after, ended, now, actor=cmd.sweeper)
            further.append(changed(event, cause=policy_cause(job.on_orphan, kind, cause)))
    return Decision(r.Swept(now, tuple(answers)), tuple(changes), (*events, *further))


def sweep_cause(on_orphan: OnOrphan, asked_at: StoreMs | None, owner_known: bool) -> Cause:
    """Why a job was orphaned, as its event says it."""
    if on_orphan is OnOrphan.HOLD:
        return Cause.OUTCOME_UNKNOWN
    if asked_at is not None:
        return Cause.CANCELED
    return Cause.LEASE_EXPIRED if owner_known else Cause.OWNER_LOST


def policy_cause(on_orphan: OnOrphan, kind: Kind, cause: Cause) -> Cause:
    """Why its policy did to the orphan what it did: as it was orphaned, or for all attempts were
    spent."""
    spent = on_orphan is OnOrphan.REQUEUE and kind is Kind.SETTLE
    return Cause.ATTEMPTS_SPENT if spent else cause


def swept_before(job: Job, target: c.Target) -> bool:
    """Is this target the orphan that an earlier execution of the same sweep made?"""
    lease = job.lease
    seen = (lease.epoch, lease.beats) == (target.epoch, target.beats)
    return seen and lease.status is Status.ORPHANED


def _look_overdue(world: World, cmd: c.LookOverdue, now: StoreMs) -> Decision[r.Overdue]:
    ended = (world.jobs[job_id] for job_id in world.ended)
    old = (j for j in ended if j.finished_at is not None and j.finished_at + cmd.retention_ms < now)
    waiting = (world.jobs[job_id] for job_id in world.waiting)
    late = (j for j in waiting if j.queue_deadline is not None and j.queue_deadline < now)
    silent = (i for i in world.instances.values() if _is_silent(i, cmd.instance_gc_ms, now))
    aged = (
        (key, row) for key, row in world.keys.items() if row.admitted_at + cmd.dedup_window_ms < now
    )
    return Decision(
        r.Overdue(
            now,
            tuple(
                (j.id, j.lease.epoch)
                for j in nsmallest(cmd.limit, old, key=lambda j: (j.finished_at, j.id))
            ),
            tuple(
                (j.id, j.lease.epoch)
                for j in nsmallest(cmd.limit, late, key=lambda j: (j.queue_deadline, j.id))
            ),
            tuple((i.id, i.seen_at) for i in nsmallest(cmd.limit, silent, key=lambda i: i.id)),
            tuple(
                (*key, row.job_id) for key, row in nsmallest(cmd.limit, aged, key=lambda k: k[0])
            ),
            _past_events(world, cmd, now),
        )
    )


def _past_events(world: World, cmd: c.LookOverdue, now: StoreMs) -> tuple[str, ...]:
    if cmd.event_retention_ms is None:
        return ()
    past = _forgettable(world, cmd.event_retention_ms, now)
    oldest = nsmallest(cmd.limit, past, key=lambda pair: (pair[1].at, pair[0]))
    return tuple(event.job_id for _, event in oldest)


def _forgettable(world: World, event_retention_ms: Ms, now: StoreMs) -> Iterator[tuple[int, Event]]:
    """The evictions, with their numbers, of the jobs whose events may go."""
    newest = world.events.newest
    letters = {number for _, number in world.letters}
    told = tuple(world.events.behind(0))
    given_up = {event.job_id for number, event in told if number in letters}
    behind = min((row.position for row in world.consumers.values()), default=newest)
    for number, event in told:
        if event.kind is Kind.EVICT:
            dead = event.job_id in given_up
            if outbox.may_forget(number, event.at, newest, behind, dead, event_retention_ms, now):
                yield number, event


def _evict(world: World, cmd: c.Evict, now: StoreMs) -> Decision[r.Evicted]:
    answers: list[r.SweepAnswer] = []
    changes: list[Change] = []
    events: list[Event] = []
    for target in cmd.targets:
        job = world.jobs.get(target.job_id)
        if job is None:
            why = _absence(world, target.job_id)
            gone = why is Refusal.SPENT
            answers.append(r.SweepAnswer(target.job_id, None if gone else why, gone))
            continue
        refusal = rules.may_evict(job.lease, target.epoch, job.finished_at, cmd.retention_ms, now)
        answers.append(r.SweepAnswer(job.id, refusal))
        if refusal is None:
            changes += [Change(table, job.id, None) for table in _EVICTED]
            events.append(_event(Kind.EVICT, job, job, now))
    return Decision(r.Evicted(now, tuple(answers)), tuple(changes), tuple(events))


_EVICTED: Final = (Table.JOBS, Table.REQUESTS, Table.RESULTS, Table.OUTPUT)


def _forget_instances(world: World, cmd: c.ForgetInstances, now: StoreMs) -> Decision[r.Forgotten]:
    rows = ((world.instances.get(name), seen_at) for name, seen_at in cmd.seen)
    changes = tuple(
        _taken_away(row, now)
        for row, seen_at in rows
        if row is not None and row.seen_at == seen_at and _is_silent(row, cmd.instance_gc_ms, now)
    )
    return Decision(r.Forgotten(now, len(changes)), changes)


def _is_silent(row: Instance, instance_gc_ms: Ms, now: StoreMs) -> bool:
    return row.gone_at is None and row.seen_at + instance_gc_ms < now


def _forget_keys(world: World, cmd: c.ForgetKeys, now: StoreMs) -> Decision[r.Forgotten]:
    rows = (((who, key), job_id, world.keys.get((who, key))) for who, key, job_id in cmd.seen)
    gone = [
        key
        for key, job_id, row in rows
        if row is not None and row.job_id == job_id and row.admitted_at + cmd.dedup_window_ms < now
    ]
    changes = tuple(Change(Table.KEYS, key, None) for key in gone)
    return Decision(r.Forgotten(now, len(gone)), changes)


def _forget_events(world: World, cmd: c.ForgetEvents, now: StoreMs) -> Decision[r.Forgotten]:
    may_go = {event.job_id for _, event in _forgettable(world, cmd.event_retention_ms, now)}
    gone = [job_id for job_id in cmd.job_ids if job_id in may_go]
    changes = tuple(Change(Table.EVENTS, job_id, None) for job_id in gone)
    return Decision(r.Forgotten(now, len(gone)), changes)


# What readers ask -------------------------------------------------------------------------------


def _find(world: World, cmd: c.Find, now: StoreMs) -> Decision[r.Found | r.Refused]:
    job = world.jobs.get(cmd.job_id)
    if job is None:
        return _absent(world, cmd.job_id, now)
    request = world.requests[job.id]
    result = world.results.get(job.id)
    return Decision(r.Found(now, job, request.principal, request.request_key, result))


def _read_request(
    world: World, cmd: c.ReadRequest, now: StoreMs
) -> Decision[r.RequestRead | r.Refused]:
    request = world.requests.get(cmd.job_id)
    if request is None:
        return _absent(world, cmd.job_id, now)
    return Decision(r.RequestRead(now, request))


def _read_output(
    world: World, cmd: c.ReadOutput, now: StoreMs
) -> Decision[r.OutputPage | r.Refused]:
    job = world.jobs.get(cmd.job_id)
    if job is None:
        return _absent(world, cmd.job_id, now)
    epoch = job.lease.epoch if cmd.epoch is None else cmd.epoch
    chunks = world.output.get(cmd.job_id, {})
    wanted = sorted(n for n in chunks if n[0] == epoch and n[1] >= cmd.first)
    page = tuple(chunks[number] for number in wanted[: cmd.limit])
    return Decision(r.OutputPage(now, epoch, page, more=len(wanted) > cmd.limit))


def _read_events(world: World, cmd: c.ReadEvents, now: StoreMs) -> Decision[r.EventsPage]:
    page = tuple(islice(world.events.behind(cmd.after), cmd.limit))
    next_after = page[-1][0] if page else cmd.after
    return Decision(r.EventsPage(now, tuple(event for _, event in page), next_after))


def _count(world: World, cmd: c.Count, now: StoreMs) -> Decision[r.Counts]:
    rows: dict[str, r.PartitionCount] = {}
    for job in world.jobs.values():
        if job.lease.status not in rules.TERMINAL:
            row = rows.get(job.partition, r.PartitionCount(job.partition))
            rows[job.partition] = _counted(row, job)
    return Decision(r.Counts(now, counts_of(rows, cmd.partitions)))


def _counted(row: r.PartitionCount, job: Job) -> r.PartitionCount:
    if job.lease.status is Status.ORPHANED:
        return evolve(row, orphaned=row.orphaned + 1)
    if job.lease.status is Status.RUNNING:
        return evolve(row, running=row.running + 1)
    if job.lease.owner is not None:
        return evolve(row, queued=row.queued + 1)
    oldest = job.admitted_at if row.oldest_at is None else min(row.oldest_at, job.admitted_at)
    return evolve(row, waiting=row.waiting + 1, oldest_at=oldest)


def counts_of(
    rows: Mapping[str, r.PartitionCount], wanted: tuple[str, ...] | None
) -> tuple[r.PartitionCount, ...]:
    """The counts of the partitions that were asked for; those that have no such jobs are zero."""
    names = sorted(rows) if wanted is None else wanted
    return tuple(rows.get(name, r.PartitionCount(name)) for name in names)


# What consumers of events say -------------------------------------------------------------------


def _lease_events(
    world: World, cmd: c.LeaseEvents, now: StoreMs
) -> Decision[r.EventsLeased | r.Refused]:
    known = world.consumers.get(cmd.consumer)
    row = outbox.grant(known, cmd.consumer, cmd.holder, cmd.lease_ms, now)
    if isinstance(row, Refusal):
        return Decision(r.Refused(now, row, None))
    return Decision(leased(known, row, now), (Change(Table.CONSUMERS, row.name, row),))


def leased(known: Consumer | None, row: Consumer, now: StoreMs) -> r.EventsLeased:
    """What a grant comes to."""
    renewed = known is not None and known.token == row.token
    return r.EventsLeased(now, row.token, row.position, row.attempts, row.expires_at, renewed)


def _acknowledge(
    world: World, cmd: c.Acknowledge, now: StoreMs
) -> Decision[r.Acknowledged | r.Refused]:
    known = world.consumers.get(cmd.consumer)
    if known is None:
        return Decision(r.Refused(now, Refusal.ABSENT, None))
    row = outbox.acknowledge(known, cmd.token, cmd.upto, world.events.newest, cmd.last)
    if isinstance(row, Refusal):
        return Decision(r.Refused(now, row, None))
    changes = [] if row == known else [Change(Table.CONSUMERS, row.name, row)]
    moved = row.position > known.position
    if moved and cmd.error is not None:
        letter = DeadLetter(row.name, row.position, now, known.attempts, cmd.error)
        changes.append(Change(Table.LETTERS, (row.name, row.position), letter))
    return Decision(r.Acknowledged(now, row.position, repeated=not moved), tuple(changes))


def _forget_consumer(
    world: World, cmd: c.ForgetConsumer, now: StoreMs
) -> Decision[r.Forgotten | r.Refused]:
    known = world.consumers.get(cmd.consumer)
    if known is None:
        return Decision(r.Forgotten(now, 0))
    if outbox.is_leased(known, now):
        return Decision(r.Refused(now, Refusal.LEASED, None))
    letters = (key for key in world.letters if key[0] == cmd.consumer)
    changes = (
        Change(Table.CONSUMERS, cmd.consumer, None),
        *(Change(Table.LETTERS, key, None) for key in letters),
    )
    return Decision(r.Forgotten(now, 1), changes)


def _list_consumers(world: World, cmd: c.ListConsumers, now: StoreMs) -> Decision[r.Consumers]:
    rows = tuple(world.consumers[name] for name in sorted(world.consumers))
    return Decision(r.Consumers(now, world.events.newest, rows))


def _read_dead_letters(
    world: World, cmd: c.ReadDeadLetters, now: StoreMs
) -> Decision[r.DeadLettersPage]:
    wanted = sorted(key for key in world.letters if key[0] == cmd.consumer and key[1] > cmd.after)
    page = tuple(world.letters[key] for key in wanted[: cmd.limit])
    return Decision(r.DeadLettersPage(now, page, more=len(wanted) > cmd.limit))


# What the deciders share ------------------------------------------------------------------------


def _event(
    kind: Kind, before: Job | None, after: Job, now: StoreMs, actor: str | None = None
) -> Event:
    """What a transition leaves behind: who held the job, and how its lease stood before."""
    held = after if before is None or before.lease.owner is None else before
    return Event(
        after.id,
        after.lease.epoch,
        kind,
        now,
        after.lease.status,
        held.lease.owner,
        actor=actor,
        beats=after.lease.beats,
        deadline=None if before is None else before.lease.deadline,
        beat_at=None if before is None else before.beat_at,
    )


def _done(
    kind: Kind,
    before: Job,
    after: Job,
    now: StoreMs,
    actor: str | None,
    *more: Change,
) -> Decision[Any]:
    return Decision(
        r.Accepted(now, r.Standing.of(after), kind),
        (Change(Table.JOBS, after.id, after), *more),
        (_event(kind, before, after, now, actor),),
    )


def _ended_or_asked(
    job: Job, after: Job | Refusal, now: StoreMs, actor: str | None
) -> Decision[Any]:
    """A cancel or a withdrawal: it ended the job, or asked its owner, or had asked before."""
    if isinstance(after, Refusal):
        return _refused(after, job, now)
    if after == job:
        return _repeated(job, now)
    kind = {Status.FAILED: Kind.WITHDRAW, Status.CANCELED: Kind.CANCEL}.get(
        after.lease.status, Kind.REQUEST_CANCEL
    )
    return _done(kind, job, after, now, actor)


def _moved_on(
    world: World,
    kind: Kind,
    epoch: int,
    job: Job,
    after: Job | Refusal,
    now: StoreMs,
    actor: str | None,
    forced: bool = False,
) -> Decision[Any]:
    """A release, requeue or settlement: its own event under the next epoch shows a repeat."""
    if isinstance(after, Job):
        done = _done(kind, job, after, now, actor)
        events = tuple(changed(event, forced=forced) for event in done.events)
        return Decision(done.reply, done.changes, events)
    stands = job.lease.epoch == epoch + 1 and (job.id, epoch + 1, kind) in world.events
    return _repeated(job, now) if stands else _refused(after, job, now)


def _repeated(job: Job, now: StoreMs) -> Decision[Any]:
    return Decision(r.Accepted(now, r.Standing.of(job), None))


def _refused(reason: Refusal, job: Job, now: StoreMs) -> Decision[Any]:
    return Decision(r.Refused(now, reason, r.Standing.of(job)))


def _absent(world: World, job_id: str, now: StoreMs) -> Decision[Any]:
    return Decision(r.Refused(now, _absence(world, job_id), None))


def _absence(world: World, job_id: str) -> Refusal:
    return Refusal.SPENT if job_id in world.ids else Refusal.ABSENT


_Decider = Callable[[World, Any, StoreMs], Decision[Any]]
_DECIDERS: Final[Mapping[type, _Decider]] = MappingProxyType(
    {
        c.Register: _register,
        c.Deregister: _deregister,
        c.ListInstances: _list_instances,
        c.Admit: _admit,
        c.Enqueue: _enqueue,
        c.Withdraw: _withdraw,
        c.Claim: _claim,
        c.Start: _start,
        c.Heartbeat: _heartbeat,
        c.Output: _output,
        c.Complete: _complete,
        c.Release: _release,
        c.RequestCancel: _request_cancel,
        c.Requeue: _requeue,
        c.Settle: _settle,
        c.ExpireQueued: _expire,
        c.Suspects: _suspects,
        c.Delay: _delay,
        c.Sweep: _sweep,
        c.LookOverdue: _look_overdue,
        c.Evict: _evict,
        c.ForgetInstances: _forget_instances,
        c.ForgetKeys: _forget_keys,
        c.ForgetEvents: _forget_events,
        c.Find: _find,
        c.ReadRequest: _read_request,
        c.ReadOutput: _read_output,
        c.Count: _count,
        c.ReadEvents: _read_events,
        c.LeaseEvents: _lease_events,
        c.Acknowledge: _acknowledge,
        c.ForgetConsumer: _forget_consumer,
        c.ListConsumers: _list_consumers,
        c.ReadDeadLetters: _read_dead_letters,
    }
)


def all_commands() -> Iterable[type]:
    """Every command that a store must carry out."""
    return _DECIDERS.keys()
