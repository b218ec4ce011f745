"""Two commands on one job, or for one consumer of its events, at once: which there are, in which
situations, and what may come of them.

X is carried out in a transaction that stays open; Y begins meanwhile, on the store itself. Then X
is committed, or rolled back. Whatever comes of it must be what the pure store gives for

* X, then Y; where Y waited for X it goes by the store time after its wait;
* or Y, then X, both by the store time before: Y may have waited where it no longer mattered;
* or X, then Y without this row, where Y says that it passed over it: then Y asked once more gives
  what X, then Y gives.

A rolled-back X was never there. What is compared: both replies, and all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count, product
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from attrs import evolve

from tests.adapters.postgres.helpers import (
    TERMS,
    Meanwhile,
    Observer,
    ServerClock,
    Session,
    tables_of,
)
from tests.adapters.tables import tables_in
from unswept.adapters.postgres import PostgresStore
from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.event_log import event_key
from unswept.core.job import OnOrphan, Process
from unswept.core.lease import RequeueRule, Status
from unswept.core.memory import MemoryStore
from unswept.core.refusal import Refusal
from unswept.core.units import Ms, StoreMs
from unswept.core.values import Chunk, Request, Result, Stream
from unswept.core.world import Table, World, decide

Any_ = c.Command[Any]

RETENTION = Ms(200)
LATE = Ms(10_000)
LEASE = Ms(100)
WAIT_MS = 7
"""How far the store clock moves while Y waits; short of any deadline that is not past."""


class Names:
    """A job and who has to do with it, found nowhere else in the store."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.job, self.owner, self.sweeper = f"{name}-j", f"{name}-a", f"{name}-s"
        self.consumer = f"{name}-c"
        self.request = Request(b"payload", f"{name}-p", "key")


# The commands, each by the job as it stands -----------------------------------------------------


def _epoch(world: World, names: Names) -> int:
    """The epoch under which the owner holds the job, or would after its claim."""
    job = world.jobs.get(names.job)
    return 1 if job is None else max(1, job.lease.epoch)


def _beats(world: World, names: Names) -> int:
    job = world.jobs.get(names.job)
    return 1 if job is None else job.lease.beats


def _token(world: World, names: Names) -> int:
    consumer = world.consumers.get(names.consumer)
    return 1 if consumer is None else consumer.token


def _sweep(world: World, n: Names) -> Any_:
    target = c.Target(n.job, _epoch(world, n), _beats(world, n), StoreMs(1))
    return c.Sweep(n.sweeper, (target,))


VERBS: Final[Mapping[str, Callable[[World, Names], Any_]]] = MappingProxyType(
    {
        "heartbeat": lambda w, n: c.Heartbeat(n.owner, TERMS, (c.Hold(n.job, _epoch(w, n)),)),
        "sweep": _sweep,
        "delay": lambda w, n: c.Delay(n.job, _epoch(w, n), _beats(w, n), n.sweeper),
        "start": lambda w, n: c.Start(n.job, n.owner, _epoch(w, n), TERMS, Process(1, 2, "boot")),
        "output": lambda w, n: c.Output(
            n.job, n.owner, _epoch(w, n), Chunk(0, Stream.STDOUT, b"line"), LATE
        ),
        "complete": lambda w, n: c.Complete(
            n.job, n.owner, _epoch(w, n), Status.COMPLETED, Result(exit_code=0, body=b"done")
        ),
        "claim": lambda w, n: c.Claim(n.owner, 1, TERMS, partition=n.name),
        "release": lambda w, n: c.Release(n.job, n.owner, _epoch(w, n)),
        "request cancel": lambda w, n: c.RequestCancel(n.job),
        "requeue": lambda w, n: c.Requeue(n.job, _epoch(w, n), actor=n.sweeper),
        "settle": lambda w, n: c.Settle(n.job, _epoch(w, n), Status.FAILED, actor=n.sweeper),
        "evict": lambda w, n: c.Evict((c.Hold(n.job, _epoch(w, n)),), RETENTION),
        "admit": lambda w, n: c.Admit(
            n.job,
            n.owner,
            TERMS,
            requeue=RequeueRule.ALLOWED,
            request=n.request,
            dedup_window_ms=Ms(1_000),
        ),
        "enqueue": lambda w, n: c.Enqueue(
            n.job,
            requeue=RequeueRule.ALLOWED,
            request=n.request,
            partition=n.name,
            queue_deadline=StoreMs(1),
        ),
        "withdraw": lambda w, n: c.Withdraw(n.job, n.owner),
        "expire": lambda w, n: c.ExpireQueued(n.job),
        "lease events": lambda w, n: c.LeaseEvents(n.consumer, n.owner, LEASE),
        "lease events elsewhere": lambda w, n: c.LeaseEvents(n.consumer, n.sweeper, LEASE),
        # Up to no event: their numbers are the whole store's.
        "acknowledge": lambda w, n: c.Acknowledge(n.consumer, _token(w, n), 0, last=True),
    }
)

