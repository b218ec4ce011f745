"""Says for how long the event loop has stood still, as seen by a thread that ran meanwhile.

A time in which the watching thread did not run either (the host was suspended, the process
stopped) says nothing about the loop and is not counted.
"""

from __future__ import annotations

import asyncio

from unswept.adapters.gateway.to_loop import tell
from unswept.core.units import MonoMs, Ms


class LoopWatch:
    """Asks the loop to turn at each look, and adds up the looks that found it had not."""

    def __init__(self, loop: asyncio.AbstractEventLoop, longest_look_ms: int) -> None:
        """`longest_look_ms` is the most that one look may count for."""
        self._loop = loop
        self._longest_look_ms = longest_look_ms
        self._turned = True
        self._last_look: MonoMs | None = None
        self.stalled_ms = Ms(0)
        """How long the loop has not turned, by the last look."""

    def look(self, now: MonoMs) -> None:
        """Called again and again by one thread that is not the loop's."""
        if self._turned:
            self.stalled_ms = Ms(0)
        elif self._last_look is not None:
            passed = min(now - self._last_look, self._longest_look_ms)
            self.stalled_ms = Ms(self.stalled_ms + passed)
        self._last_look = now
        if self._turned:
            self._turned = False
            tell(self._loop, self._turn)

    def _turn(self) -> None:
        self._turned = True
