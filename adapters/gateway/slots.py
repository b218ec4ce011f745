"""The core's limiter on the event loop: slots, the queue for them, and the timer of the queue."""

from __future__ import annotations

import asyncio

from unswept.adapters.gateway.clock import boot_ms
from unswept.core import limiter as limiters
from unswept.core.limiter import Limiter, Limits, Verdict


class Slots:
    """Who runs and who waits, of one event loop."""

    def __init__(self, limits: Limits) -> None:
        """All slots are free."""
        self._limiter = Limiter(limits, {})
        self._waiting: dict[str, asyncio.Future[bool]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.rejected = 0
        self.timed_out = 0

    @property
    def running(self) -> int:
        """How many slots are taken."""
        return len(self._limiter.running)

    @property
    def queued(self) -> int:
        """How many wait for one."""
        return len(self._limiter.queue)

    @property
    def saturated(self) -> bool:
        """Is there no slot at all, or a provider without one that somebody waits for?"""
        return self.running >= self._limiter.limits.max_running or self.queued > 0

    @property
    def limits(self) -> Limits:
        """The caps."""
        return self._limiter.limits

    def acquire(self, ticket: str, provider: str) -> Verdict:
        """Ask for a slot; whoever is queued waits by `granted`."""
        self._limiter, verdict = limiters.acquire(self._limiter, ticket, provider, boot_ms())
        if verdict is Verdict.SATURATED:
            self.rejected += 1
        else:
            granted = asyncio.get_running_loop().create_future()
            self._waiting[ticket] = granted
            if verdict is Verdict.GRANTED:
                granted.set_result(True)
            self._set_timer()
        return verdict

    def granted(self, ticket: str) -> asyncio.Future[bool]:
        """Done when the ticket has its slot (True) or has waited too long for it (False)."""
        return self._waiting[ticket]

    def release(self, ticket: str) -> None:
        """Give back a slot, or stop waiting for one; again changes nothing."""
        if self._waiting.pop(ticket, None) is None:
            return
        self._limiter, granted = limiters.release(self._limiter, ticket)
        for each in granted:
            self._tell(each, True)

    def _time_out(self) -> None:
        self._timer = None
        self._limiter, late = limiters.time_out(self._limiter, boot_ms())
        for ticket in late:
            self.timed_out += 1
            self._tell(ticket, False)
        self._set_timer()

    def _tell(self, ticket: str, granted: bool) -> None:
        future = self._waiting.get(ticket)
        if future is not None and not future.done():
            future.set_result(granted)

    def _set_timer(self) -> None:
        # One that is set is early enough: who comes later gives up later.
        wake_at = None if self._timer is not None else limiters.wake_at(self._limiter)
        if wake_at is not None:
            delay_ms = max(1, wake_at - boot_ms())
            self._timer = asyncio.get_running_loop().call_later(delay_ms / 1000, self._time_out)