# The situations ---------------------------------------------------------------------------------

TO_BE_SWEPT = TERMS.lease_ttl_ms + 1
TO_BE_EVICTED = RETENTION + 1

SITUATIONS: Final[Mapping[str, tuple[str | int, ...]]] = MappingProxyType(
    {
        "unborn": (),
        "waiting": ("enqueue",),
        "queued": ("admit",),
        "running": ("admit", "start"),
        "suspect": ("admit", "start", TO_BE_SWEPT),
        "suspect, to be requeued": ("admit, to be requeued", "start", TO_BE_SWEPT),
        "asked to end": ("admit", "request cancel", TO_BE_SWEPT),
        "orphaned": ("admit", "start", TO_BE_SWEPT, "sweep"),
        "orphaned, asked to end": ("admit", "request cancel", TO_BE_SWEPT, "sweep"),
        "ended": ("admit", "start", "complete", TO_BE_EVICTED),
        "canceled": ("enqueue", "request cancel", TO_BE_EVICTED),
        "leased": ("lease events",),
        "leased and given back": ("lease events", "acknowledge"),
        "leased for too long": ("lease events", LEASE + 1),
    }
)
"""Verbs that lead there, and milliseconds that go by."""
LEADS: Final[Mapping[str, Callable[[World, Names], Any_]]] = MappingProxyType(
    {
        **VERBS,
        "admit, to be requeued": lambda w, n: c.Admit(
            n.job,
            n.owner,
            TERMS,
            requeue=RequeueRule.ALLOWED,
            on_orphan=OnOrphan.REQUEUE,
            max_attempts=2,
        ),
    }
)
"""The commands, and others that only lead to a situation."""


class Pure:
    """The pure store in one situation, to be asked in one order."""

    def __init__(self, names: Names, situation: str, now: int) -> None:
        self.now = now
        self.store = MemoryStore(lambda: StoreMs(self.now))
        self.names = names
        self.asked: list[tuple[int, Any_]] = []
        """The commands that lead there, with their store times."""
        for instance in (names.owner, names.sweeper):
            self._lead(c.Register(instance))
        for step in SITUATIONS[situation]:
            if isinstance(step, int):
                self.now += step
            else:
                self._lead(LEADS[step](self.store.world, names))

    def _lead(self, command: Any_) -> None:
        self.asked.append((self.now, command))
        self.store.execute(command)

    def execute(self, command: Any_, now: int) -> Any:
        self.now = now
        return self.store.execute(command)

    def rows(self) -> dict[str, Any]:
        world = self.store.world
        return {**tables_in(world), "events": dict(world.events)}


def does_something(verb: str, situation: str) -> bool:
    """Does the command change the job in this situation, or what belongs to it?"""
    names = Names("x")
    pure = Pure(names, situation, 1_000)
    world = pure.store.world
    decision = decide(world, VERBS[verb](world, names), StoreMs(pure.now))
    tables = {change.table for change in decision.changes}
    return bool(decision.events or tables - {Table.INSTANCES})


def situations(x: str, y: str) -> Iterator[str]:
    """Those in which both commands do something; else one for X and one for Y."""
    effective = {
        verb: [name for name in SITUATIONS if does_something(verb, name)] for verb in (x, y)
    }
    both = [name for name in effective[x] if name in effective[y]]
    yield from both or dict.fromkeys([effective[x][0], effective[y][0]])


_OF_CONSUMERS: Final = ("lease events", "lease events elsewhere", "acknowledge")
_OF_JOBS: Final = tuple(verb for verb in VERBS if verb not in _OF_CONSUMERS)
PAIRS: Final = (*product(_OF_JOBS, repeat=2), *product(_OF_CONSUMERS, repeat=2))
"""A command on a job and one for a consumer have no row in common."""


# What comes of it -------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """What two commands came to."""

    x: Any
    """X's reply; None where it was rolled back."""
    y: Any
    rows: dict[str, Any]


