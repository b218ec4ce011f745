"""A conformance kit: any store must answer every command as the pure store does.

    from unswept.simulations.conformance import conformance_case

    def make_store(clock):
        return MyStore("some://url", clock=clock)  # empty, and reads its store time from clock()

    TestMyStore = conformance_case(make_store)

pytest and unittest both run the case. It drives the store in lockstep with `MemoryStore`, under one
store clock that jumps to the edges of deadlines, and back: first on a tour, every command in every
situation of a job; then through drawn histories of many jobs. The rules:

* every reply must equal the pure store's, and so must each job that was meant, as it then stands;
* the laws that one history can show are checked on what the store itself says: leases are
  well-formed, epochs and beats never decrease, the first cancel request stays (L7), a terminal job
  never changes until it is evicted (L4), and each change of status or epoch leaves exactly one
  event (L5);
* at the end of each history all that can be read must be equal: events, output, requests, suspects;
* a run that did not meet every outcome in `TOUR` and `SEARCH` fails too: a rule that never ran
  shows nothing.

One thread asks, so no row is ever locked: what happens when commands meet is not covered here.

A store that fails shows the fewest commands that lead there. Keep them as an ordinary test with
`replay`. To see that the kit would notice, plant a fault in a store and ask `refute`.
"""

from __future__ import annotations

import unittest
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count, islice
from random import Random
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeVar

from attrs import evolve, fields, frozen
from hypothesis import Phase, Verbosity, given, settings
from hypothesis import strategies as st

from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.job import Job, OnOrphan, Process, Terms, Transport
from unswept.core.lease import (
    ACTIVE,
    MOVES,
    OUTCOMES,
    SETTLEMENTS,
    TERMINAL,
    Kind,
    RequeueRule,
    Status,
    is_suspect,
    well_formed,
)
from unswept.core.memory import MemoryStore
from unswept.core.units import Ms, StoreMs
from unswept.core.values import Chunk, Event, Request, Result, Stream
from unswept.core.world import EventKey, World, all_commands, event_key

R = TypeVar("R")

History = list[tuple[int, c.Command[Any]]]
"""Commands, and the store time at which each was asked."""


class ClosableStore(c.Store, Protocol):
    """A store that can be closed."""

    def close(self) -> None:
        """Let go of whatever the store holds."""
        ...


MakeStore = Callable[[Callable[[], StoreMs]], ClosableStore]
"""Makes an empty store whose store time is what the given function returns."""


class NonconformanceError(AssertionError):
    """The store under test differs from the pure store; the message shows where, after what."""

    def __init__(self, message: str, history: History) -> None:
        """What differs, and all that was asked up to there."""
        super().__init__(message)
        self.history = history


class ShortfallError(AssertionError):
    """The search found nothing, but did not look everywhere: a green result would mean little."""


class Clock:
    """The store clock of both stores; only a rule moves it."""

    def __init__(self, now: int = 1_000_000) -> None:
        """A clock that stands at `now`."""
        self.now = StoreMs(now)

    def __call__(self) -> StoreMs:
        """The store time."""
        return self.now


# What must have happened ------------------------------------------------------------------------

Coverage = Counter[tuple[str, str]]
"""How often each (command, outcome) was met."""


def _pairs(table: Mapping[type, str]) -> frozenset[tuple[str, str]]:
    return frozenset(
        (kind.__name__, word) for kind, words in table.items() for word in words.split()
    )


_UNKNOWN = " absent spent"
_FENCED = " stale_epoch not_owner already_terminal" + _UNKNOWN
_EDGES = " at_the_edge past_the_edge"

TOUR: Final = _pairs(
    {
        c.Register: "registered",
        c.Admit: "admit joined repeated id_used spent" + _EDGES,
        c.Enqueue: "enqueue repeated id_used spent",
        c.Withdraw: "withdraw cancel request_cancel repeated withdrawn already_terminal",
        c.Claim: "granted nothing again not_registered budget" + _EDGES,
        c.Start: "start repeated cancel_pending orphaned" + _FENCED,
        c.Heartbeat: "renewed orphaned terminal fenced absent known unknown",
        c.Output: "output repeated too_late stale_epoch not_owner" + _UNKNOWN + _EDGES,
        c.Complete: "complete heal repeated" + _FENCED,
        c.Release: "release repeated not_requeueable orphaned" + _FENCED,
        c.RequestCancel: "request_cancel cancel repeated withdrawn already_terminal",
        c.Requeue: "requeue repeated not_requeueable not_orphaned already_terminal stale_epoch"
        + _UNKNOWN,
        c.Settle: "settle repeated not_orphaned already_terminal stale_epoch" + _UNKNOWN,
        c.ExpireQueued: "expire repeated not_due owned already_running orphaned already_terminal"
        + _UNKNOWN
        + _EDGES,
        c.Suspects: "none some more",
        c.Delay: "delay delayed_before not_expired beats_moved orphaned" + _FENCED + _EDGES,
        c.Sweep: "done repeated not_expired beats_moved orphaned" + _FENCED + _EDGES,
        c.Evict: "done repeated not_due not_terminal stale_epoch absent" + _EDGES,
        c.Find: "found" + _UNKNOWN,
        c.ReadRequest: "read" + _UNKNOWN,
        c.ReadOutput: "none some more" + _UNKNOWN,
    }
)
"""Every (command, outcome) that the tour must have met. The edge of a command is the last
millisecond that counts as in time; `past_the_edge` is the one after it."""

SEARCH: Final = _pairs(
    {
        c.Register: "registered",
        c.Deregister: "deregistered",
        c.ListInstances: "some",
        c.Admit: "admit joined repeated id_used",
        c.Enqueue: "enqueue",
        c.Withdraw: "withdraw cancel withdrawn",
        c.Claim: "granted nothing again not_registered budget",
        c.Start: "start cancel_pending not_owner",
        c.Heartbeat: "renewed terminal fenced absent known unknown",
        c.Output: "output repeated",
        c.Complete: "complete heal",
        c.Release: "release",
        c.RequestCancel: "request_cancel cancel withdrawn",
        c.Requeue: "requeue",
        c.Settle: "settle",
        c.ExpireQueued: "expire",
        c.Suspects: "none some",
        c.Delay: "delay not_expired",
        c.Sweep: "done not_expired beats_moved" + _EDGES,
        c.LookOverdue: "nothing evictable expirable silent keys",
        c.Evict: "done",
        c.ForgetInstances: "none some",
        c.ForgetKeys: "none some",
        c.ForgetEvents: "none",
        c.ForgetConsumer: "none",
        c.Find: "found absent",
        c.ReadRequest: "read absent",
        c.ReadOutput: "none some",
        c.LeaseEvents: "granted renewed leased",
        c.Acknowledge: "moved repeated stale_token ahead absent",
        c.ListConsumers: "none some",
        c.ReadDeadLetters: "none some",
        c.Count: "none some",
        c.ReadEvents: "none some",
    }
)
"""Every (command, outcome) that the search must have met: each command, each transition."""


