"""The headline table: what broken designs of a sweeper do to heartbeated jobs, and the real one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from attrs import evolve

from unswept.core.commands import Store
from unswept.simulations import headline
from unswept.simulations.campaign import run_seed
from unswept.simulations.designs import DESIGNS
from unswept.simulations.headline import cells, fill
from unswept.simulations.profiles import PROFILES
from unswept.simulations.run import Settings
from unswept.simulations.timeline import StoreClock
from unswept.simulations.workers import here


@contextmanager
def pure(clock: StoreClock, seed: int) -> Iterator[Store | None]:
    yield None


def test_the_real_design_sweeps_no_heartbeated_job_and_a_broken_one_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Under the same faults, to the end of each run."""
    wanted = [("unswept", "datacentre"), ("blanket-sweep", "datacentre")]
    monkeypatch.setattr(headline, "SEEDS", (1,))
    real, broken = fill(wanted, pure, here())
    assert (real.design, real.heartbeated_jobs_swept) == ("unswept", 0)
    assert real.jobs_swept > 0
    assert broken.heartbeated_jobs_swept > 0


def test_every_design_that_is_about_sweeping_has_its_row() -> None:
    """And each of them a cell for every profile."""
    rows = {design for design, _ in cells()}
    assert {"unswept", "blanket-sweep", "single-observation", "slow-heart", "lock-blind"} <= rows
    assert all(DESIGNS[row].sound or DESIGNS[row].of_gateways for row in rows)
    assert len(cells()) == len(rows) * len(PROFILES)


def test_counting_ends_no_run() -> None:
    """A run that would have ended at its first violation goes on, and is the same up to there."""
    faults = PROFILES["datacentre"]
    settings = Settings(1, 0.5, faults=faults, design="blanket-sweep", runners=0)
    ended = run_seed(settings, pure)
    counted = run_seed(evolve(settings, counting=True), pure)
    assert ended.violation is not None
    assert counted.violation is None
    assert counted.simulated_ms == int(0.5 * 3_600_000) > ended.simulated_ms
    assert counted.heartbeated_jobs_swept >= ended.heartbeated_jobs_swept
