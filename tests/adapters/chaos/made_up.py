"""Evidence that nobody has seen: a run of two gateways and two jobs in which all is well, to be
changed by whoever wants to see a check fail.

Gateway 1 admits both jobs, ends the second, is killed; gateway 2 sees the first and sweeps it. The
store's clock is EPOCH ahead of the boot clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from attrs import define, evolve, field

from unswept.adapters.chaos.evidence import Evidence
from unswept.adapters.chaos.history import Deeds, History
from unswept.adapters.chaos.plan import POLICY
from unswept.adapters.chaos.records import (
    Act,
    Answered,
    Born,
    Deed,
    End,
    Failed,
    HoldName,
    Line,
    Sent,
    Slots,
    Stamp,
)
from unswept.adapters.chaos.verdict import Violation, judged
from unswept.core.job import Job, Transport
from unswept.core.lease import Kind, Lease, RequeueRule, Status
from unswept.core.replies import Found
from unswept.core.units import MonoMs, StoreMs
from unswept.core.values import Event, Result

EPOCH = 1_000_000_000
OWNER, SWEEPER = "gateway-owner", "gateway-sweeper"
SWEPT, DONE = "swept", "done"
BEAT, TTL = POLICY.heartbeat_interval_ms, POLICY.lease_ttl_ms

ADMITTED = 2_000
STARTED = 2_020
BEATEN = (2_500, 3_000)
KILLED = 3_200
LAST = BEATEN[-1]
SEEN = LAST + TTL + 300
ORPHANED = SEEN + POLICY.confirm_after_ms + 20
END = ORPHANED + 2_000


def store(boot: int) -> StoreMs:
    """The store time at that boot time."""
    return StoreMs(EPOCH + boot)


@define
class Book:
    """One gateway's file in the making."""

    lines: list[Line] = field(factory=list)
    sent: int = 0

    def send(self, at: int, command: str, *jobs: str) -> int:
        self.sent += 1
        holds = tuple(HoldName(job_id, 1) for job_id in jobs)
        self.lines.append(Sent(MonoMs(at), self.sent, command, holds))
        return self.sent

    def fail(self, at: int, command: str, *jobs: str) -> None:
        number = self.send(at, command, *jobs)
        self.lines.append(Failed(MonoMs(at + 100), number, "StoreUnavailableError"))

    def tell(self, at: int, command: str, *jobs: str, **acknowledged: Any) -> None:
        """Sent at this time, carried out 2 ms later, answered after 4."""
        number = self.send(at, command, *jobs)
        answer = Answered(MonoMs(at + 4), number, store(at + 2))
        self.lines.append(evolve(answer, **acknowledged))

    def stamp(self, at: int, command: str, *jobs: str, ttl_ms: int = TTL) -> None:
        """The same, for a command that stamps these jobs."""
        stamps = tuple(Stamp(job_id, 1, store(at + 2) + ttl_ms) for job_id in jobs)
        granted = jobs if command == "Admit" else ()
        self.tell(at, command, *jobs, stamps=stamps, granted=granted)


@define
class MadeUp:
    """The evidence, in parts that can be changed."""

    owner: Book
    sweeper: Book
    driver: list[Line]
    events: list[Event]
    found: dict[str, Found | None]
    chunks: frozenset[int] = frozenset({0})
    """Of the job that is done."""

    def change_event(self, kind: Kind, job_id: str = SWEPT, **changes: Any) -> None:
        """Another value in the event of this kind."""
        self.events = [
            evolve(event, **changes) if (event.kind, event.job_id) == (kind, job_id) else event
            for event in self.events
        ]

    def change_row(self, job_id: str, *, lease: object = None, **changes: Any) -> None:
        """Another value in the job's row."""
        found = self.found[job_id]
        assert found is not None
        job = evolve(found.job, **changes)
        if isinstance(lease, dict):
            job = evolve(job, lease=evolve(job.lease, **lease))
        self.found[job_id] = evolve(found, job=job)

    def without_beats(self, since: int, until: int) -> None:
        """The sweeper's heart misses between these times."""
        gone = {
            line.number
            for line in self.sweeper.lines
            if isinstance(line, Sent) and line.command == "Heartbeat" and since <= line.at < until
        }
        self.sweeper.lines = [
            line
            for line in self.sweeper.lines
            if not (isinstance(line, Sent | Answered) and line.number in gone)
        ]

    def evidence(self) -> Evidence:
        histories = {
            1: History(1, tuple(self.owner.lines)),
            2: History(2, tuple(self.sweeper.lines)),
        }
        deeds = Deeds(tuple(self.driver))
        chunks = {HoldName(DONE, 1): self.chunks}
        return Evidence(deeds, histories, self.found, chunks, tuple(self.events), store(END))

    def judged(self) -> tuple[tuple[Violation, ...], Counter[str]]:
        return judged(self.evidence())

    def broken(self) -> set[str]:
        """The checks that fail."""
        return {violation.check for violation in self.judged()[0]}


