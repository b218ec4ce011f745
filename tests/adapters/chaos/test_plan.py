"""The plan: drawn from the seed alone, with some of everything, and somebody left to sweep."""

from __future__ import annotations

from collections import Counter

import pytest

from unswept.adapters.chaos.plan import FIRST_MS, ROUND_MS, Fault, plan
from unswept.core.errors import MisuseError

FILE = tuple(fault for fault in Fault if fault not in (Fault.CUT, Fault.RESTART))
LENGTH_MS = 18_000


def test_the_same_seed_gives_the_same_plan() -> None:
    """And another one another."""
    one, same, other = (plan(seed, LENGTH_MS, 4, tuple(Fault)) for seed in (1, 1, 2))
    assert one == same != other


@pytest.mark.parametrize("faults", [FILE, tuple(Fault)], ids=["file", "server"])
@pytest.mark.parametrize("seed", range(20))
def test_a_short_run_has_every_fault_of_one_gateway_and_one_of_all(
    faults: tuple[Fault, ...], seed: int
) -> None:
    """Two rounds of three are enough, for no fault is drawn twice before each was once."""
    steps = plan(seed, LENGTH_MS, 4, faults)
    single = Counter(step.fault for step in steps if step.slot is not None)
    assert set(single) == set(faults) - {Fault.LOCK, Fault.RESTART}
    assert sum(step.slot is None for step in steps) == 1


def test_a_long_run_has_every_fault_again_and_again() -> None:
    """Both of those that befall all gateways, too."""
    counts = Counter(step.fault for step in plan(3, 600_000, 4, tuple(Fault)))
    assert set(counts) == set(Fault)
    assert min(counts.values()) > 10


def test_each_round_spares_one_gateway() -> None:
    """And befalls each of the others once."""
    rounds = 20
    steps = plan(5, rounds * ROUND_MS, 4, tuple(Fault))
    for number in range(rounds):
        began = FIRST_MS + number * ROUND_MS
        slots = [
            step.slot
            for step in steps
            if began <= step.at_ms < began + ROUND_MS and step.slot is not None
        ]
        assert len(slots) == len(set(slots)) == 3


def test_steps_come_in_their_order_and_in_time() -> None:
    """None begins after the faults are over."""
    times = [step.at_ms for step in plan(9, 60_000, 5, tuple(Fault))]
    assert times == sorted(times)
    assert max(times) < 60_000


@pytest.mark.parametrize(("seed", "instances"), [(-1, 4), (1, 1), (1, 101)])
def test_what_cannot_be_planned_is_refused(seed: int, instances: int) -> None:
    """With one gateway nobody would be there to sweep."""
    with pytest.raises(MisuseError):
        plan(seed, LENGTH_MS, instances, FILE)
