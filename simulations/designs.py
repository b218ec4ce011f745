"""Designs under test, as data: the real one, and broken ones that the laws must catch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from attrs import frozen

from unswept.core import world as worlds
from unswept.core.commands import Command
from unswept.core.units import StoreMs
from unswept.core.world import Decision, World
from unswept.simulations import broken_stores

Decide = Callable[[World, Command[Any], StoreMs], Decision[Any]]


@frozen
class Design:
    """How instances, consumers or the store differ from the real design."""

    name: str
    sentence: str
    sound: bool = False
    """The laws hold for it."""
    of_gateways: bool = False
    """Gateways alone show what is wrong with it; runners would only take time."""
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
    """Locked rows are not named as suspects, and suspects whose rows are locked are forgotten."""
    heeds_deadlines: bool = True
    """Work that may be requeued stops at its local deadline."""
    acknowledges_first: bool = False
    """A consumer acknowledges events before it handles them."""
    decide: Decide = worlds.decide
    """What the store makes of a command."""
    excused: frozenset[str] = frozenset()
    """Laws on conduct that the design breaks by intention: it must be caught by what comes of it,
    for a live job or a canceled one."""

    @property
    def on_real_store(self) -> bool:
        """Can a store under test keep step with it? None does what a broken one does."""
        return self.decide is worlds.decide and not self.blanket_sweep_at_boot


_CONDUCT: Final = frozenset({"L10", "L12a"})

DESIGNS: Final[Mapping[str, Design]] = MappingProxyType(
    {
        design.name: design
        for design in (
            Design("unswept", "The real design.", sound=True),
            Design(
                "blanket-sweep",
                "A new instance marks every active job of the others orphaned when it boots.",
                of_gateways=True,
                blanket_sweep_at_boot=True,
            ),
            Design(
                "single-observation",
                "A lease that looks expired is swept at first sight.",
                of_gateways=True,
                one_observation=True,
                excused=_CONDUCT,
            ),
            Design(
                "slow-heart",
                "The sweeper beats once per heartbeat while it suspects, and takes that for proof.",
                of_gateways=True,
                hurries=False,
                excused=_CONDUCT,
            ),
            Design(
                "blind-heart",
                "The sweeper's beat touches only the instances table, not the leases.",
                of_gateways=True,
                beats_renew=False,
                excused=_CONDUCT,
            ),
            Design(
                "lock-blind",
                "The sweeper suspects and sweeps rows that somebody has locked.",
                of_gateways=True,
                heeds_locks=False,
                excused=_CONDUCT,
            ),
            Design(
                "deadline-deaf",
                "Work that may be requeued goes on after its local deadline.",
                heeds_deadlines=False,
                excused=frozenset({"L11"}),
            ),
            Design(
                "cancel-blind",
                "A cancel of a queued job is noted on its row, and a claim does not look at it.",
                decide=broken_stores.cancel_blind,
                excused=frozenset({"L7"}),
            ),
            Design(
                "double-claim",
                "Two claims at about the same time take the same job.",
                decide=broken_stores.double_claim,
            ),
            Design(
                "epoch-blind",
                "A completion ends the job whoever holds it by now.",
                decide=broken_stores.epoch_blind,
            ),
            Design(
                "forgetful",
                "An enqueue looks only at the jobs that are there, not at the ids that were used.",
                decide=broken_stores.forgetful,
            ),
            Design(
                "endless-requeue",
                "A sweep requeues a job however often it has been begun.",
                decide=broken_stores.endless,
            ),
            Design(
                "early-acknowledgement",
                "A consumer acknowledges the events that it has read, and then handles them.",
                acknowledges_first=True,
            ),
        )
    }
)