def all_well() -> MadeUp:
    """A run in which every promise holds."""
    owner = Book([Born(MonoMs(1_900), OWNER)])
    owner.stamp(ADMITTED, "Admit", SWEPT)
    owner.stamp(ADMITTED + 5, "Admit", DONE)
    owner.stamp(STARTED, "Start", SWEPT)
    owner.stamp(STARTED + 5, "Start", DONE)
    owner.stamp(BEATEN[0], "Heartbeat", SWEPT, DONE)
    owner.tell(2_550, "Output", DONE, chunks=(0,))
    owner.tell(2_600, "Complete", DONE, ends=(End(DONE, 1, "completed", 0, True),))
    owner.stamp(BEATEN[1], "Heartbeat", SWEPT)
    sweeper = Book([Born(MonoMs(100), SWEEPER)])
    for at in range(100, LAST + TTL, BEAT):
        sweeper.tell(at, "Heartbeat")
    sweeper.tell(SEEN - 4, "Suspects")
    for at in range(LAST + TTL, END, POLICY.retry_ms):
        sweeper.tell(at, "Heartbeat")
    sweeper.tell(ORPHANED - 2, "Sweep", SWEPT)
    driver: list[Line] = [
        deed(Act.START, 1, 1_000),
        deed(Act.START, 2, 10),
        deed(Act.KILL, 1, KILLED),
        deed(Act.ENDED, 1, KILLED + 10),
        deed(Act.REST, None, END - 100),
        Slots(MonoMs(END - 50), 2, 0, 0, 0, 0, 0, False),
        Slots(MonoMs(END - 10), 2, 0, 0, 0, 0, 0, True),
        deed(Act.TERM, 2, END),
        deed(Act.ENDED, 2, END + 5),
    ]
    return MadeUp(owner, sweeper, driver, _events(), _found())


def deed(act: Act, gateway: int | None, at: int, until: int | None = None) -> Deed:
    return Deed(MonoMs(at), MonoMs(at if until is None else until), act, gateway)


def _events() -> list[Event]:
    made = [
        (SWEPT, Kind.ADMIT, ADMITTED + 2, Status.QUEUED),
        (DONE, Kind.ADMIT, ADMITTED + 7, Status.QUEUED),
        (SWEPT, Kind.START, STARTED + 2, Status.RUNNING),
        (DONE, Kind.START, STARTED + 7, Status.RUNNING),
        (DONE, Kind.COMPLETE, 2_602, Status.COMPLETED),
    ]
    events = [
        Event(job_id, 1, kind, store(at), status, OWNER, OWNER) for job_id, kind, at, status in made
    ]
    orphaned = Event(
        SWEPT,
        1,
        Kind.ORPHAN,
        store(ORPHANED),
        Status.ORPHANED,
        OWNER,
        SWEEPER,
        beats=4,
        deadline=StoreMs(store(LAST + 2) + TTL),
        beat_at=store(LAST + 2),
        first_seen_at=store(SEEN - 2),
    )
    return [*events, orphaned]


def _found() -> dict[str, Found | None]:
    swept = Job(
        SWEPT,
        _lease(Status.ORPHANED),
        Transport.PROCESS,
        store(ADMITTED + 2),
        beat_at=store(LAST + 2),
        orphaned_at=store(ORPHANED),
    )
    done = Job(
        DONE,
        _lease(Status.COMPLETED),
        Transport.PROCESS,
        store(ADMITTED + 7),
        finished_at=store(2_602),
    )
    return {
        SWEPT: Found(store(END), swept, "local", None, None),
        DONE: Found(store(END), done, "local", None, Result(exit_code=0)),
    }


def _lease(status: Status) -> Lease:
    return Lease(
        status,
        OWNER,
        1,
        4,
        None,
        None,
        None,
        POLICY.lease_ttl_ms,
        POLICY.confirm_after_ms,
        RequeueRule.NEVER,
    )


def cut(lines: Iterable[Line], *kinds: type) -> list[Line]:
    """Without the lines of these kinds."""
    return [line for line in lines if not isinstance(line, kinds)]