def outcomes(reply: Any) -> Iterator[str]:
    """What a reply says has happened, in words."""
    match reply:
        case r.Accepted():
            yield "repeated" if reply.transition is None else reply.transition.value
        case r.Refused():
            yield reply.reason.value
        case r.Claimed(repeated=True):
            yield "again" if reply.grants else "nothing"
        case r.Claimed():
            yield "granted" if reply.grants else "nothing"
        case r.Beaten():
            yield "known" if reply.registered else "unknown"
            yield from (answer.answer.value for answer in reply.answers)
        case r.Swept() | r.Evicted():
            for answer in reply.answers:
                done = "repeated" if answer.repeated else "done"
                yield done if answer.refusal is None else answer.refusal.value
        case r.Overdue():
            lists = ("evictable", "expirable", "silent", "keys")
            named = [name for name in lists if getattr(reply, name)]
            yield from named or ["nothing"]
        case r.Forgotten():
            yield "some" if reply.count else "none"
        case r.SuspectsPage():
            yield _amount(reply.suspects, reply.more)
        case r.OutputPage():
            yield _amount(reply.chunks, reply.more)
        case r.EventsPage():
            yield _amount(reply.events, more=False)
        case r.EventsLeased():
            yield "renewed" if reply.renewed else "granted"
        case r.Acknowledged():
            yield "repeated" if reply.repeated else "moved"
        case r.Consumers():
            yield _amount(reply.consumers, more=False)
        case r.DeadLettersPage():
            yield _amount(reply.letters, reply.more)
        case r.Counts():
            yield "none" if reply.total == r.PartitionCount("") else "some"
        case r.Instances():
            yield _amount(reply.instances, more=False)
        case r.RequestRead():
            yield "read"
        case _:
            yield type(reply).__name__.lower()


def _amount(rows: Sequence[object], more: bool) -> str:
    return "more" if more else "some" if rows else "none"


def edges(command: object, world: World) -> Iterator[StoreMs]:
    """The last store times at which `command` would find each row that it names still in time."""
    for job in (world.jobs[job_id] for job_id in named_jobs(command) if job_id in world.jobs):
        match command:
            case c.Sweep() | c.Delay() if job.lease.deadline is not None:
                yield job.lease.deadline
            case c.ExpireQueued() if job.queue_deadline is not None:
                yield job.queue_deadline
            case c.Output() if job.finished_at is not None:
                yield StoreMs(job.finished_at + command.late_output_ms)
            case c.Evict() if job.finished_at is not None:
                yield StoreMs(job.finished_at + command.retention_ms)
    match command:
        case c.Admit():
            key = (command.request.principal, command.request.request_key)
            twins = (row for name, row in world.keys.items() if name == key)
            yield from (StoreMs(row.admitted_at + command.dedup_window_ms) for row in twins)
        case c.Claim():
            waiting = (world.jobs[job_id] for job_id in world.waiting)
            here = (job for job in waiting if job.partition == command.partition)
            offered = frozenset(command.labels)
            dues = (job.not_before for job in here if offered.issuperset(job.labels))
            yield from (StoreMs(due - 1) for due in dues if due is not None)


def named_jobs(command: object) -> list[str]:
    """The ids of the jobs that a command names."""
    match command:
        case c.Sweep() | c.Evict():
            return [row.job_id for row in command.targets]
        case c.Heartbeat():
            return [row.job_id for row in command.holds]
    job_id = getattr(command, "job_id", None)
    return [] if job_id is None else [job_id]


# Two stores, one conversation -------------------------------------------------------------------


class Lockstep:
    """The store under test and the pure store, asked the same under the same clock."""

    def __init__(self, make_store: MakeStore, coverage: Coverage | None = None) -> None:
        """Two empty stores and their clock."""
        self.clock = Clock()
        self.pure = MemoryStore(self.clock)
        self.store = make_store(self.clock)
        self.coverage: Coverage = Counter() if coverage is None else coverage
        self.asked: History = []
        self.job_ids: dict[str, None] = {}
        """Every id that was ever named, in that order."""
        self.jobs: dict[str, Job] = {}
        """Each job as the store under test last showed it."""
        self.events: dict[EventKey, Event] = {}
        """All events that the store under test has shown."""

    def ask(self, command: c.Command[R]) -> R:
        """Ask both stores; their replies, and the jobs that are meant, must be equal."""
        now = self.clock.now
        near = [now - edge for edge in edges(command, self.pure.world)]
        self.asked.append((now, command))
        reply = self._both(command)
        words = [*outcomes(reply)]
        words += [name for ms, name in ((0, "at_the_edge"), (1, "past_the_edge")) if ms in near]
        self.coverage.update((type(command).__name__, word) for word in words)
        granted = reply.grants if isinstance(reply, r.Claimed) else ()
        self.check_jobs([*named_jobs(command), *(grant.standing.job_id for grant in granted)])
        return reply

    def _both(self, command: c.Command[R]) -> R:
        expected = self.pure.execute(command)
        try:
            found = self.store.execute(command)
        except Exception as error:
            # Whatever a store raises here, the pure store had a reply.
            raise self._differs(command, expected, repr(error)) from error
        if found != expected:
            raise self._differs(command, expected, found)
        return found

    def check_jobs(self, job_ids: Iterable[str]) -> None:
        """These jobs, and the events since the last check: equal in both stores, and lawful."""
        self.job_ids.update(dict.fromkeys(job_ids))
        page = self._both(c.ReadEvents(after=len(self.events), limit=c.MAX_PAGE))
        for event in page.events:
            if event_key(event) in self.events:
                raise self._broken(event, "L5: a second event under one (job, epoch, kind)")
            self.events[event_key(event)] = event
        for job_id in job_ids:
            found = self._both(c.Find(job_id))
            after = found.job if isinstance(found, r.Found) else None
            fresh = [event for event in page.events if event.job_id == job_id]
            before = self.jobs.get(job_id)
            for problem in broken_laws(before, after, fresh):
                raise self._broken((before, after, fresh), problem)
            if after is None:
                self.jobs.pop(job_id, None)
            else:
                self.jobs[job_id] = after

    def check_reads(self) -> None:
        """All that can be read is equal in both stores."""
        self.check_jobs([*self.job_ids])
        for job_id in self.job_ids:
            self._both(c.ReadRequest(job_id))
            latest = self.jobs[job_id].lease.epoch if job_id in self.jobs else 0
            for epoch in range(latest + 1):
                self._both(c.ReadOutput(job_id, epoch))
        self._both(c.ListInstances())
        self._both(c.Count())
        self._both(c.ListConsumers())
        for name in self.pure.world.consumers:
            self._both(c.ReadDeadLetters(name))
        self._both(c.LookOverdue(Ms(1), Ms(1), Ms(0)))
        for after in (None, *self.job_ids):
            self._both(c.Suspects(after, limit=10))
        for number in range(0, len(self.events), 100):
            self._both(c.ReadEvents(number, 100))

    def close(self) -> None:
        """Close the store under test."""
        self.store.close()

    def _differs(self, command: object, expected: object, found: object) -> NonconformanceError:
        said = f"command   {short(command)}\nexpected  {expected}"
        return self._broken(found, f"the store's reply is not the pure store's\n{said}")

    def _broken(self, found: object, problem: str) -> NonconformanceError:
        asked = "\n".join(f"  {at}  {short(command)}" for at, command in self.asked[-50:])
        left_out = f" (the last 50 of {len(self.asked)})" if len(self.asked) > 50 else ""
        message = f"{problem}\nfound     {found}\nwhat was asked, by store time{left_out}:\n{asked}"
        return NonconformanceError(message, self.asked)


