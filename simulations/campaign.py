"""Many seeds, spread over processes: the outcomes come back in the order of the seeds, so that a
campaign reports the same violation whatever the number of workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from multiprocessing import get_context
from typing import TYPE_CHECKING, Final

from attrs import define, evolve, field, frozen

from unswept.core.commands import Store
from unswept.simulations.designs import DESIGNS
from unswept.simulations.marks import Mark
from unswept.simulations.run import Found, Outcome, Run, Settings
from unswept.simulations.timeline import StoreClock, Timeline

if TYPE_CHECKING:
    from unswept.simulations.trace import Trace

EPOCH: Final = 1_700_000_000_000
"""Where the store clock of every run begins; only differences matter."""
DEFAULT_SEEDS: Final = 20

OpenStore = Callable[[StoreClock, int], AbstractContextManager[Store | None]]
"""Opens an empty store under test for a seed, on the simulator's clock; it yields None where the
pure store runs alone. It must be picklable."""
OpenTrace = Callable[[int], AbstractContextManager["Trace"]]
"""Opens the trace of a seed. It must be picklable."""


@frozen
class Task:
    """One run, and whether it is to be run twice and compared."""

    settings: Settings
    open_store: OpenStore
    twice: bool
    open_trace: OpenTrace | None = None
    """Of the first of two runs: the second shows, untraced, that tracing changes nothing."""


@define
class Checked:
    """A run's outcome; `same` is False if a second run of the same seed differed."""

    outcome: Outcome
    same: bool = True


def run_seed(
    settings: Settings, open_store: OpenStore, open_trace: OpenTrace | None = None
) -> Outcome:
    """One seed, from nothing to its end or its first violation."""
    clock = StoreClock(Timeline(), EPOCH)
    tracing = nullcontext() if open_trace is None else open_trace(settings.seed)
    with open_store(clock, settings.seed) as store, tracing as trace:
        return Run(settings, store, clock, trace).outcome()


def check_seed(task: Task) -> Checked:
    """Run a seed; a violation, or a task that asks for it, is run again and must be the same."""
    outcome = run_seed(task.settings, task.open_store, task.open_trace)
    if not task.twice and outcome.violation is None:
        return Checked(outcome)
    again = run_seed(task.settings, task.open_store)
    return Checked(outcome, same=again.digest == outcome.digest)


def run_seeds(
    settings: Settings,
    seeds: Sequence[int],
    open_store: OpenStore,
    workers: int,
    open_trace: OpenTrace | None = None,
) -> Iterator[Checked]:
    """Run seeds in order, the first of them twice; stop by closing the iterator."""
    tasks = [
        Task(evolve(settings, seed=seed), open_store, twice=index == 0, open_trace=open_trace)
        for index, seed in enumerate(seeds)
    ]
    if workers == 1 or len(tasks) == 1:
        yield from map(check_seed, tasks)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(check_seed, task) for task in tasks]
        try:
            for future in futures:
                yield future.result()
        finally:
            for future in futures:
                future.cancel()


@define
class Totals:
    """What a campaign's runs add up to."""

    seeds: int = 0
    commands: int = 0
    simulated_ms: int = 0
    live_jobs_swept: int = 0
    faults: Counter[str] = field(factory=Counter)
    events: Counter[str] = field(factory=Counter)
    sometimes: Counter[str] = field(factory=Counter)
    checked: Counter[str] = field(factory=Counter)
    violation: Found | None = None
    violated_seed: int | None = None
    unequal_seed: int | None = None

    def add(self, checked: Checked) -> None:
        """Add one run."""
        outcome = checked.outcome
        self.seeds += 1
        self.commands += outcome.commands
        self.simulated_ms += outcome.simulated_ms
        self.live_jobs_swept += outcome.live_jobs_swept
        self.faults += outcome.faults
        self.events += outcome.events
        self.sometimes += outcome.sometimes
        self.checked += outcome.checked
        if outcome.violation is not None and self.violation is None:
            self.violation, self.violated_seed = outcome.violation, outcome.seed
        if not checked.same and self.unequal_seed is None:
            self.unequal_seed = outcome.seed

    def missing(self) -> list[str]:
        """What should have happened sometimes and never did."""
        return [mark.value for mark in Mark if not self.sometimes[mark.value]]


def broken_designs() -> list[str]:
    """The designs that the laws must catch."""
    return [design.name for design in DESIGNS.values() if not design.sound]
