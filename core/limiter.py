"""How many jobs run at once, in all and per provider, and who waits: first come, first served, but
a waiter whose provider is full does not hold up those behind it.

Times are on the instance's own clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from attrs import frozen

from unswept.core.checks import check_duration, check_whole
from unswept.core.records import changed
from unswept.core.units import MAX_COUNT, MonoMs, Ms


@frozen
class Limits:
    """The caps; each at least one, but for the queue, which may have no place."""

    max_running: int = 32
    max_running_per_provider: int = 16
    max_queued: int = 128
    queue_timeout_ms: Ms = Ms(120_000)

    def __attrs_post_init__(self) -> None:
        """Whole numbers, at least one."""
        check_whole("max_running", self.max_running, 1, MAX_COUNT)
        check_whole("max_running_per_provider", self.max_running_per_provider, 1, MAX_COUNT)
        check_whole("max_queued", self.max_queued, 0, MAX_COUNT)
        check_duration("queue_timeout_ms", self.queue_timeout_ms)


class Verdict(StrEnum):
    """What became of a request for a slot."""

    GRANTED = "granted"
    QUEUED = "queued"
    SATURATED = "saturated"


@frozen
class Waiter:
    """One who waits for a slot."""

    ticket: str
    provider: str
    gives_up_at: MonoMs


@frozen(slots=False)
class Limiter:
    """Who runs and who waits."""

    limits: Limits
    running: Mapping[str, str]
    """Ticket to provider."""
    queue: tuple[Waiter, ...] = ()


def has_room(running: int, running_of_provider: int, limits: Limits) -> bool:
    """Is there a slot for one more of this provider?"""
    within_all = running < limits.max_running
    return within_all and running_of_provider < limits.max_running_per_provider


def acquire(limiter: Limiter, ticket: str, provider: str, now: MonoMs) -> tuple[Limiter, Verdict]:
    """Ask for a slot; a ticket that runs or waits already keeps what it has."""
    if ticket in limiter.running:
        return limiter, Verdict.GRANTED
    if ticket in [waiter.ticket for waiter in limiter.queue]:
        return limiter, Verdict.QUEUED
    if _fits(limiter, provider):
        return changed(limiter, running={**limiter.running, ticket: provider}), Verdict.GRANTED
    if len(limiter.queue) >= limiter.limits.max_queued:
        return limiter, Verdict.SATURATED
    waiter = Waiter(ticket, provider, MonoMs(now + limiter.limits.queue_timeout_ms))
    return changed(limiter, queue=(*limiter.queue, waiter)), Verdict.QUEUED


def release(limiter: Limiter, ticket: str) -> tuple[Limiter, tuple[str, ...]]:
    """Give back a slot, or stop waiting for one; the tickets that are granted by it come back. A
    ticket that is not known changes nothing."""
    running = dict(limiter.running)
    if running.pop(ticket, None) is not None:
        return _pump(changed(limiter, running=running))
    queue = tuple(waiter for waiter in limiter.queue if waiter.ticket != ticket)
    return _pump(changed(limiter, queue=queue))


def time_out(limiter: Limiter, now: MonoMs) -> tuple[Limiter, tuple[str, ...]]:
    """Those who have waited too long leave the queue; their tickets come back."""
    late = tuple(waiter.ticket for waiter in limiter.queue if waiter.gives_up_at <= now)
    if not late:
        return limiter, ()
    queue = tuple(waiter for waiter in limiter.queue if waiter.gives_up_at > now)
    return changed(limiter, queue=queue), late


def wake_at(limiter: Limiter) -> MonoMs | None:
    """When the next waiter gives up; None: nobody waits."""
    return min((waiter.gives_up_at for waiter in limiter.queue), default=None)


def _fits(limiter: Limiter, provider: str) -> bool:
    of_provider = list(limiter.running.values()).count(provider)
    return has_room(len(limiter.running), of_provider, limiter.limits)


def _pump(limiter: Limiter) -> tuple[Limiter, tuple[str, ...]]:
    """Grant free slots in the order of the queue, passing over providers that are full."""
    granted: list[str] = []
    passed_over: list[Waiter] = []
    for waiter in limiter.queue:
        if len(limiter.running) >= limiter.limits.max_running:
            break  # nobody fits any more
        if _fits(limiter, waiter.provider):
            granted.append(waiter.ticket)
            limiter = changed(limiter, running={**limiter.running, waiter.ticket: waiter.provider})
        else:
            passed_over.append(waiter)
    if not granted:
        return limiter, ()
    looked_at = len(granted) + len(passed_over)
    queue = (*passed_over, *limiter.queue[looked_at:])
    return changed(limiter, queue=queue), tuple(granted)