def short(command: Any) -> str:
    """A command without what is as it is by default."""
    rows = ((field, getattr(command, field.name)) for field in fields(type(command)))
    said = (f"{field.name}={value!r}" for field, value in rows if value != field.default)
    return f"{type(command).__name__}({', '.join(said)})"


def replay(make_store: MakeStore, history: History) -> None:
    """Ask a store, in lockstep with the pure one, what a failing search has asked."""
    pair = Lockstep(make_store)
    try:
        for at, command in history:
            pair.clock.now = StoreMs(at)
            pair.ask(command)
        pair.check_reads()
    finally:
        pair.close()


def shortened(make_store: MakeStore, found: NonconformanceError) -> NonconformanceError:
    """The same or a like failure, after a history with all left out that it does not need.

    Hypothesis would shrink how the history was drawn, which takes minutes and leaves more.
    """
    size = len(found.history)
    while size := size // 2:
        at = 0
        while at < len(found.history):
            shorter = found.history[:at] + found.history[at + size :]
            try:
                replay(make_store, shorter)
            except NonconformanceError as still:
                found = still
            else:
                at += size
    return found


_BIRTHS: Final = frozenset({Kind.ADMIT, Kind.ENQUEUE})
_SILENT: Final = frozenset({Kind.DELAY, Kind.REQUEST_CANCEL, Kind.STALE_RESULT})
"""Kinds of event that tell of no change of status or epoch."""


def broken_laws(before: Job | None, after: Job | None, events: Sequence[Event]) -> Iterator[str]:
    """What is wrong with one step in the life of a job, and the events that it left."""
    telling = [event for event in events if event.kind not in _SILENT]
    if after is None:
        evicted = before is not None
        if [event.kind for event in telling] != [Kind.EVICT] * evicted:
            yield "L5: an eviction leaves one event, and an absent job none"
        if before is not None and before.lease.status not in TERMINAL:
            yield "L14: only a terminal job may be evicted"
        return
    new = after.lease
    if not well_formed(new):
        yield "the lease is not well-formed"
    if before is None:
        if [event.kind in _BIRTHS for event in telling] != [True]:
            yield "L5: a birth leaves one event"
        return
    old = before.lease
    if new.epoch < old.epoch:
        yield "L3: the epoch decreased"
    if new.beats < old.beats:
        yield "the beats decreased"
    stamp_moved = (new.epoch, new.beats) != (old.epoch, old.beats)
    if not stamp_moved and new.deadline not in (old.deadline, None):
        yield "the deadline was stamped, and the beats do not say so"
    if old.cancel_requested_at not in (None, new.cancel_requested_at):
        yield "L7: the first cancel request did not stay"
    if old.status in TERMINAL and after != before:
        yield "L4: a terminal job changed"
    if (new.status, new.epoch) == (old.status, old.epoch):
        if telling:
            yield "L5: an event tells of a change that did not happen"
    elif len(telling) != 1 + _goes_on(before, telling):
        yield "L5: a change of status or epoch leaves one event, and what a policy adds another"
    elif not _tells(telling, before, after):
        yield "L5: the events do not tell the change that happened"


def _goes_on(before: Job, telling: Sequence[Event]) -> bool:
    """Was the job orphaned, and its policy says what comes next in the same step?"""
    orphaned = [event.kind for event in telling[:1]] == [Kind.ORPHAN]
    return orphaned and before.on_orphan in (OnOrphan.REQUEUE, OnOrphan.FAIL)


def _tells(telling: Sequence[Event], before: Job, after: Job) -> bool:
    status, epoch = before.lease.status, before.lease.epoch
    for event in telling:
        move = MOVES[event.kind]
        stepped = event.epoch == epoch + move.epoch_step
        if not (stepped and status in move.leaves and event.status in move.reaches):
            return False
        status, epoch = event.status, event.epoch
    return (status, epoch) == (after.lease.status, after.lease.epoch)


# Every command in every situation ---------------------------------------------------------------

_TERMS: Final = Terms(Ms(100), Ms(300), Ms(50), Ms(30))
_OTHER_TERMS: Final = Terms(Ms(20), Ms(40), Ms(70), Ms(60))
RETENTION_MS: Final = Ms(120)
INSTANCE_GC_MS: Final = Ms(150)
WINDOW_MS: Final = Ms(80)
LATE_OUTPUT_MS: Final = Ms(40)

Life = tuple[int | c.Command[Any], ...]
"""Commands about one job, and how many milliseconds pass between them."""


LABELS: Final = ((), ("cpu",), ("gpu", "cpu"), ("cpu", "gpu", "é"), ("CPU", "[]", "o'h"))


_POLICIES: Final = (
    ("requeue", OnOrphan.REQUEUE, 2),
    ("attempts spent", OnOrphan.REQUEUE, 1),
    ("fail", OnOrphan.FAIL, None),
    ("hold", OnOrphan.HOLD, None),
)


