"""SQL with one guard removed: the run that sees it shrinks to a few steps, which the mended store
carries out as the pure one does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest

from tests.adapters.test_conformance_sqlite import WRONG_GUARDS, queries_with
from unswept.adapters.sqlite import SqliteStore
from unswept.adapters.sqlite import store as store_module
from unswept.core.commands import Store
from unswept.core.units import MonoMs, Ms
from unswept.simulations.campaign import run_seed
from unswept.simulations.instance import Instance
from unswept.simulations.run import Run, Settings
from unswept.simulations.script import carried_out
from unswept.simulations.shrinking import shrink
from unswept.simulations.timeline import StoreClock
from unswept.spec.observations import Work

AT_MOST = 15
SEES_ALL = 5
"""The first seed that comes upon each fault below."""


@contextmanager
def in_memory(clock: StoreClock, seed: int) -> Iterator[Store | None]:
    with SqliteStore("sqlite::memory:", clock=clock) as store:
        yield store


@pytest.mark.parametrize(
    ("fault", "verb"),
    [
        ("L1: the sweep takes a deadline equal to now", "Sweep"),
        ("L2: the sweep ignores the beats", "Sweep"),
        ("L7: a start goes through under a cancel", "Start"),
    ],
)
def test_a_removed_guard_shows_itself_in_few_steps(fault: str, verb: str) -> None:
    """The last step is the command whose guard is gone; with the guard the stores agree."""
    with mock.patch.object(store_module, "QUERIES", queries_with(WRONG_GUARDS[fault])):
        settings = next(
            settings
            for seed in (SEES_ALL, *range(1, 41))
            if run_seed(settings := Settings(seed), in_memory).violation is not None
        )
        script = shrink(settings, in_memory, "sqlite::memory:", "1.0").script
        again = carried_out(script.steps, "unswept", in_memory)
    assert (script.law, script.verb) == ("LOCKSTEP", verb)
    assert len(script.steps) < AT_MOST
    assert again is not None
    assert (again.offence, again.index) == (script.offence, len(script.steps) - 1)
    assert carried_out(script.steps, "unswept", in_memory) is None


def test_a_law_that_the_pure_store_breaks_is_searched_without_the_other() -> None:
    """The store under test is opened for the run alone: it takes a multiple of the time, and no law
    but LOCKSTEP looks at it."""
    opened = []

    @contextmanager
    def counted(clock: StoreClock, seed: int) -> Iterator[Store | None]:
        opened.append(seed)
        with in_memory(clock, seed) as store:
            yield store

    def without_any_grant(run: Run, instance: Instance, job_id: str, *rest: Any) -> None:
        run._judge("L11", Work(instance.name, job_id, rest[1], MonoMs(0), None, Ms(0), Ms(0)))

    with mock.patch.object(Run, "working", without_any_grant):
        small = shrink(Settings(1, hours=0.2), counted, "sqlite::memory:", "1.0")
    assert (small.script.law, small.script.store) == ("L11", "sqlite::memory:")
    assert small.run_tries > 1
    assert opened == [1]
