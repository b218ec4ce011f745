"""Swarm: each seed draws its own mix of the faults that are asked for, and how hard each strikes.

Where all strike at once they hide each other's work; where each has its one rate, what takes many
of one kind and none of another is never met.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from random import Random
from typing import Final

from attrs import frozen

from unswept.simulations.faults import Fault
from unswept.simulations.faults.fault import CALM_DRIFT_PPM
from unswept.simulations.network import Weather

_SHARES: Final = (0.2, 0.4, 0.6)
"""Which share of the faults a seed has, on average."""
_HARDEST: Final = 3.0
"""A fault strikes up to so many times as often as its rate says, or as seldom."""


@frozen
class Drawn:
    """A fault of this seed, and its intensity: a factor of its rate."""

    fault: Fault
    intensity: float = 1.0


def draw(wanted: Sequence[Fault], rng: Random) -> tuple[Drawn, ...]:
    """This seed's mix; one or two faults that are asked for by name are all there."""
    if len(wanted) < 3:
        return tuple(Drawn(fault) for fault in wanted)
    share = rng.choice(_SHARES)
    mix = [fault for fault in wanted if rng.random() < share] or [rng.choice(wanted)]
    return tuple(Drawn(fault, exp(rng.uniform(-log(_HARDEST), log(_HARDEST)))) for fault in mix)


def weather_of(mix: Sequence[Drawn]) -> Weather:
    """The network's weather under these faults."""
    found = [
        drawn.fault.weather.times(drawn.intensity)
        for drawn in mix
        if drawn.fault.weather is not None
    ]
    return Weather(
        lost=max((w.lost for w in found), default=0.0),
        answer_lost=max((w.answer_lost for w in found), default=0.0),
        repeated=max((w.repeated for w in found), default=0.0),
        longest_echo_ms=max((w.longest_echo_ms for w in found), default=0),
        delayed=max((w.delayed for w in found), default=0.0),
        longest_delay_ms=max((w.longest_delay_ms for w in found), default=0),
    )


def drift_ppm_of(mix: Sequence[Drawn]) -> int:
    """How much the hosts' clocks gain or lose at most, in parts per million."""
    return max((drawn.fault.drift_ppm for drawn in mix), default=CALM_DRIFT_PPM)