def situations(job_id: str, now: StoreMs, claim_no: int) -> dict[str, Life]:
    """How a job gets where the next command finds it: one life per situation.

    `ann` admits it or claims it under `claim_no`; its partition and request key are its own, so
    that jobs in one store do not meet.
    """
    request = Request(b"[1]", "p", job_id)
    asked = c.RequestCancel(job_id)
    enqueued = c.Enqueue(
        job_id, requeue=RequeueRule.ALLOWED, partition=job_id, queue_deadline=StoreMs(now + 30)
    )
    later = (
        c.Register("ann"),
        c.Enqueue(job_id, partition=job_id, not_before=StoreMs(now + 20)),
    )
    queue = (
        c.Register("ann"),
        c.Enqueue(f"{job_id}-", partition=job_id, not_before=StoreMs(now + 20)),
        *(1, c.Enqueue(job_id, partition=job_id), 1, c.Enqueue(f"{job_id}+2", partition=job_id)),
    )
    for_others = c.Enqueue(job_id, partition=job_id, labels=("gpu", "cpu"))
    claimed = (enqueued, c.Register("ann"), c.Claim("ann", claim_no, _TERMS, job_id))
    admitted = c.Admit(job_id, "ann", _TERMS, requeue=RequeueRule.ALLOWED, request=request)
    kept = c.Admit(job_id, "ann", _TERMS, Transport.HTTP, request=request)
    hold = (job_id, "ann", 1)
    started = (admitted, c.Start(*hold, _OTHER_TERMS, Process(7, 5_000, "boot")))
    printed = tuple(
        c.Output(*hold, Chunk(number, Stream.STDOUT, b"\0\xff"), LATE_OUTPUT_MS)
        for number in (10, 9)
    )
    swept = (101, c.Sweep("bob", (c.Target(job_id, 1, 1, now),)))
    orphaned: Life = (admitted, *printed, *swept)
    completed: Life = (
        admitted,
        c.Complete(*hold, Status.COMPLETED, Result(-9, 500, "went\0wrong", b"\0\xff")),
    )
    return {
        "never named": (),
        "withdrawn unborn": (c.Withdraw(job_id, "ann"),),
        "enqueued": (enqueued,),
        "enqueued for later": later,
        "enqueued between one for later and a younger one": queue,
        "enqueued with labels": (c.Register("ann"), for_others),
        "withdrawn by a cancel": (asked,),
        "enqueued beyond a budget": (
            c.Register("ann", max_held=1),
            *(c.Enqueue(f"{job_id}{n}", partition=job_id) for n in "12"),
            c.Claim("ann", claim_no, _TERMS, job_id, limit=2),
        ),
        "canceled in the queue": (enqueued, asked),
        "expired": (enqueued, 31, c.ExpireQueued(job_id)),
        "claimed": claimed,
        "claimed and released": (*claimed, c.Release(job_id, "ann", 1)),
        "admitted": (admitted,),
        "admitted, not to be requeued": (kept,),
        "admitted, cancel pending": (admitted, asked),
        "admitted and withdrawn": (admitted, c.Withdraw(job_id, "ann")),
        "started": started,
        "started, cancel pending": (*started, asked),
        "released": (*started, c.Release(*hold)),
        "released under a cancel": (*started, asked, c.Release(*hold)),
        "suspect": (admitted, 101),
        "delayed": (admitted, 101, c.Delay(job_id, 1, 1, "bob")),
        "orphaned": orphaned,
        "orphaned, not to be requeued": (kept, 200, *swept),
        "orphaned, cancel pending": (admitted, asked, *swept),
        **{
            f"swept: {name}": (
                evolve(admitted, on_orphan=policy, max_attempts=most),
                *swept,
            )
            for name, policy, most in _POLICIES
        },
        "swept under a cancel: requeue": (
            evolve(admitted, on_orphan=OnOrphan.REQUEUE, max_attempts=2),
            asked,
            *swept,
        ),
        "healed": (*orphaned, c.Complete(*hold, Status.FAILED)),
        "requeued": (*orphaned, c.Requeue(job_id, 1)),
        "requeued under a cancel": (admitted, asked, *swept, c.Requeue(job_id, 1)),
        "settled": (*orphaned, c.Settle(job_id, 1, Status.FAILED, "ops")),
        "canceled as an orphan": (*orphaned, asked),
        "completed": completed,
        "failed": (*started, *printed, c.Complete(*hold, Status.FAILED)),
        "canceled": (*started, asked, c.Complete(*hold, Status.CANCELED)),
        "evicted": (
            *completed,
            RETENTION_MS + 1,
            c.Evict((c.Hold(job_id, 1),), RETENTION_MS),
        ),
    }


def probes(job_id: str, job: Job | None, now: StoreMs, claim_no: int) -> Iterator[c.Command[Any]]:
    """Every command about one job, as those say it who know how it stands, and as near misses."""
    epoch, beats = (1, 1) if job is None else (job.lease.epoch, job.lease.beats)
    epochs = (epoch, epoch + 1, *([epoch - 1] if epoch else []))
    key = Request(b"", "p", job_id)
    # Where the job requires none, one offer of several labels is as good as another.
    offers = LABELS[1:] if job is not None and job.labels else LABELS[3:4]
    for owner in ("ann", "bob"):
        yield c.Admit(job_id, owner, _TERMS)
        yield c.Withdraw(job_id, owner)
        yield c.Claim(owner, claim_no, _TERMS, job_id)
        for offered in offers:
            yield c.Claim(owner, claim_no, _TERMS, job_id, labels=offered)
        for said in epochs:
            hold = (job_id, owner, said)
            yield c.Start(*hold, _OTHER_TERMS, Process(8, 6_000, "boot"))
            yield c.Heartbeat(owner, _OTHER_TERMS, (c.Hold(job_id, said),))
            yield c.Output(*hold, Chunk(11, Stream.STDERR, b""), LATE_OUTPUT_MS)
            yield c.Complete(*hold, Status.COMPLETED)
            yield c.Complete(*hold, Status.FAILED, Result(error="late"))
            yield c.Release(*hold, StoreMs(now + 10))
    for said in epochs:
        yield c.Requeue(job_id, said)
        yield c.Requeue(job_id, said, force=True, actor="ops")
        yield c.Settle(job_id, said, Status.FAILED)
        yield c.Settle(job_id, said, Status.CANCELED, "ops")
        yield c.Evict((c.Hold(job_id, said),), RETENTION_MS)
        yield c.ReadOutput(job_id, said)
        for seen in (beats, beats + 1):
            yield c.Delay(job_id, said, seen, "bob")
            yield c.Sweep("bob", (c.Target(job_id, said, seen, now),))
    yield c.Admit(f"{job_id}+", "bob", _TERMS, request=key, dedup_window_ms=WINDOW_MS)
    yield c.Admit(f"{job_id}+", "bob", _TERMS, request=key)
    yield c.Enqueue(job_id)
    yield c.RequestCancel(job_id)
    yield c.ExpireQueued(job_id)
    yield c.Find(job_id)
    yield c.ReadRequest(job_id)
    yield c.ReadOutput(job_id)
    yield c.ReadOutput(job_id, limit=1)
    yield c.Suspects(limit=1)


