"""The limiter keeps its caps, whatever is asked of it."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from unswept.core import limiter
from unswept.core.limiter import Limiter, Limits, Verdict, Waiter
from unswept.core.units import MonoMs
from unswept.spec.theorems.drawn import Draw, Name, unchecked
from unswept.spec.theorems.theorem import Edit, theorem

CAPS: Final = "caps"


@frozen
class Running:
    """A limiter with two jobs that run, at most two that wait, and any caps."""

    limiter: Limiter

    @staticmethod
    def drawn(draw: Draw) -> Running:
        """Providers are numbers, as all names; caps are at least one."""
        caps = ("max_running", "max_running_per_provider", "max_queued", "queue_timeout_ms")
        limits: Limits = unchecked(Limits, **{name: draw(int, f"_{name}") for name in caps})
        queue = tuple(
            Waiter(ticket, draw(Name, f"_{ticket}"), draw(int, f"_{ticket}_gives_up_at"))
            for ticket in ("c", "d")[: 2 if draw(bool, "_two_wait") else 1]
        )
        running = {ticket: draw(Name, f"_{ticket}") for ticket in ("a", "b")}
        return Running(Limiter(limits, running, queue))


def _within_caps(of: Limiter) -> bool:
    if len(of.running) > of.limits.max_running:
        return False
    providers = list(of.running.values())
    for provider in providers:
        count = sum(1 for other in providers if other == provider)
        if count > of.limits.max_running_per_provider:
            return False
    return True


def there_is_room_only_under_both_caps(
    running: int, of_provider: int, max_running: int, per_provider: int
) -> bool:
    """There is a slot exactly while one more keeps within both caps."""
    limits = unchecked(Limits, max_running=max_running, max_running_per_provider=per_provider)
    room = limiter.has_room(running, of_provider, limits)
    return room == (running + 1 <= max_running and of_provider + 1 <= per_provider)


def a_grant_keeps_the_caps(running: Running, provider: Name, now: MonoMs) -> bool | None:
    """A request for a slot keeps both caps, and is granted only where there is room; the queue
    never grows past its cap."""
    before = running.limiter
    if not _within_caps(before):
        return None
    after, verdict = limiter.acquire(before, "e", provider, now)
    if len(after.queue) > max(len(before.queue), before.limits.max_queued):
        return False
    granted = "e" in after.running
    return granted == (verdict is Verdict.GRANTED) and _within_caps(after)


def a_release_keeps_the_caps(running: Running) -> bool | None:
    """A slot that is given back goes to those who wait, within both caps."""
    if not _within_caps(running.limiter):
        return None
    after, _ = limiter.release(running.limiter, "a")
    return _within_caps(after) and "a" not in after.running


THEOREMS: Final = (
    theorem(
        CAPS,
        there_is_room_only_under_both_caps,
        Edit(limiter.has_room, "running < limits", "running <= limits"),
    ),
    theorem(
        CAPS, a_grant_keeps_the_caps, Edit(limiter.acquire, "_fits(limiter, provider)", "True")
    ),
    theorem(
        CAPS,
        a_release_keeps_the_caps,
        Edit(limiter._pump, "_fits(limiter, waiter.provider)", "True"),
    ),
)
