"""Broken designs: each is caught by the law that it should be, and the canary in every campaign."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from attrs import evolve

from unswept.simulations import mutants
from unswept.simulations.campaign import broken_designs, pure_alone, run_seed
from unswept.simulations.designs import DESIGNS
from unswept.simulations.faults import FAULTS
from unswept.simulations.mutants import (
    HarnessBrokenError,
    check_canary,
    try_canary,
    try_designs,
)
from unswept.simulations.run import Settings
from unswept.simulations.workers import here
from unswept.spec.laws import BY_ID

ONE_OF_EACH_LAW = sorted({min(DESIGNS[name].caught_by): name for name in broken_designs()}.values())


@pytest.mark.parametrize("design", ONE_OF_EACH_LAW)
def test_a_broken_design_is_caught(design: str) -> None:
    """By a law that it should break, and its seed shows it again. Campaigns try them all."""
    [verdict] = try_designs(Settings(seed=1), [design], 20, here())
    assert verdict.law in DESIGNS[design].caught_by, verdict
    assert verdict.caught
    assert verdict.found is not None
    assert verdict.seed is not None
    assert verdict.found.last_lines
    assert str(verdict.offence) not in "".join(verdict.found.last_lines)
    again = Settings(verdict.seed, design=design, faults=DESIGNS[design].under)
    assert run_seed(again, pure_alone).violation == verdict.found


def test_there_are_many_broken_designs() -> None:
    """The rules that a broken design lacks are many."""
    assert len(broken_designs()) >= 38


def test_the_laws_and_faults_that_a_design_names_are_there() -> None:
    """A design names laws and faults by their ids, and never a law that it is excused."""
    for design in DESIGNS.values():
        assert design.caught_by <= BY_ID.keys()
        assert not design.caught_by & design.excused
        assert set(design.under) <= FAULTS.keys()


def test_a_design_that_holds_survives() -> None:
    """What no law catches has no law, and is not caught."""
    settings = Settings(seed=1, hours=0.1)
    [verdict] = try_designs(settings, ["unswept"], 1, here())
    assert (verdict.law, verdict.caught, verdict.found) == (None, False, None)


def test_the_canary_is_caught_at_once() -> None:
    """It costs next to nothing: the first seed shows it within its first minutes."""
    verdict = try_canary()
    assert verdict.seed == 1
    assert verdict.found is not None
    assert verdict.found.at_ms < 300_000


def test_a_canary_that_another_law_catches_says_nothing_of_the_harness_yet() -> None:
    """Only where the design under test holds: its fault is the canary's too."""
    verdict = evolve(try_canary(), law="L3")
    with pytest.raises(HarnessBrokenError, match=r"must be caught by WF .* caught by L3"):
        check_canary(verdict)


def test_a_harness_that_misses_the_canary_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Laws that see nothing end the campaign with an error that says what it means."""
    monkeypatch.setattr(mutants, "run_seed", lambda *_: SimpleNamespace(violation=None))
    with pytest.raises(HarnessBrokenError, match=r"must be caught by WF .* caught by nothing"):
        try_canary()