class Races:
    """Runs races on one store, each with names of its own."""

    def __init__(
        self,
        store: PostgresStore,
        clock: ServerClock,
        schema: str,
        holder: Session,
        observer: Observer,
    ) -> None:
        self.store, self.clock, self.schema = store, clock, schema
        self.holder, self.observer = holder, observer
        self._numbers = count()

    def run(self, x: str, y: str, situation: str, *, commit: bool) -> None:
        """One race; fails where its outcome is none of those that are allowed."""
        names = Names(f"r{next(self._numbers)}")
        start = self.clock.now
        ready = Pure(names, situation, start)
        for at, command in ready.asked:
            self.clock.now = at
            self.store.execute(command)
        self.clock.now = begin = ready.now
        world = ready.store.world
        first, second = VERBS[x](world, names), VERBS[y](world, names)

        self.holder.begin()
        reply_x = self.holder.execute(self.schema, first)
        work: Meanwhile[Any] = Meanwhile(lambda: self.store.execute(second))
        waited = self.observer.sees_wait(work, self.holder)
        if waited:
            self.clock.now += WAIT_MS
        end = self.clock.now
        if commit:
            self.holder.commit()
        else:
            self.holder.rollback()
        got = Outcome(reply_x if commit else None, work.result(), self.rows(names))

        def pure() -> Pure:
            return Pure(names, situation, start)

        blurred = blur(got, begin, end)
        xy = pure()
        first_reply = xy.execute(first, begin) if commit else None
        allowed = {"X, then Y": Outcome(first_reply, xy.execute(second, end), xy.rows())}
        if commit:
            yx = pure()
            second_reply = yx.execute(second, begin)
            allowed["Y, then X"] = Outcome(yx.execute(first, begin), second_reply, yx.rows())
        after = pure()
        if passed_over(got.y):
            first_reply = after.execute(first, begin) if commit else None
            after.execute(without(second), begin)
            expected = Outcome(first_reply, said_so(second, got.y), after.rows())
            allowed["X, then Y without the row"] = expected
        right = [order for order, each in allowed.items() if blurred == blur(each, begin, end)]
        if not right:
            how = "waited" if waited else "did not wait"
            lines = [
                line
                for order, each in allowed.items()
                for line in differences(blurred, order, blur(each, begin, end))
            ]
            raise AssertionError(
                f"job {situation}; X = {x}, {'committed' if commit else 'rolled back'};"
                f" Y = {y}, which {how}; store time {begin} to {end}\n" + "\n".join(lines)
            )
        if right == ["X, then Y without the row"]:
            again = evolve(second, claim_no=2) if isinstance(second, c.Claim) else second
            assert self.store.execute(again) == after.execute(again, end)
            assert blur_rows(self.rows(names), begin, end) == blur_rows(after.rows(), begin, end)

    def rows(self, names: Names) -> dict[str, Any]:
        rows = dict(tables_of(self.observer.session, self.schema, names.name + "-"))
        rows["events"] = {event_key(event): event for event in rows["events"]}
        return rows


def passed_over(reply: Any) -> bool:
    """May this reply mean that somebody else had the row?"""
    if isinstance(reply, r.Beaten):
        return any(answer.answer is r.Answer.BUSY for answer in reply.answers)
    if isinstance(reply, r.Swept | r.Evicted):
        return any(answer.refusal is Refusal.BUSY for answer in reply.answers)
    return isinstance(reply, r.Claimed) and not reply.grants


def without(command: Any_) -> Any_:
    """The same command, but for its row."""
    if isinstance(command, c.Heartbeat):
        return evolve(command, holds=())
    if isinstance(command, c.Claim):
        return evolve(command, partition="of nobody")
    if isinstance(command, c.Sweep):
        return evolve(command, targets=())
    assert isinstance(command, c.Evict)
    return evolve(command, targets=())


def said_so(command: Any_, reply: Any) -> Any:
    """The one reply that passes over the row."""
    if isinstance(command, c.Heartbeat):
        answers = tuple(
            r.HoldAnswer(hold.job_id, hold.epoch, r.Answer.BUSY) for hold in command.holds
        )
        return r.Beaten(reply.at, answers, (), registered=True)
    if isinstance(command, c.Claim):
        return r.Claimed(reply.at, (), repeated=False)
    assert isinstance(command, c.Sweep | c.Evict)
    busy = tuple(r.SweepAnswer(target.job_id, Refusal.BUSY) for target in command.targets)
    return evolve(reply, answers=busy)


# Three times that no decision reads are taken before a wait, or after: when an id was first used,
# when an instance was last seen, and the time of a beat, beside the deadlines that it stamps.


def blur(outcome: Outcome, begin: int, end: int) -> Outcome:
    return Outcome(
        blur_beat(outcome.x, begin, end),
        blur_beat(outcome.y, begin, end),
        blur_rows(outcome.rows, begin, end),
    )


def blur_beat(reply: Any, begin: int, end: int) -> Any:
    if isinstance(reply, r.Beaten) and begin <= reply.at <= end:
        return evolve(reply, at=StoreMs(begin))
    return reply


def blur_rows(rows: dict[str, Any], begin: int, end: int) -> dict[str, Any]:
    def blurred(name: str, column: str) -> dict[str, Any]:
        return {
            key: evolve(row, **{column: begin}) if begin <= getattr(row, column) <= end else row
            for key, row in rows[name].items()
        }

    return {**rows, "ids": blurred("ids", "born_at"), "instances": blurred("instances", "seen_at")}


def differences(got: Outcome, order: str, expected: Outcome) -> Iterator[str]:
    """Where a race that went wrong differs from one that would be right."""
    yield f"not {order}:"
    for name, found, right in (("X", got.x, expected.x), ("Y", got.y, expected.y)):
        if found != right:
            yield f"    {name} said  {found}\n    {name} not   {right}"
    for name, rows in expected.rows.items():
        if got.rows[name] != rows:
            yield f"    {name}: found {got.rows[name]}\n    {name}: not   {rows}"
