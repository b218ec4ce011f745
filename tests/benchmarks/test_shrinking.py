"""How long it takes to shrink a violation that a simulated day has found."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from pytest_benchmark.fixture import BenchmarkFixture

from unswept.core.commands import Store
from unswept.simulations.campaign import run_seed
from unswept.simulations.run import Settings
from unswept.simulations.shrinking import shrink
from unswept.simulations.timeline import StoreClock

DAY = Settings(1, hours=24, design="slow-heart", faults=("loss", "flaps"))
"""Few faults, so that it takes hours until they meet."""


@contextmanager
def pure(clock: StoreClock, seed: int) -> Iterator[Store | None]:
    yield None


def test_a_violation_of_a_day_is_shrunk(benchmark: BenchmarkFixture) -> None:
    """Beside the time that it takes to find the violation, in the same run."""
    began = time.perf_counter()
    found = run_seed(DAY, pure)
    finding = time.perf_counter() - began
    assert found.violation is not None
    began = time.perf_counter()
    small = benchmark.pedantic(shrink, (DAY, pure, "memory:", "1.0"), rounds=1)  # type: ignore[no-untyped-call]
    shrinking = time.perf_counter() - began
    benchmark.extra_info["found in, s"] = round(finding, 1)
    benchmark.extra_info["shrunk in, s"] = round(shrinking, 1)
    print(
        f"\nfound after {found.violation.at_ms / 3_600_000:.1f} simulated hours and"
        f" {found.commands:,} commands in {finding:.1f} s, shrunk to"
        f" {len(small.script.steps)} steps in {shrinking:.1f} s"
    )
    assert len(small.script.steps) < 15
