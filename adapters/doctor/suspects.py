"""Reads all suspects in one look. One look proves nothing of any of them."""

from __future__ import annotations

from attrs import frozen

from unswept.adapters.doctor.look import Look
from unswept.core.commands import Suspects
from unswept.core.policy import LeasePolicy
from unswept.core.replies import Suspect
from unswept.core.sweeper import window_ms
from unswept.core.units import Ms, StoreMs


@frozen
class Sighting:
    """All suspects, in the order of their ids."""

    at: StoreMs
    """Store time of the last page."""
    suspects: tuple[Suspect, ...]


def look_for_suspects(look: Look) -> Sighting:
    """Page them to their end. A suspect whose row somebody has locked is not named."""
    found: list[Suspect] = []
    while True:
        page = look.execute(Suspects(found[-1].job_id if found else None))
        found += page.suspects
        if not page.more:
            return Sighting(page.at, tuple(found))


def window_of(suspect: Suspect, policy: LeasePolicy) -> Ms:
    """How long a sweeper of this policy suspects it before it sweeps."""
    return window_ms(policy.confirm_after_ms, suspect.confirm_ms, suspect.requeue, suspect.ttl_ms)