def tour(make_store: MakeStore) -> Coverage:
    """Ask every command in every situation: at once, at its edge and one millisecond past it, and
    each time twice; what was met on the way.

    Raises `NonconformanceError` where the store differs from the pure one.
    """
    coverage: Coverage = Counter()
    for name in situations("job", StoreMs(0), 1):
        pair = Lockstep(make_store, coverage)
        try:
            _visit(pair, name)
            pair.check_reads()
        finally:
            pair.close()
    return coverage


def _visit(pair: Lockstep, name: str) -> None:
    """Every probe finds a job of its own in this situation; one that has an edge, three."""
    for number in count():
        for late in (None, 0, 1):
            job_id = f"{name}/{number}/{late}"
            claim_no = 2 * len(pair.job_ids) + 1  # grows from life to life
            _live(pair, situations(job_id, pair.clock.now, claim_no)[name])
            job = pair.pure.world.jobs.get(job_id)
            asked = probes(job_id, job, pair.clock.now, claim_no + 1)
            command = next(islice(asked, number, None), None)
            if command is None:
                return
            edge = max(edges(command, pair.pure.world), default=None)
            if late is not None and edge is not None:
                pair.clock.now = StoreMs(edge + late)
            _live(pair, (command, 1, command))
            if edge is None:
                break


def _live(pair: Lockstep, life: Life) -> None:
    for step in life:
        if isinstance(step, int):
            pair.clock.now = StoreMs(pair.clock.now + step)
        else:
            pair.ask(step)


# What is asked ----------------------------------------------------------------------------------

# Ids that a store may sort, fold, cut or read as numbers, if it is careless.
JOB_IDS: Final = (
    *("a", "B", "b", "10", "9", "é", "o'h", "x y", "1e1", "%", "\U0001f600", "job", "Job"),
    *("null", "--", "[1]", "a" * 200),
)
INSTANCES: Final = ("ann", "bob", "Ann")
CONSUMERS: Final = ("billing", "mail")
PARTITIONS: Final = ("", "gpu")
POLICIES: Final = (_TERMS, _OTHER_TERMS)


@frozen
class Sight:
    """What a rule sees when it chooses: the pure store's rows and the time."""

    world: World
    now: StoreMs


Draw = Random
"""Where all choices of a history come from."""
Fits = Callable[[Sight, Job], bool]
Ask = Callable[[Draw, Sight, Fits], c.Command[Any]]


def _pick(draw: Draw, *choices: Any) -> Any:
    return draw.choice(choices)


def _mostly(draw: Draw, likely: Any, *others: Any) -> Any:
    """The first choice, five times as often as each other one."""
    return _pick(draw, likely, likely, likely, likely, likely, *others)


def _job(draw: Draw, sight: Sight, fits: Fits) -> Job | str:
    """Mostly a job that fits, else any job or an id; an id where that has no row."""
    jobs = sight.world.jobs
    fitting = [job_id for job_id, job in jobs.items() if fits(sight, job)]
    spent = [job_id for job_id in sight.world.ids if job_id not in jobs]
    choices = _mostly(draw, fitting or [*jobs], [*jobs], spent, JOB_IDS)
    job_id: str = _pick(draw, *(choices or JOB_IDS))
    return jobs.get(job_id, job_id)


def _jobs(draw: Draw, sight: Sight, fits: Fits) -> Iterator[Job | str]:
    """None to three different jobs."""
    chosen: dict[str, Job | str] = {}
    for _ in range(_pick(draw, 1, 2, 3, 0)):
        job = _job(draw, sight, fits)
        chosen[job.id if isinstance(job, Job) else job] = job
    return iter(chosen.values())


def _held(draw: Draw, sight: Sight, fits: Fits) -> tuple[str, str, int]:
    """(job id, owner, epoch) as a holder would say it, or as a near miss."""
    job = _job(draw, sight, fits)
    if isinstance(job, str):
        return (job, _pick(draw, *INSTANCES), 1)
    owner = job.lease.owner or _last_owner(sight, job)
    miss = _mostly(draw, None, "owner", "epoch", "epoch")
    return (
        job.id,
        _pick(draw, *INSTANCES) if miss == "owner" else owner,
        _near(draw, job.lease.epoch) if miss == "epoch" else job.lease.epoch,
    )


def _last_owner(sight: Sight, job: Job) -> str:
    """Who held the job before it was nobody's: that one may still write."""
    events = (event for event in sight.world.events.values() if event.job_id == job.id)
    owners = [event.owner for event in events if event.owner is not None]
    return owners[-1] if owners else INSTANCES[0]


def _near(draw: Draw, count: int) -> int:
    return int(_mostly(draw, count, max(count - 1, 0), count + 1))


def _unused(draw: Draw, sight: Sight) -> str:
    unused = [job_id for job_id in JOB_IDS if job_id not in sight.world.ids]
    return str(_pick(draw, *(_mostly(draw, unused, JOB_IDS) or JOB_IDS)))


def _request(draw: Draw, keyed: bool) -> Request:
    payload = _pick(draw, b"", b"\0\xff", b"[1]")
    if not keyed:
        return Request(payload)
    principal = _mostly(draw, "p", "P", None)
    return Request(payload, principal, None if principal is None else _mostly(draw, "k", "K", None))


def _soon(draw: Draw, sight: Sight) -> StoreMs | None:
    after = _pick(draw, None, None, 0, 10, 30)
    return None if after is None else StoreMs(sight.now + after)


# Which jobs a command is mostly asked about: a command that suits none is asked less often.


def _any(sight: Sight, job: Job) -> bool:
    return True


def _owned(sight: Sight, job: Job) -> bool:
    return job.lease.status in ACTIVE and job.lease.owner is not None


def _unstarted(sight: Sight, job: Job) -> bool:
    return _owned(sight, job) and job.lease.status is Status.QUEUED


def _writable(sight: Sight, job: Job) -> bool:
    return job.lease.owner is not None and job.lease.status not in TERMINAL


def _queued(sight: Sight, job: Job) -> bool:
    return job.lease.status is Status.QUEUED


def _claimable(sight: Sight, job: Job) -> bool:
    return _queued(sight, job) and job.lease.owner is None


def _expirable(sight: Sight, job: Job) -> bool:
    due = job.queue_deadline
    return _claimable(sight, job) and due is not None and due <= sight.now


def _unfinished(sight: Sight, job: Job) -> bool:
    return job.lease.status not in TERMINAL


def _suspect(sight: Sight, job: Job) -> bool:
    """Suspect now or in two milliseconds: a sweep that comes that much too early must miss."""
    return is_suspect(job.lease, StoreMs(sight.now + 2))


def _orphaned(sight: Sight, job: Job) -> bool:
    return job.lease.status is Status.ORPHANED


def _evictable(sight: Sight, job: Job) -> bool:
    return job.finished_at is not None and job.finished_at + RETENTION_MS <= sight.now


