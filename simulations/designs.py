"""Designs under test, as data: the real one, and broken ones that the laws must catch."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from attrs import frozen


@frozen
class Design:
    """How an instance differs from the real design."""

    name: str
    sentence: str
    sound: bool = False
    """The laws hold for it."""
    blanket_sweep_at_boot: bool = False
    """On boot every active job of another instance is marked orphaned, whatever its lease says."""
    one_observation: bool = False
    """A suspect is swept as soon as an answer names it."""
    hurries: bool = True
    """The heart beats every quarter of a heartbeat while a suspicion is open, and a gap is judged
    by that."""
    beats_renew: bool = True
    """The beat that proves the heart executes the renewal statement."""
    heeds_locks: bool = True
    excused: frozenset[str] = frozenset()
    """Laws on how a sweeper behaves that the design breaks by intention: it must be caught by what
    it does to a live job."""
    """Locked rows are not named as suspects, and suspects whose rows are locked are forgotten."""


_CONDUCT: Final = frozenset({"L10", "L12a"})

DESIGNS: Final[Mapping[str, Design]] = MappingProxyType(
    {
        design.name: design
        for design in (
            Design("unswept", "The real design.", sound=True),
            Design(
                "blanket-sweep",
                "A new instance marks every active job of the others orphaned when it boots.",
                blanket_sweep_at_boot=True,
            ),
            Design(
                "single-observation",
                "A lease that looks expired is swept at first sight.",
                one_observation=True,
                excused=_CONDUCT,
            ),
            Design(
                "slow-heart",
                "The sweeper beats once per heartbeat while it suspects, and takes that for proof.",
                hurries=False,
                excused=_CONDUCT,
            ),
            Design(
                "blind-heart",
                "The sweeper's beat touches only the instances table, not the leases.",
                beats_renew=False,
                excused=_CONDUCT,
            ),
            Design(
                "lock-blind",
                "The sweeper suspects and sweeps rows that somebody has locked.",
                heeds_locks=False,
                excused=_CONDUCT,
            ),
        )
    }
)
