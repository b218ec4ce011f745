"""The matrix of transition x fault: what is counted, for how long, and what is owed."""

from __future__ import annotations

from collections import Counter

from unswept.core.lease import Kind
from unswept.simulations.coverage import AFTERMATH_MS, Coverage, Matrix, cell
from unswept.simulations.timeline import Timeline


def test_a_transition_counts_for_every_fault_that_is_felt() -> None:
    """From a fault's beginning until a minute after its end, and for what lies over the run."""
    timeline = Timeline()
    coverage = Coverage(timeline, ["drift"])
    coverage.count(Kind.ADMIT)
    coverage.lasts("outage", 5_000)
    coverage.lasts("outage", 10_000)
    coverage.count(Kind.RENEW, 3)
    timeline.run(10_000 + AFTERMATH_MS - 1)
    coverage.count(Kind.HEAL)
    timeline.run(10_000 + AFTERMATH_MS)
    coverage.count(Kind.HEAL)
    assert coverage.cells() == {
        cell(Kind.ADMIT, "drift"): 1,
        cell(Kind.RENEW, "drift"): 3,
        cell(Kind.RENEW, "outage"): 3,
        cell(Kind.HEAL, "drift"): 2,
        cell(Kind.HEAL, "outage"): 1,
    }


def test_cells_are_added_up_once() -> None:
    """Asking for the counts does not change them."""
    coverage = Coverage(Timeline(), ["loss"])
    coverage.count(Kind.CLAIM)
    assert coverage.cells() == coverage.cells() == {"claim × loss": 1}


def test_empty_cells_are_named() -> None:
    """Every transition under every fault, but for what was met."""
    met = Counter({cell(kind, "loss"): 1 for kind in Kind})
    assert Matrix.of(["loss"], fleet=True).empty(met) == []
    both = Matrix.of(["loss", "crash"], fleet=True)
    assert both.empty(met) == [cell(kind, "crash") for kind in Kind]


def test_gateways_alone_owe_nothing_of_the_fleet() -> None:
    """What only a producer, a runner or a consumer does cannot happen without them."""
    alone = Matrix.of(["loss", "consumer-lost"], fleet=False)
    assert alone.faults == ("loss",)
    assert {kind for kind in Kind if kind not in alone.kinds} == {
        Kind.ENQUEUE,
        Kind.CLAIM,
        Kind.RELEASE,
        Kind.EXPIRE,
    }


def test_rows_and_columns_that_are_too_empty_are_said() -> None:
    """A third of the faults are owed to each transition, of the transitions to each fault."""
    met = Counter({cell(kind, "loss"): 1 for kind in Kind})
    both = Matrix.of(["loss", "crash"], fleet=True)
    assert both.thin(met) == [f"0 of {len(Kind)} transitions under crash, too few"]
    del met[cell(Kind.HEAL, "loss")]
    assert "heal under 0 of 2 faults, too few" in both.thin(met)