def _printed(sight: Sight, job: Job) -> bool:
    return job.id in sight.world.output


# How each command is drawn.


def _register(draw: Draw, sight: Sight, fits: Fits) -> c.Register:
    claim_no = _mostly(draw, 0, 3)
    facts = ("runner", "host", _pick(draw, None, 7), claim_no, _pick(draw, None, 1))
    return c.Register(_pick(draw, *INSTANCES), *facts)


def _deregister(draw: Draw, sight: Sight, fits: Fits) -> c.Deregister:
    return c.Deregister(_pick(draw, *INSTANCES))


def _list_instances(draw: Draw, sight: Sight, fits: Fits) -> c.ListInstances:
    return c.ListInstances()


def _admit(draw: Draw, sight: Sight, fits: Fits) -> c.Admit:
    rule = _pick(draw, *RequeueRule)
    return c.Admit(
        _unused(draw, sight),
        _pick(draw, *INSTANCES),
        _pick(draw, *POLICIES),
        _pick(draw, *Transport),
        rule,
        _request(draw, keyed=_pick(draw, True, True, False)),
        _mostly(draw, WINDOW_MS, Ms(0)),
        _mostly(draw, False, True),
        *_policy(draw, rule),
    )


def _policy(draw: Draw, rule: RequeueRule) -> tuple[OnOrphan, int | None]:
    mark = (OnOrphan.MARK, None)
    others = [(policy, most) for _, policy, most in _POLICIES]
    allowed = others if rule is RequeueRule.ALLOWED else others[2:]
    policy: tuple[OnOrphan, int | None] = _mostly(draw, mark, *allowed)
    return policy


def _enqueue(draw: Draw, sight: Sight, fits: Fits) -> c.Enqueue:
    rule = _pick(draw, *RequeueRule)
    policy, most = _policy(draw, rule)
    return c.Enqueue(
        _unused(draw, sight),
        _pick(draw, *Transport),
        rule,
        _request(draw, keyed=_pick(draw, False, True)),
        _mostly(draw, *PARTITIONS),
        _mostly(draw, 0, -1, 1),
        queue_deadline=_soon(draw, sight),
        not_before=_soon(draw, sight),
        labels=_mostly(draw, *LABELS),
        on_orphan=policy,
        max_attempts=most,
    )


def _withdraw(draw: Draw, sight: Sight, fits: Fits) -> c.Withdraw:
    job_id, owner, _ = _held(draw, sight, fits)
    return c.Withdraw(job_id, owner)


def _claim(draw: Draw, sight: Sight, fits: Fits) -> c.Claim:
    owner = _pick(draw, *(_mostly(draw, [*sight.world.instances], INSTANCES) or INSTANCES))
    row = sight.world.instances.get(owner)
    last = 0 if row is None else row.claim_no
    number = _mostly(draw, last + 1, max(last, 1), max(last - 1, 1), last + 3)
    terms = _pick(draw, *POLICIES)
    limit, offered = _pick(draw, 1, 2, 5), _mostly(draw, LABELS[3], *LABELS)
    return c.Claim(owner, number, terms, _mostly(draw, *PARTITIONS), limit, offered)


def _start(draw: Draw, sight: Sight, fits: Fits) -> c.Start:
    process = _pick(draw, None, Process(7, 5_000, "boot"), Process(8, 6_000, "boot"))
    return c.Start(*_held(draw, sight, fits), _pick(draw, *POLICIES), process)


def _heartbeat(draw: Draw, sight: Sight, fits: Fits) -> c.Heartbeat:
    owners = [job.lease.owner for job in sight.world.jobs.values() if fits(sight, job)]
    instance = _pick(draw, *(_mostly(draw, owners, INSTANCES) or INSTANCES))
    holds = (
        c.Hold(job, 1) if isinstance(job, str) else c.Hold(job.id, _near(draw, job.lease.epoch))
        for job in _jobs(draw, sight, lambda sight, job: job.lease.owner == instance)
    )
    watched = _mostly(draw, (), JOB_IDS[:2])
    return c.Heartbeat(instance, _pick(draw, *POLICIES), tuple(holds), watched)


def _output(draw: Draw, sight: Sight, fits: Fits) -> c.Output:
    data = _pick(draw, b"text", b"\0\xff", b"")
    chunk = Chunk(_pick(draw, 0, 1, 2, 3), _pick(draw, *Stream), data)
    return c.Output(*_held(draw, sight, fits), chunk, LATE_OUTPUT_MS)


def _complete(draw: Draw, sight: Sight, fits: Fits) -> c.Complete:
    result = _pick(draw, Result(), Result(-9, 500, "went\0wrong", b"\0\xff"), Result(exit_code=0))
    return c.Complete(*_held(draw, sight, fits), _pick(draw, *sorted(OUTCOMES)), result)


def _release(draw: Draw, sight: Sight, fits: Fits) -> c.Release:
    return c.Release(*_held(draw, sight, fits), _soon(draw, sight))


def _request_cancel(draw: Draw, sight: Sight, fits: Fits) -> c.RequestCancel:
    return c.RequestCancel(_held(draw, sight, fits)[0])


def _requeue(draw: Draw, sight: Sight, fits: Fits) -> c.Requeue:
    job_id, _, epoch = _held(draw, sight, fits)
    force = _pick(draw, False, True)
    return c.Requeue(job_id, epoch, force, _soon(draw, sight), _pick(draw, None, "ops"))


def _settle(draw: Draw, sight: Sight, fits: Fits) -> c.Settle:
    job_id, _, epoch = _held(draw, sight, fits)
    return c.Settle(job_id, epoch, _pick(draw, *sorted(SETTLEMENTS)), _pick(draw, None, "ops"))


def _expire(draw: Draw, sight: Sight, fits: Fits) -> c.ExpireQueued:
    return c.ExpireQueued(_held(draw, sight, fits)[0])


def _suspects(draw: Draw, sight: Sight, fits: Fits) -> c.Suspects:
    after, limit = _pick(draw, None, *JOB_IDS), _pick(draw, 1, 2, 1_000)
    return c.Suspects(after, limit, counted=limit == 2)


def _delay(draw: Draw, sight: Sight, fits: Fits) -> c.Delay:
    job_id, epoch, beats = _stamp(draw, _job(draw, sight, fits))
    return c.Delay(job_id, epoch, beats, _pick(draw, *INSTANCES))


def _sweep(draw: Draw, sight: Sight, fits: Fits) -> c.Sweep:
    seen_at = StoreMs(sight.now - _pick(draw, 0, 7))
    stamps = [_stamp(draw, job) for job in _jobs(draw, sight, fits)]
    targets = tuple(c.Target(*stamp, seen_at) for stamp in stamps)
    return c.Sweep(_pick(draw, *INSTANCES), targets)


