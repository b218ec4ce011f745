"""Carries out a fleet's run: starts runners and producer, disturbs them, brings them to rest."""

from __future__ import annotations

import heapq
import itertools
import random
import signal
import time
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Final

from attrs import define, field

from unswept.adapters.chaos.books import Notebook
from unswept.adapters.chaos.driver import Progress, all_events
from unswept.adapters.chaos.fleet.load import LONG, LONG_MS, POLICY, tasks
from unswept.adapters.chaos.fleet.producer import answered, enqueue
from unswept.adapters.chaos.fleet.records import Begun, Deed, Done, Settled, read
from unswept.adapters.chaos.fleet.runner import DRAIN_MS, FINISH_MS
from unswept.adapters.chaos.fleet.witness import told
from unswept.adapters.chaos.places import Place
from unswept.adapters.chaos.processes import GatewayProcess, RunFailedError
from unswept.adapters.chaos.worker import Charge
from unswept.adapters.gateway.clock import boot_ms
from unswept.core.commands import Count, Settle, Store
from unswept.core.lease import Kind, RequeueRule, Status
from unswept.core.replies import PartitionCount

RUNNER: Final = "unswept.adapters.chaos.fleet.runner"
PRODUCER: Final = "unswept.adapters.chaos.fleet.producer"
LEAST_S: Final = 12.0
"""The producer takes no less time, so that a short run meets some faults too."""
SWEPT_S: Final = POLICY.detection_ms() / 1000
"""A dead runner's job is another's after so long."""
DRAIN_S: Final = (FINISH_MS + DRAIN_MS) / 1000 + 30
SPARED_S: Final = 30.0
"""For so long one runner after the other is spared, so that somebody is there to sweep."""
_LOOK_S: Final = 0.02
_COUNT_S: Final = 1.0
_FAULT_S: Final = (2.0, 6.0)
"""From one fault to the next."""
_AGAIN_S: Final = 0.2
"""Until somebody is looked for again, where there was nobody to befall."""
_RESTART_S: Final = (0.2, 1.5)
_STOP_S: Final = (SWEPT_S, SWEPT_S + 4.0)


class Act(StrEnum):
    """What is done to a runner, or seen of it."""

    START = "start"
    KILL = "kill"
    TERM = "term"
    """SIGTERM under load."""
    STOP = "stop"
    CONTINUE = "continue"
    END = "end"
    """SIGTERM when all is over."""
    ENDED = "ended"


_FIRST: Final = (Act.KILL, Act.STOP, Act.TERM)
_WEIGHTS: Final = (70, 15, 15)
_BY_US: Final = (0, -signal.SIGTERM, -signal.SIGKILL)
"""What a process returns that was told to end, or was before it could hear that."""


class RunnerProcess(GatewayProcess):
    """One runner, from its start to its end."""

    kind = "runner"


