"""Where instances differ that lack a rule: each as a function over the machines of the core."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Final

from attrs import fields

from unswept.core.commands import Target
from unswept.core.heart import Heart, Phase, Pulse
from unswept.core.policy import LeasePolicy
from unswept.core.records import changed
from unswept.core.sweeper import Sweeper
from unswept.core.units import MonoMs

_NEVER: Final = MonoMs(2**62)


def untroubled(heart: Heart, now: MonoMs) -> Heart:
    """What a sweeper believes of its heart that heeds no gap in its own beats."""
    if heart.pulse is None or heart.phase not in (Phase.STEADY, Phase.FAINT):
        return heart
    pulse = Pulse(now, now, MonoMs(0), MonoMs(0))
    return changed(heart, phase=Phase.STEADY, pulse=pulse)


def last_pass(sweeper: Sweeper) -> Sweeper:
    """A sweeper that will not look again, once it has looked or is looking."""
    if sweeper.last_number == 0:
        return sweeper
    return changed(sweeper, next_pass_at=_NEVER)


def at_first_sight(policy: LeasePolicy) -> LeasePolicy:
    """The policy of a housekeeper that waits for no window."""
    numbers = {each.name: getattr(policy, each.name) for each in fields(LeasePolicy)}
    return LeasePolicy.unchecked(**{**numbers, "confirm_after_ms": 0})


def without_living(
    targets: tuple[Target, ...], pids: Mapping[str, int], alive: Container[int]
) -> tuple[Target, ...]:
    """The targets whose pids nobody has on this host, whoever has them."""
    return tuple(target for target in targets if pids.get(target.job_id) not in alive)
