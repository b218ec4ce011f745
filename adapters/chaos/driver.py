"""Carries out the plan on real gateways, and brings them to rest: writes down all that it does.

It knows only processes, signals and the place; what the gateways were told it learns from their
files, and only when all is over.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import random
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from attrs import define, field

from unswept.adapters.chaos.books import Notebook
from unswept.adapters.chaos.load import LONGEST_MS
from unswept.adapters.chaos.places import Place
from unswept.adapters.chaos.plan import POLICY, Fault, Step
from unswept.adapters.chaos.processes import GatewayProcess, RunFailedError
from unswept.adapters.chaos.records import Act, Deed, Slots, instance_of
from unswept.adapters.chaos.worker import DRAIN_MS, FINISH_MS, Charge
from unswept.adapters.gateway.clock import boot_ms
from unswept.core.commands import ReadEvents, Store
from unswept.core.errors import StoreError
from unswept.core.lease import Kind, Status
from unswept.core.values import Event

WORKER: Final = "unswept.adapters.chaos.worker"
START_S: Final = 60.0
"""How long the first gateways may take to come up."""
BALANCE_S: Final = 20.0
"""How long a gateway may take to come to rest."""
OVERTIME_S: Final = 20.0
"""How long after its time a fault may still be done, whose gateway was down or stopped before."""
DRAIN_S: Final = (FINISH_MS + DRAIN_MS) / 1000 + 30
_LOOK_S: Final = 0.01
_RESTART_MS: Final = (200, 1_500)
"""After how long a gateway that is gone is followed by another."""
_CUT_EVERY_MS: Final = 100
_AGAIN_MS: Final = 250
"""A fault whose gateway is down or stopped is tried again after so long."""

Progress = Callable[[str, float], None]
"""Hears what is being done, and which part of it is over, from 0 to 1."""


@define(eq=False)
class Driver:
    """One run of the plan."""

    place: Place
    store: Store
    folder: Path
    pipe: Path
    seed: int
    program: str
    on_progress: Progress
    _book: Notebook = field(init=False)
    _draw: random.Random = field(init=False)
    _running: dict[int, GatewayProcess] = field(factory=dict, init=False)
    """By slot."""
    _started: list[GatewayProcess] = field(factory=list, init=False)
    _due: list[tuple[float, int, Callable[[], None]]] = field(factory=list, init=False)
    """What is to be done and when, the soonest first."""
    _order: itertools.count[int] = field(factory=itertools.count, init=False)
    _locked: bool = field(default=False, init=False)
    _undone: int = field(default=0, init=False)
    """Steps of the plan that have not been done yet."""

    def __attrs_post_init__(self) -> None:
        """Begin the driver's file."""
        self._book = Notebook(self.folder / "driver.jsonl")
        self._draw = random.Random(f"{self.seed} driver")

    def run(self, steps: Sequence[Step], length_ms: int, instances: int) -> None:
        """From the first start to the end of the last process."""
        for slot in range(instances):
            self._start(slot)
        self._until(self._all_born, START_S, "starting")
        self._disturb(steps, length_ms)
        self._come_to_rest()
        self._settle()
        self._drain()

    def close(self) -> None:
        """End every process that is still there."""
        for process in self._started:
            process.end()
        self._book.close()

    # The faults -----------------------------------------------------------------------------

    def _disturb(self, steps: Sequence[Step], length_ms: int) -> None:
        began = time.monotonic()
        length_s = length_ms / 1000
        for step in steps:
            self._at(began + step.at_ms / 1000, partial(self._do, step))
        self._undone = len(steps)
        while (passed := time.monotonic() - began) < length_s or (
            self._undone and passed < length_s + OVERTIME_S
        ):
            self._tick()
            self.on_progress("faults", min(1.0, passed / length_s))
            time.sleep(_LOOK_S)

    def _at(self, when: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._due, (when, next(self._order), what))

    def _after(self, ms: float, what: Callable[[], None]) -> None:
        self._at(time.monotonic() + ms / 1000, what)

    def _tick(self) -> None:
        """Do what is due, and see who has ended."""
        while self._due and self._due[0][0] <= time.monotonic():
            heapq.heappop(self._due)[2]()
        for process in tuple(self._running.values()):
            if process.code is not None:
                self._has_ended(process)

    def _do(self, step: Step) -> None:
        if step.slot is None:
            self._befall_all(step)
            return
        process = self._running.get(step.slot)
        if process is None or process.stopped or process.ending:
            self._after(_AGAIN_MS, partial(self._do, step))
        else:
            self._befall(process, step)

    def _befall(self, process: GatewayProcess, step: Step) -> None:
        self._undone -= 1
        since = boot_ms()
        if step.fault is Fault.KILL:
            process.ending = True
            process.send(signal.SIGKILL)
            self._write(Act.KILL, process, since)
        elif step.fault in (Fault.STOP, Fault.PAUSE):
            process.stopped = True
            process.send(signal.SIGSTOP)
            self._write(Act.STOP, process, since, step.lasts_ms)
            self._after(step.lasts_ms, partial(self._continue, process))
        elif step.fault is Fault.TERM:
            process.ending = True
            process.send(signal.SIGTERM)
            self._write(Act.TERM, process, since)
        elif step.fault is Fault.BLOCK:
            process.order(do="block", ms=step.lasts_ms)
            self._write(Act.BLOCK, process, since, step.lasts_ms)
        else:
            self._cut(process, time.monotonic() + step.lasts_ms / 1000)

    def _continue(self, process: GatewayProcess) -> None:
        if not process.stopped:
            return
        since = boot_ms()
        process.send(signal.SIGCONT)
        process.stopped = False
        self._write(Act.CONTINUE, process, since)

    def _cut(self, process: GatewayProcess, until: float, done: int = 0) -> None:
        """Until that time, and until there was a connection to kill."""
        since = boot_ms()
        if process.code is not None:
            return
        with contextlib.suppress(StoreError):  # the server itself may be down just now
            count = self.place.cut(process.number)
            if count:
                self._write(Act.CUT, process, since, count)
            done += count
        if time.monotonic() < until or not done:
            self._after(_CUT_EVERY_MS, partial(self._cut, process, until, done))

    def _befall_all(self, step: Step) -> None:
        since = boot_ms()
        if step.fault is Fault.RESTART:
            self._undone -= 1
            self._unlock()
            self._write(Act.DOWN, None, since)
            since = boot_ms()
            self.place.restart()
            self._write(Act.UP, None, since)
        elif self._locked or not self.place.lock():
            self._after(_AGAIN_MS, partial(self._do, step))
        else:
            self._undone -= 1
            self._locked = True
            self._write(Act.LOCK, None, since, step.lasts_ms)
            self._after(step.lasts_ms, self._unlock)

    def _unlock(self) -> None:
        if self._locked:
            since = boot_ms()
            self.place.unlock()
            self._locked = False
            self._write(Act.UNLOCK, None, since)

    # Gateways -------------------------------------------------------------------------------

    def _start(self, slot: int) -> None:
        number = len(self._started) + 1
        since = boot_ms()
        charge = Charge(
            self.place.url_for(number),
            self.place.schema,
            str(self._book_of(number)),
            str(self.pipe),
            f"{self.seed} gateway {number}",
        )
        log = self.folder / f"gateway-{number}.log"
        process = GatewayProcess(self.program, number, slot, charge, log)
        self._started.append(process)
        self._running[slot] = process
        self._write(Act.START, process, since)

    def _has_ended(self, process: GatewayProcess) -> None:
        now = boot_ms()
        self._write(Act.ENDED, process, now, process.code)
        del self._running[process.slot]
        if not process.ending:
            raise RunFailedError(
                f"gateway {process.number} has ended by itself, with {process.code}:"
                f" {process.log()}"
            )
        self._after(self._draw.uniform(*_RESTART_MS), partial(self._start, process.slot))

    def _book_of(self, number: int) -> Path:
        return self.folder / f"gateway-{number}.jsonl"

    def _all_born(self) -> bool:
        books = [self._book_of(process.number) for process in self._running.values()]
        return all(book.exists() and book.stat().st_size for book in books)

    def _until(self, what: Callable[[], bool], patience_s: float, doing: str) -> None:
        until = time.monotonic() + patience_s
        while not what():
            self._tick()
            if time.monotonic() > until:
                logs = "; ".join(process.log() for process in self._running.values())
                raise RunFailedError(f"{doing} took longer than {patience_s:.0f} s: {logs}")
            self.on_progress(doing, 0.0)
            time.sleep(_LOOK_S)

    # The rest -------------------------------------------------------------------------------

    def _come_to_rest(self) -> None:
        """No more faults, no more work; whoever was told to end does, and is followed by nobody."""
        for process in self._running.values():
            self._continue(process)
        self._unlock()
        self._due.clear()
        self._write(Act.REST, None, boot_ms())
        ending = [process for process in self._running.values() if process.ending]
        for process in ending:
            process.wait(DRAIN_S)
            self._has_ended(process)
        self._due.clear()
        for process in self._running.values():
            process.ask(do="health")  # which waits until its loop turns again
        for process in self._running.values():
            process.order(do="rest")
        self._read_slots(final=False)

    def _settle(self) -> None:
        """Until nothing is active any more: what runs has ended, and what is dead was swept."""
        swept_ms = POLICY.detection_ms(POLICY.http_grace_ms)
        patience_s = (LONGEST_MS + 3 * swept_ms) / 1000 + 10
        until = time.monotonic() + patience_s
        while self._active_jobs() and time.monotonic() < until:
            self._tick()
            self.on_progress("settling", 0.0)
            time.sleep(0.2)
        self._read_slots(final=True)

    def _active_jobs(self) -> int:
        return sum(active for active, _ in live_rows(self.store).values())

    def _read_slots(self, *, final: bool) -> None:
        """Each gateway's slots beside the store's rows, read until they agree or patience ends."""
        for process in self._running.values():
            reading = self._slots(process, final)
            until = time.monotonic() + BALANCE_S
            while not reading.balanced and time.monotonic() < until:
                time.sleep(0.1)
                reading = self._slots(process, final)
            self._book.write(reading)

    def _slots(self, process: GatewayProcess, final: bool) -> Slots:
        instance = instance_of(self._book_of(process.number))
        health = process.ask(do="health")
        active, orphaned = live_rows(self.store).get(instance, (0, 0))
        return Slots(
            boot_ms(),
            process.number,
            health["running"],
            health["queued"],
            health["finishing"],
            active,
            orphaned,
            final,
        )

    def _drain(self) -> None:
        for process in self._running.values():
            since = boot_ms()
            process.ending = True
            process.send(signal.SIGTERM)
            self._write(Act.TERM, process, since)
        for process in tuple(self._running.values()):
            self.on_progress("draining", 0.0)
            process.wait(DRAIN_S)
            self._has_ended(process)

    def _write(
        self, act: Act, process: GatewayProcess | None, since: int, detail: int | None = None
    ) -> None:
        number = None if process is None else process.number
        self._book.write(Deed(since, boot_ms(), act, number, detail))  # type: ignore[arg-type]


def all_events(store: Store) -> list[Event]:
    """Every event that the store has."""
    events: list[Event] = []
    after = 0
    while (page := store.execute(ReadEvents(after, 10_000))).events:
        events += page.events
        after = page.next_after
    return events


def live_rows(store: Store) -> dict[str, tuple[int, int]]:
    """Per owner: how many of its jobs are active, and how many are orphaned."""
    last: dict[str, Event] = {}
    for event in all_events(store):
        if event.kind is not Kind.STALE_RESULT:
            last[event.job_id] = event
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for event in last.values():
        if event.owner is not None and event.status in (Status.QUEUED, Status.RUNNING):
            counts[event.owner][0] += 1
        elif event.owner is not None and event.status is Status.ORPHANED:
            counts[event.owner][1] += 1
    return {owner: (active, orphaned) for owner, (active, orphaned) in counts.items()}
