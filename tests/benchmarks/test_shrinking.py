"""How long it takes to shrink a violation that a simulated day has found."""

from __future__ import annotations

import time

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from unswept.simulations.campaign import pure_alone, run_seed
from unswept.simulations.run import Settings
from unswept.simulations.shrinking import shrink

DAYS = {
    "few faults": Settings(1, hours=24, design="slow-heart", faults=("loss", "flaps")),
    "all faults": Settings(
        1, hours=24, design="joins-corpses", instances=5, runners=0, jobs=20, job_minutes=30.0
    ),
}
"""It takes hours until a law is broken: a few faults must meet, or one command two rare rows."""
AT_MOST_S = 30.0
"""Of this process's own time: a busy machine is nobody's fault."""


@pytest.mark.parametrize("day", DAYS.values(), ids=DAYS)
def test_a_violation_of_a_day_is_shrunk(benchmark: BenchmarkFixture, day: Settings) -> None:
    """Beside the time that it takes to find the violation, in the same run."""
    began = time.process_time()
    found = run_seed(day, pure_alone)
    finding = time.process_time() - began
    assert found.violation is not None
    assert found.violation.at_ms > 3_600_000
    began = time.process_time()
    small = benchmark.pedantic(shrink, (day, pure_alone, "memory:", "1.0"), rounds=1)  # type: ignore[no-untyped-call]
    shrinking = time.process_time() - began
    benchmark.extra_info["found in, s"] = round(finding, 1)
    benchmark.extra_info["shrunk in, s"] = round(shrinking, 1)
    print(
        f"\nfound after {found.violation.at_ms / 3_600_000:.1f} simulated hours and"
        f" {found.commands:,} commands in {finding:.1f} s, shrunk to"
        f" {len(small.script.steps)} steps in {shrinking:.1f} s"
    )
    assert len(small.script.steps) < 15
    assert shrinking < AT_MOST_S
