"""The simulator on SQLite: in lockstep with the pure store, and quick to see where they part."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest
from attrs import evolve

from tests.adapters.test_conformance_sqlite import WRONG_GUARDS, queries_with
from unswept.adapters.sqlite import SqliteStore
from unswept.adapters.sqlite import store as store_module
from unswept.adapters.urls import SimulatedStore
from unswept.core.commands import Store
from unswept.core.errors import MisuseError
from unswept.simulations.campaign import run_seed
from unswept.simulations.run import Settings
from unswept.simulations.timeline import StoreClock, Timeline


@contextmanager
def in_memory(clock: StoreClock, seed: int) -> Iterator[Store | None]:
    with SqliteStore("sqlite::memory:", clock=clock) as store:
        yield store


@pytest.mark.parametrize("seed", [1, 2])
def test_sqlite_keeps_step(seed: int) -> None:
    """Under faults every reply of SQLite equals the pure store's, and so do all rows at the end."""
    outcome = run_seed(Settings(seed, hours=1), SimulatedStore("sqlite:"))
    assert outcome.violation is None
    assert outcome.checked["LOCKSTEP"] > outcome.commands


@pytest.mark.parametrize(
    ("fault", "settings"),
    [
        ("L1: the sweep takes a deadline equal to now", Settings(1, faults=("clock-edge", "cut"))),
        # One runner claims again what was taken from it: the owner is right, and the epoch is not.
        (
            "L3: complete drops the epoch",
            Settings(10, instances=1, runners=1, faults=("old-echo", "stall", "cut")),
        ),
    ],
)
def test_a_wrong_guard_is_seen_in_lockstep(fault: str, settings: Settings) -> None:
    """SQL that differs from the rule by one comparison gives another reply within some seeds; the
    law that it breaks by that is named."""
    with mock.patch.object(store_module, "QUERIES", queries_with(WRONG_GUARDS[fault])):
        for seed in (settings.seed, *range(1, 41)):  # the first that sees it, as things stand
            violation = run_seed(evolve(settings, seed=seed), in_memory).violation
            if violation is not None:
                assert violation.law == "LOCKSTEP"
                assert f"; by this it breaks {fault[:2]}: " in violation.offence
                return
    pytest.fail("40 seeds did not see it")


def test_the_simulator_touches_no_file_that_is_there(tmp_path: Path) -> None:
    """A store named by path is made anew for each run; what is there already is left alone."""
    path = tmp_path / "jobs.db"
    (tmp_path / "jobs.db.7").write_text("mine")
    opener = SimulatedStore(f"sqlite:{path}")
    for name in ("jobs.db.7-2", "jobs.db.7-3"):
        with opener(StoreClock(Timeline(), 0), 7):
            assert (tmp_path / name).exists()
    assert (tmp_path / "jobs.db.7").read_text() == "mine"


def test_other_urls_are_refused() -> None:
    """A URL of no store that can be simulated is named, with those that can."""
    with pytest.raises(MisuseError, match="mysql"):
        SimulatedStore("mysql:x")
