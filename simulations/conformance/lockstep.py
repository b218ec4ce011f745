"""Two stores that are asked the same, and the shortest conversation in which they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from attrs import fields

from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.event_log import EventKey, event_key
from unswept.core.job import Job, OnOrphan
from unswept.core.lease import (
    MOVES,
    TERMINAL,
    Kind,
    well_formed,
)
from unswept.core.memory import MemoryStore
from unswept.core.units import Ms, StoreMs
from unswept.core.values import Event
from unswept.simulations.conformance.coverage import Coverage, edges, named_jobs, outcomes
from unswept.simulations.conformance.stores import Clock, History, MakeStore, NonconformanceError, R
from unswept.simulations.difference import differing

_FEW: Final = 50
"""More ids than a history has."""


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
        self.read_upto = 0
        """The number of the last of them."""

    def ask(self, command: c.Command[R]) -> R:
        """Ask both stores; their replies, and the jobs that are meant, must be equal."""
        reply, job_ids = self._asked(command)
        self.check_jobs(job_ids)
        return reply

    def retell(self, command: c.Command[Any]) -> None:
        """Ask both stores what was checked before, as the same step in the life of another job:
        here the replies must be equal, and the rest at the next check of all reads."""
        self._asked(command)
        # The next step is judged by what the pure store has, and nothing is asked for it.
        self.jobs, self.read_upto = dict(self.pure.world.jobs), self.pure.world.events.newest
        self.events.update(self.pure.world.events)

    def _asked(self, command: c.Command[R]) -> tuple[R, list[str]]:
        """The reply, and which jobs are meant."""
        now = self.clock.now
        near = [now - edge for edge in edges(command, self.pure.world)]
        self.asked.append((now, command))
        reply = self._both(command)
        words = [*outcomes(reply)]
        words += [name for ms, name in ((0, "at_the_edge"), (1, "past_the_edge")) if ms in near]
        self.coverage.update((type(command).__name__, word) for word in words)
        granted = reply.grants if isinstance(reply, r.Claimed) else ()
        job_ids = [*named_jobs(command), *(grant.standing.job_id for grant in granted)]
        self.job_ids.update(dict.fromkeys(job_ids))
        return reply, job_ids

    def _both(self, command: c.Command[R]) -> R:
        expected = self.pure.execute(command)
        try:
            found = self.store.execute(command)
        except Exception as error:
            # Whatever a store raises here, the pure store had a reply.
            raise self._differs(command, expected, repr(error)) from error
        if found != expected:
            raise self._differs(command, expected, found, *differing(found, expected))
        return found

    def check_jobs(self, job_ids: Iterable[str]) -> None:
        """These jobs, and the events since the last check: equal in both stores, and lawful."""
        events = self._read_events()
        for job_id in job_ids:
            before = self.jobs.get(job_id)
            after = self._read_job(job_id)
            fresh = [event for event in events if event.job_id == job_id]
            for problem in broken_laws(before, after, fresh):
                raise self._broken((before, after, fresh), problem)

    def _read_events(self) -> Sequence[Event]:
        """Those since the last time."""
        page = self._both(c.ReadEvents(after=self.read_upto, limit=c.MAX_PAGE))
        self.read_upto = page.next_after
        for event in page.events:
            if event_key(event) in self.events:
                raise self._broken(event, "L5: a second event under one (job, epoch, kind)")
            self.events[event_key(event)] = event
        return page.events

    def _read_job(self, job_id: str) -> Job | None:
        found = self._both(c.Find(job_id))
        if isinstance(found, r.Found):
            self.jobs[job_id] = found.job
            return found.job
        self.jobs.pop(job_id, None)
        return None

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
        self._read_suspects()
        for number in range(0, self.read_upto, 100):
            self._both(c.ReadEvents(number, 100))

    def _read_suspects(self) -> None:
        """Page by page; and behind each id, or behind some where there are many."""
        page = self._both(c.Suspects(limit=10))
        while page.more:
            page = self._both(c.Suspects(page.suspects[-1].job_id, limit=10))
        for after in islice(self.job_ids, 0, None, 1 + len(self.job_ids) // _FEW):
            self._both(c.Suspects(after, limit=10))

    def close(self) -> None:
        """Close the store under test."""
        self.store.close()

    def _differs(
        self, command: object, expected: object, found: object, *apart: str
    ) -> NonconformanceError:
        said = [f"command   {short(command)}", *(f"differs   {each}" for each in apart)]
        told = "\n".join([*said, f"expected  {expected}"])
        return self._broken(found, f"the store's reply is not the pure store's\n{told}")

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
