"""Profiles and swarms: which faults a run has, and how hard they strike."""

from __future__ import annotations

from random import Random

import pytest

from unswept.core.errors import MisuseError
from unswept.simulations.faults import FAULTS
from unswept.simulations.profiles import PROFILES, faults_of, named
from unswept.simulations.swarm import draw, weather_of


def test_profiles_name_faults_that_are_there() -> None:
    """Each once, and every fault is in one beside `all`."""
    places = [members for name, members in PROFILES.items() if name != "all"]
    for members in places:
        assert len(set(members)) == len(members)
    assert {fault for members in places for fault in members} == FAULTS.keys()


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_is_found_again(profile: str) -> None:
    """What a replay prints is read as the same faults."""
    faults = faults_of(profile)
    assert set(faults) == set(PROFILES[profile])
    assert named(faults) == profile


def test_profiles_and_faults_mix() -> None:
    """A list may have both; the faults come in their own order, each once."""
    mixed = faults_of("calm, outage,loss")
    assert mixed == tuple(name for name in FAULTS if name in {*PROFILES["calm"], "outage"})
    assert faults_of(named(mixed)) == mixed


def test_a_word_that_is_neither_is_refused() -> None:
    """The message names it."""
    with pytest.raises(MisuseError, match="got bogus"):
        faults_of("calm,bogus")


def test_a_seed_draws_its_own_mix_and_intensities() -> None:
    """The same seed the same, another another; a few at most threefold, and none below a third."""
    wanted = list(FAULTS.values())
    mixes = [draw(wanted, Random(seed)) for seed in (1, 1, 2)]
    assert mixes[0] == mixes[1] != mixes[2]
    factors = [drawn.intensity for mix in mixes for drawn in mix]
    assert len(set(factors)) > 5
    assert all(1 / 3 <= factor <= 3 for factor in factors)


def test_what_is_asked_for_by_name_is_there() -> None:
    """One or two faults strike in every seed, at their own rates."""
    wanted = [FAULTS["loss"], FAULTS["crash"]]
    for seed in range(20):
        mix = draw(wanted, Random(seed))
        assert [drawn.fault for drawn in mix] == wanted
        assert [drawn.intensity for drawn in mix] == [1.0, 1.0]


def test_bad_weather_scales() -> None:
    """A fault of the network is as hard as its intensity says."""
    mix = draw(list(FAULTS.values()), Random(5))
    chances = {d.fault.name: d.intensity for d in mix if d.fault.name == "loss"}
    assert chances, "seed 5 has no loss: take another"
    assert weather_of(mix).lost == pytest.approx(0.01 * chances["loss"])
