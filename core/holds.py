"""What an instance answers for, and until when it may go on without another word from the store.

A hold begins with its acknowledged grant and ends when the store has acknowledged its terminal
write, has fenced it, or the instance has given it up. Times are on the instance's own clock.
"""

from __future__ import annotations

from attrs import frozen

from unswept.core.commands import Hold
from unswept.core.lease import RequeueRule
from unswept.core.units import MonoMs, Ms


@frozen
class Held:
    """One hold, and the stamp that keeps it."""

    hold: Hold
    requeue: RequeueRule
    stamped_from: MonoMs
    """The first send of the last accepted grant, start or heartbeat; a repeat moves nothing, for
    the store may have stamped at the first."""
    ttl_ms: Ms
    """The ttl that it stamped."""


def stamped(held: Held, sent_at: MonoMs, ttl_ms: Ms) -> Held:
    """The hold after an accepted start or heartbeat that was first sent at `sent_at`."""
    return Held(held.hold, held.requeue, sent_at, ttl_ms)


def local_deadline(held: Held, margin_ms: Ms) -> MonoMs:
    """Until when the lease surely runs, as far as this clock and the margin for drift go. (L11)"""
    return MonoMs(held.stamped_from + held.ttl_ms - margin_ms)


def may_step(held: Held, margin_ms: Ms, now: MonoMs) -> bool:
    """May the work begin its next step? Work that nobody else will run may always go on. (L11)"""
    return held.requeue is RequeueRule.NEVER or now < local_deadline(held, margin_ms)
