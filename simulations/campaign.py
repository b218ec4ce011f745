"""Many seeds, spread over workers or shards: the outcomes come back in the order of the seeds, so
that a campaign reports the same whatever their number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from typing import TYPE_CHECKING, Final, TypeVar

from attrs import define, evolve, field, frozen

from unswept.core.commands import Store
from unswept.simulations.designs import DESIGNS
from unswept.simulations.marks import Mark
from unswept.simulations.run import Found, Outcome, Run, Settings
from unswept.simulations.timeline import StoreClock, Timeline
from unswept.simulations.workers import Workers, in_order

if TYPE_CHECKING:
    from unswept.simulations.trace import Trace

T = TypeVar("T")

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

    @property
    def ends_the_campaign(self) -> bool:
        """Is there nothing to gain from later seeds?"""
        return self.outcome.violation is not None or not self.same


@frozen
class Shard:
    """One part of a campaign that is cut into equal ones: number `index`, from 1, of `count`."""

    index: int = 1
    count: int = 1

    def of(self, whole: Sequence[T]) -> list[T]:
        """Its part: every `count`-th, so that no two shards share one and none is left out."""
        return list(whole[self.index - 1 :: self.count])


@contextmanager
def pure_alone(clock: StoreClock, seed: int) -> Iterator[Store | None]:
    """Opens no store under test."""
    yield None


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


def tasks(
    settings: Settings,
    seeds: Sequence[int],
    open_store: OpenStore,
    open_trace: OpenTrace | None = None,
) -> list[Task]:
    """What there is to run, the first seed twice."""
    return [
        Task(evolve(settings, seed=seed), open_store, twice=index == 0, open_trace=open_trace)
        for index, seed in enumerate(seeds)
    ]


def run_seeds(todo: Iterable[Task], workers: Workers) -> Iterator[Checked]:
    """Run seeds in order, up to the first that ends the campaign."""
    with closing(in_order(workers, check_seed, todo)) as outcomes:
        yield from up_to_the_end(outcomes)


def up_to_the_end(outcomes: Iterable[Checked]) -> Iterator[Checked]:
    """The outcomes up to the first that ends the campaign."""
    for checked in outcomes:
        yield checked
        if checked.ends_the_campaign:
            return


@define
class Totals:
    """What a campaign's runs add up to."""

    seeds: int = 0
    commands: int = 0
    simulated_ms: int = 0
    live_jobs_swept: int = 0
    heartbeated_jobs_swept: int = 0
    faults: Counter[str] = field(factory=Counter)
    events: Counter[str] = field(factory=Counter)
    sometimes: Counter[str] = field(factory=Counter)
    checked: Counter[str] = field(factory=Counter)
    coverage: Counter[str] = field(factory=Counter)
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
        self.heartbeated_jobs_swept += outcome.heartbeated_jobs_swept
        self.faults += outcome.faults
        self.events += outcome.events
        self.sometimes += outcome.sometimes
        self.checked += outcome.checked
        self.coverage += outcome.coverage
        if outcome.violation is not None and self.violation is None:
            self.violation, self.violated_seed = outcome.violation, outcome.seed
        if not checked.same and self.unequal_seed is None:
            self.unequal_seed = outcome.seed

    @property
    def ended(self) -> bool:
        """Has one of them ended the campaign?"""
        return self.violation is not None or self.unequal_seed is not None

    def missing(self) -> list[str]:
        """What should have happened sometimes and never did."""
        return [mark.value for mark in Mark if not self.sometimes[mark.value]]


def broken_designs() -> list[str]:
    """The designs that the laws must catch."""
    return [design.name for design in DESIGNS.values() if not design.sound]
