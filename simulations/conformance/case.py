"""The kit as a test case: a tour, a search through drawn histories, and what both must have met."""

from __future__ import annotations

import unittest
from collections import Counter
from collections.abc import Callable, Collection
from typing import Final

from hypothesis import Phase, Verbosity, given, settings
from hypothesis import strategies as st

from unswept.core.world import all_commands
from unswept.simulations.conformance.asking import ASKS
from unswept.simulations.conformance.coverage import SEARCH, TOUR, Coverage
from unswept.simulations.conformance.histories import history
from unswept.simulations.conformance.lockstep import shortened
from unswept.simulations.conformance.stores import MakeStore, NonconformanceError, ShortfallError
from unswept.simulations.conformance.tours import tour

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