@define(eq=False)
class Driver:
    """One run."""

    place: Place
    store: Store
    folder: Path
    seed: int
    runners: int
    jobs: int
    program: str
    on_progress: Progress
    _book: Notebook = field(init=False)
    _draw: random.Random = field(init=False)
    _started: list[GatewayProcess] = field(factory=list, init=False)
    _running: dict[int, GatewayProcess] = field(factory=dict, init=False)
    """By slot."""
    _due: list[tuple[float, int, Callable[[], None]]] = field(factory=list, init=False)
    _order: itertools.count[int] = field(factory=itertools.count, init=False)
    _faults: list[Act] = field(factory=lambda: list(_FIRST), init=False)
    """Those that every run has, each of a runner at work; then they are drawn."""
    _long: frozenset[str] = field(init=False)
    """Jobs that take their time, and may be requeued."""
    _waiting: bool = field(default=True, init=False)
    """There is work that a runner may yet begin."""
    _calm: bool = field(default=False, init=False)
    """Nothing more is done to anybody."""
    _over: bool = field(default=False, init=False)
    """Who ends is followed by nobody."""
    _began: float = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Begin the driver's file."""
        self._book = Notebook(self.folder / "driver.jsonl")
        self._draw = random.Random(f"{self.seed} driver")
        self._long = frozenset(
            task.job_id
            for task in tasks(self.seed, self.jobs)
            if task.payload == LONG and task.requeue is RequeueRule.ALLOWED
        )
        self._began = time.monotonic()

    def run(self) -> None:
        """From the first start to the end of the last process."""
        for slot in range(self.runners):
            self._start(slot)
        producer = self._produce()
        self._disturb()
        while not self._calm or self._some_stopped():
            self._pass(_COUNT_S)
            total = self._count()
            if producer.code is None:
                self.on_progress("enqueuing", 0.0)
            else:
                self.on_progress("faults", 1 - (total.waiting + total.held) / self.jobs)
                self._waiting = total.waiting > 0
                # What the dead and the stopped hold is swept when all is calm, too.
                self._calm = not self._waiting and not self._faults
            if producer.code:
                raise RunFailedError(
                    f"the producer has ended with {producer.code}: {producer.log()}"
                )
        self._come_to_rest()

    def close(self) -> None:
        """End every process that is still there."""
        for process in self._started:
            process.end()
        self._book.close()

    # The faults -----------------------------------------------------------------------------

    def _disturb(self) -> None:
        if self._calm:
            return
        process = self._victim()
        if process is None:
            self._later(_AGAIN_S, self._disturb)
            return
        self._later(self._draw.uniform(*_FAULT_S), self._disturb)
        act = self._faults.pop(0) if self._faults else self._draw.choices(_FIRST, _WEIGHTS)[0]
        self._write(act, process)
        if act is Act.KILL:
            process.ending = True
            process.send(signal.SIGKILL)
        elif act is Act.TERM:
            process.ending = True
            process.send(signal.SIGTERM)
        else:
            process.stopped = True
            process.send(signal.SIGSTOP)
            self._later(self._draw.uniform(*_STOP_S), partial(self._continue, process))

    def _victim(self) -> GatewayProcess | None:
        passed_s = time.monotonic() - self._began
        if passed_s < _FAULT_S[0]:
            return None  # they have only just been started
        spared = int(passed_s / SPARED_S) % self.runners
        fit = [
            process
            for slot, process in sorted(self._running.items())
            if slot != spared and not process.stopped and not process.ending
        ]
        if self._faults and self._waiting:
            # A death of who does nothing leaves nothing to sweep.
            fit = [process for process in fit if self._at_work(process)]
        return self._draw.choice(fit) if fit else None

    def _at_work(self, process: GatewayProcess) -> bool:
        """Is it in the middle of work that another may do?"""
        book = self._book_of(process.number)
        lines = read(book) if book.exists() else []
        begun = {line.job_id for line in lines if isinstance(line, Begun)}
        done = {line.job_id for line in lines if isinstance(line, Done)}
        return not self._long.isdisjoint(begun - done)

    def _continue(self, process: GatewayProcess) -> None:
        if process.stopped:
            process.send(signal.SIGCONT)
            process.stopped = False
            self._write(Act.CONTINUE, process)

    def _some_stopped(self) -> bool:
        return any(process.stopped for process in self._running.values())

    # Runners --------------------------------------------------------------------------------

    def _start(self, slot: int) -> None:
        number = len(self._started) + 1
        charge = self._charge(number, self._book_of(number))
        log = self.folder / f"runner-{number}.log"
        process = RunnerProcess(self.program, number, slot, charge, log)
        self._started.append(process)
        self._running[slot] = process
        self._write(Act.START, process)

    def _book_of(self, number: int) -> Path:
        return self.folder / f"runner-{number}.jsonl"

    def _produce(self) -> GatewayProcess:
        charge = self._charge(0, self.folder / "producer.jsonl")
        producer = RunnerProcess(PRODUCER, 0, -1, charge, self.folder / "producer.log")
        self._started.append(producer)
        producer.order(seed=self.seed, jobs=self.jobs, least_s=LEAST_S)
        return producer

    def _charge(self, number: int, book: Path) -> Charge:
        return Charge(self.place.url_for(number), self.place.schema, str(book), "", "")

    def _has_ended(self, process: GatewayProcess) -> None:
        del self._running[process.slot]
        self._write(Act.ENDED, process)
        if not process.ending or process.code not in _BY_US:
            raise RunFailedError(
                f"runner {process.number} has ended by itself, with {process.code}: {process.log()}"
            )
        if not self._over:
            pause_s = self._draw.uniform(*_RESTART_S)
            self._later(pause_s, partial(self._start, process.slot))

    # The rest -------------------------------------------------------------------------------

    def _come_to_rest(self) -> None:
        """No more faults; until nothing is active, then everybody is told to end."""
        patience = time.monotonic() + 3 * SWEPT_S + LONG_MS / 1000 + 60
        while (total := self._count()).waiting or total.held:
            if time.monotonic() > patience:
                break  # which the verdict tells of
            self._pass(_COUNT_S)
            self.on_progress("settling", 0.0)
        self._settle()
        for task in tasks(self.seed, self.jobs):
            if task.again:
                enqueue(self.store, self._book, task, again=True)
        self._pass(_COUNT_S)  # in which somebody would claim what must not be claimed
        self._over, self._due = True, []
        for process in self._running.values():
            if not process.ending:
                process.ending = True
                self._write(Act.END, process)
                process.send(signal.SIGTERM)
        for process in tuple(self._running.values()):
            self.on_progress("draining", 0.0)
            process.wait(DRAIN_S)
            self._has_ended(process)

    def _settle(self) -> None:
        """What may not be requeued, and whose runner is gone, is settled by authority."""
        events = all_events(self.store)
        last = {event.job_id: event for event in events if event.kind is not Kind.STALE_RESULT}
        for event in last.values():
            if event.kind is Kind.ORPHAN:
                settle = Settle(event.job_id, event.epoch, Status.FAILED, "the driver")
                reply = answered(self.store, settle)
                self._book.write(Settled(event.job_id, event.epoch, told(reply)))

    def _count(self) -> PartitionCount:
        """Jobs that wait, and that are held; orphans are neither."""
        return answered(self.store, Count()).total

    # Time -----------------------------------------------------------------------------------

    def _later(self, seconds: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._due, (time.monotonic() + seconds, next(self._order), what))

    def _pass(self, seconds: float) -> None:
        """Do what is due meanwhile, and see who has ended."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            while self._due and self._due[0][0] <= time.monotonic():
                heapq.heappop(self._due)[2]()
            for process in tuple(self._running.values()):
                if process.code is not None:
                    self._has_ended(process)
            time.sleep(_LOOK_S)

    def _write(self, act: Act, process: GatewayProcess) -> None:
        self._book.write(Deed(boot_ms(), act.value, process.number))
