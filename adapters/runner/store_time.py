"""The store's clock as its answers tell it: pauses are reckoned from there, from no wall clock.

The last answer is about a heartbeat old at most, and what has passed since is read from the
instance's own clock; so a store clock that steps moves a pause by no more than the step.
"""

from __future__ import annotations

from typing import TypeVar

from unswept.adapters.gateway.clock import boot_ms
from unswept.core.commands import Command, Store
from unswept.core.units import Ms, StoreMs

R = TypeVar("R")


class StoreTime:
    """A store that notes the time in each answer; used for the heartbeats."""

    def __init__(self, store: Store) -> None:
        """Nothing has been answered yet."""
        self._store = store
        self._last: tuple[int, int] | None = None
        """Store time and own time of the last answer: one value, for threads share it."""

    def execute(self, command: Command[R]) -> R:
        """As the store does."""
        reply = self._store.execute(command)
        at = getattr(reply, "at", None)
        if at is not None:
            self._last = at, boot_ms()
        return reply

    def after(self, pause_ms: Ms) -> StoreMs | None:
        """The store time in so long from now; None where there is no pause, or no answer yet."""
        last = self._last
        if not pause_ms or last is None:
            return None
        at, heard_at = last
        return StoreMs(at + (boot_ms() - heard_at) + pause_ms)