def _stamp(draw: Draw, job: Job | str) -> tuple[str, int, int]:
    """(job id, epoch, beats) as a sweeper has seen them, or a near miss."""
    if isinstance(job, str):
        return (job, 1, 1)
    return (job.id, _near(draw, job.lease.epoch), _near(draw, job.lease.beats))


def _look_overdue(draw: Draw, sight: Sight, fits: Fits) -> c.LookOverdue:
    return c.LookOverdue(RETENTION_MS, INSTANCE_GC_MS, WINDOW_MS, _pick(draw, 1, 100))


def _evict(draw: Draw, sight: Sight, fits: Fits) -> c.Evict:
    jobs = _jobs(draw, sight, fits)
    targets = (
        c.Hold(job, 1) if isinstance(job, str) else c.Hold(job.id, _near(draw, job.lease.epoch))
        for job in jobs
    )
    return c.Evict(tuple(targets), _mostly(draw, RETENTION_MS, Ms(1)))


def _forget_instances(draw: Draw, sight: Sight, fits: Fits) -> c.ForgetInstances:
    rows = sight.world.instances
    names = {_pick(draw, *rows, *INSTANCES): None for _ in range(2)}
    seen = (
        (name, StoreMs(rows[name].seen_at - _mostly(draw, 0, 1)) if name in rows else sight.now)
        for name in names
    )
    return c.ForgetInstances(tuple(seen), INSTANCE_GC_MS)


def _forget_keys(draw: Draw, sight: Sight, fits: Fits) -> c.ForgetKeys:
    rows = sight.world.keys
    keys = {_pick(draw, *rows, ("p", "none")): None for _ in range(2)}
    seen = (
        (*key, _mostly(draw, rows[key].job_id if key in rows else "a", "other")) for key in keys
    )
    return c.ForgetKeys(tuple(seen), _mostly(draw, WINDOW_MS, Ms(0)))


def _forget_events(draw: Draw, sight: Sight, fits: Fits) -> c.ForgetEvents:
    return c.ForgetEvents((*sight.world.ids,), _mostly(draw, Ms(1), RETENTION_MS))


def _forget_consumer(draw: Draw, sight: Sight, fits: Fits) -> c.ForgetConsumer:
    return c.ForgetConsumer(_mostly(draw, *CONSUMERS))


def _find(draw: Draw, sight: Sight, fits: Fits) -> c.Find:
    return c.Find(_held(draw, sight, fits)[0])


def _read_request(draw: Draw, sight: Sight, fits: Fits) -> c.ReadRequest:
    return c.ReadRequest(_held(draw, sight, fits)[0])


def _read_output(draw: Draw, sight: Sight, fits: Fits) -> c.ReadOutput:
    job_id = _held(draw, sight, fits)[0]
    return c.ReadOutput(job_id, _pick(draw, None, 1, 2), _pick(draw, 0, 1), _pick(draw, 1, 2, 100))


def _lease_events(draw: Draw, sight: Sight, fits: Fits) -> c.LeaseEvents:
    name = _mostly(draw, *CONSUMERS)
    row = sight.world.consumers.get(name)
    known = INSTANCES[0] if row is None or row.holder is None else row.holder
    return c.LeaseEvents(name, _pick(draw, known, *INSTANCES), Ms(_pick(draw, 1, 200, 1_000)))


def _acknowledge(draw: Draw, sight: Sight, fits: Fits) -> c.Acknowledge:
    name = _mostly(draw, *CONSUMERS)
    row = sight.world.consumers.get(name)
    token, position = (1, 0) if row is None else (row.token, row.position)
    newest = len(sight.world.events)
    after = min(position + 1, newest)
    upto = _pick(draw, after, after, position, newest + 1)
    error = _pick(draw, None, "went\0wrong")
    return c.Acknowledge(name, max(1, _near(draw, token)), upto, _mostly(draw, False, True), error)


def _list_consumers(draw: Draw, sight: Sight, fits: Fits) -> c.ListConsumers:
    return c.ListConsumers()


def _read_dead_letters(draw: Draw, sight: Sight, fits: Fits) -> c.ReadDeadLetters:
    return c.ReadDeadLetters(_mostly(draw, *CONSUMERS), _pick(draw, 0, 0, 3), _pick(draw, 1, 100))


def _count(draw: Draw, sight: Sight, fits: Fits) -> c.Count:
    return c.Count(_pick(draw, None, PARTITIONS, ("gpu",), ("none", "gpu")))


def _read_events(draw: Draw, sight: Sight, fits: Fits) -> c.ReadEvents:
    return c.ReadEvents(_pick(draw, 0, 1, 5, 200), _pick(draw, 1, 3, 1_000))


ASKS: Final[Mapping[type, tuple[int, Fits, Ask]]] = MappingProxyType(
    {
        c.Register: (3, _any, _register),
        c.Deregister: (1, _any, _deregister),
        c.ListInstances: (1, _any, _list_instances),
        c.Admit: (10, _any, _admit),
        c.Enqueue: (6, _any, _enqueue),
        c.Withdraw: (2, _queued, _withdraw),
        c.Claim: (10, _claimable, _claim),
        c.Start: (8, _unstarted, _start),
        c.Heartbeat: (6, _owned, _heartbeat),
        c.Output: (4, _writable, _output),
        c.Complete: (6, _writable, _complete),
        c.Release: (4, _owned, _release),
        c.RequestCancel: (5, _unfinished, _request_cancel),
        c.Requeue: (8, _orphaned, _requeue),
        c.Settle: (5, _orphaned, _settle),
        c.ExpireQueued: (6, _expirable, _expire),
        c.Suspects: (3, _suspect, _suspects),
        c.Delay: (10, _suspect, _delay),
        c.Sweep: (16, _suspect, _sweep),
        c.LookOverdue: (1, _any, _look_overdue),
        c.Evict: (5, _evictable, _evict),
        c.ForgetInstances: (1, _any, _forget_instances),
        c.ForgetKeys: (1, _any, _forget_keys),
        c.ForgetEvents: (1, _any, _forget_events),
        c.ForgetConsumer: (1, _any, _forget_consumer),
        c.Find: (2, _any, _find),
        c.ReadRequest: (2, _any, _read_request),
        c.ReadOutput: (3, _printed, _read_output),
        c.LeaseEvents: (5, _any, _lease_events),
        c.Acknowledge: (5, _any, _acknowledge),
        c.ListConsumers: (2, _any, _list_consumers),
        c.ReadDeadLetters: (4, _any, _read_dead_letters),
        c.Count: (1, _any, _count),
        c.ReadEvents: (1, _any, _read_events),
    }
)
"""How often each command is asked, about which jobs, and how it is drawn."""


def _command(draw: Draw, sight: Sight) -> c.Command[Any]:
    """Mostly a command that suits some job; any one otherwise."""
    jobs = sight.world.jobs.values()
    suits = {
        fits: fits is _any or any(fits(sight, job) for job in jobs) for _, fits, _ in ASKS.values()
    }
    suited = [kind for kind, (often, fits, _) in ASKS.items() if suits[fits] for _ in range(often)]
    kind = _pick(draw, *_mostly(draw, suited, [*ASKS]))
    _, fits, ask = ASKS[kind]
    return ask(draw, sight, fits)


def _instants(world: World) -> Iterator[int]:
    """The store times at which something falls due."""
    for job in world.jobs.values():
        yield from (
            due
            for due in (job.lease.deadline, job.queue_deadline, job.not_before)
            if due is not None
        )
        if job.finished_at is not None:
            yield from (job.finished_at + RETENTION_MS, job.finished_at + LATE_OUTPUT_MS)
    yield from (row.admitted_at + WINDOW_MS for row in world.keys.values())
    yield from (row.seen_at + INSTANCE_GC_MS for row in world.instances.values())
    yield from (row.expires_at for row in world.consumers.values())


# A history --------------------------------------------------------------------------------------


class Drawer:
    """A hand on a `Lockstep`: which command is next, and how the clock moves, drawn from a seed."""

    def __init__(self, pair: Lockstep, seed: object) -> None:
        """The same seed gives the same history, whatever else was imported or has run."""
        self.pair = pair
        self.draw: Draw = Random(f"history {seed}")

    def step(self) -> None:
        """One step."""
        _pick(self.draw, *_STEPS)(self)

    def ask(self) -> None:
        """Both stores are asked something."""
        sight = Sight(self.pair.pure.world, self.pair.clock.now)
        self.pair.ask(_command(self.draw, sight))

    def repeat(self) -> None:
        """A command comes again: its answer was lost, or the network sent it twice."""
        recent = self.pair.asked[:-7:-1]
        if recent:
            self.pair.ask(_pick(self.draw, *recent)[1])

    def advance(self) -> None:
        """The clock jumps to where something falls due, or beside it by a millisecond."""
        now = self.pair.clock.now
        due = sorted({at for at in _instants(self.pair.pure.world) if at >= now})[:4] or [now]
        self._set(_pick(self.draw, *due) + _pick(self.draw, -1, 0, 1))

    def wait(self) -> None:
        """Time passes."""
        self._set(self.pair.clock.now + self.draw.randrange(200))

    def step_back(self) -> None:
        """The store clock is set back."""
        self._set(self.pair.clock.now - 1 - self.draw.randrange(400))

    def _set(self, now: int) -> None:
        self.pair.clock.now = StoreMs(now)


_STEPS: Final = (
    *[Drawer.ask] * 12,
    *[Drawer.repeat] * 2,
    *[Drawer.advance] * 5,
    Drawer.wait,
    Drawer.step_back,
)


def history(make_store: MakeStore, seed: object, steps: int) -> Coverage:
    """One history, and all reads at its end; what was met on the way.

    Raises `NonconformanceError` where the store differs from the pure one.
    """
    pair = Lockstep(make_store)
    try:
        drawer = Drawer(pair, seed)
        for _ in range(steps):
            drawer.step()
        pair.check_reads()
    finally:
        pair.close()
    return pair.coverage


# The case ---------------------------------------------------------------------------------------

HISTORIES: Final = 75
STEPS: Final = 160


def effort(histories: int = HISTORIES) -> settings:
    """How hard to search: the same histories on every run, unless Hypothesis's current profile asks
    for more examples than Hypothesis does by itself; then as many new ones."""
    profile = settings()
    if profile.max_examples <= settings.get_profile("default").max_examples:
        profile = settings(profile, derandomize=True, database=None, max_examples=histories)
    return settings(
        profile,
        stateful_step_count=max(STEPS, profile.stateful_step_count),
        deadline=None,
        phases=set(profile.phases) & {Phase.reuse, Phase.generate},
        # What Hypothesis prints of a seed says less than the error does.
        verbosity=Verbosity.quiet,
    )


def search(make_store: MakeStore, how: settings | None = None) -> Coverage:
    """Search for a history in which the store differs from the pure one; what was met on the way.

    Raises `NonconformanceError` where it finds one.

    Hypothesis gives the seeds only, and none where they are to be the same on every run. If it made
    each choice, four of five histories would be another with a piece of it copied, and all of them
    others whenever another module is imported: what they meet would be a matter of luck.
    """
    how = how or effort()
    coverage: Coverage = Counter()

    def one(seed: int) -> None:
        coverage.update(history(make_store, seed, how.stateful_step_count))

    if how.derandomize:
        for seed in range(how.max_examples):
            one(seed)
    else:
        how(given(seed=st.integers(0, 2**64 - 1))(one))()
    return coverage


def refute(make_store: MakeStore) -> NonconformanceError | None:
    """The first difference that the tour or a short search comes upon, or None.

    For tests that plant a fault in a store, to see that the kit catches it.
    """
    try:
        tour(make_store)
        search(make_store, effort(25))
    except NonconformanceError as found:
        return found
    return None


def require(coverage: Coverage, required: Collection[tuple[str, str]]) -> None:
    """Raise `ShortfallError` if something in `required` was not met."""
    missed = sorted(f"{command}: {outcome}" for command, outcome in set(required) - set(coverage))
    if missed:
        raise ShortfallError("these were never met: " + "; ".join(missed))


def conformance_case(
    make_store: MakeStore,
    *,
    how: settings | None = None,
    required: Collection[tuple[str, str]] = SEARCH,
) -> type[unittest.TestCase]:
    """A test case for the stores that `make_store` makes; give the class a name to have it run.

    `how` overrides the effort of the search; a shallower one will not meet all that is `required`.
    """
    unruled = set(all_commands()) - set(ASKS)
    if unruled:
        names = ", ".join(sorted(kind.__name__ for kind in unruled))
        raise TypeError(f"the kit has no rule for {names}: add one to ASKS")

    class StoreConformance(unittest.TestCase):
        def test_every_command_in_every_situation(self) -> None:
            """The store answers as the pure store does, wherever a command finds a job."""
            self.check(tour, TOUR)

        def test_histories(self) -> None:
            """The store answers as the pure store does, and keeps the laws, in any history."""
            self.check(lambda make: search(make, how), required)

        def check(
            self, run: Callable[[MakeStore], Coverage], required: Collection[tuple[str, str]]
        ) -> None:
            """Run, shorten what fails, and see that enough was met."""
            try:
                coverage = run(make_store)
            except NonconformanceError as found:
                raise shortened(make_store, found) from None
            require(coverage, required)

    return StoreConformance
