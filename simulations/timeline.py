"""Virtual time: one queue of things that will happen, and clocks that are read off it."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Final

from unswept.core.units import MonoMs, StoreMs

_MILLION: Final = 1_000_000


class Timeline:
    """True time in whole milliseconds; what is due at the same time happens in order of asking."""

    def __init__(self) -> None:
        """Nothing is due, and it is 0."""
        self.now = 0
        self._queue: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._asked = 0

    def after(self, delay_ms: int, action: Callable[..., None], *args: Any) -> None:
        """Let `action(*args)` happen `delay_ms` from now."""
        self._asked += 1
        heappush(self._queue, (self.now + delay_ms, self._asked, action, args))

    def run(self, until: int) -> None:
        """Let everything happen that is due by true time `until`."""
        queue = self._queue
        while queue and queue[0][0] <= until:
            self.now, _, action, args = heappop(queue)
            action(*args)
        self.now = until


class StoreClock:
    """The store clock: true time plus an offset that faults step forward and back."""

    def __init__(self, timeline: Timeline, offset_ms: int) -> None:
        """A clock that is `offset_ms` ahead of true time."""
        self.timeline = timeline
        self.offset_ms = offset_ms

    def __call__(self) -> StoreMs:
        """The store time now."""
        return StoreMs(self.timeline.now + self.offset_ms)


class HostClock:
    """A host's boot-time clock: it runs during suspend, a little too fast or too slow."""

    def __init__(self, timeline: Timeline, offset_ms: int, drift_ppm: int) -> None:
        """A clock at `offset_ms` at true time 0, that gains `drift_ppm` parts per million."""
        self._timeline = timeline
        self._offset_ms = offset_ms
        self._rate = _MILLION + drift_ppm
        """What it gains in a million of true milliseconds."""

    def __call__(self) -> MonoMs:
        """The boot time now."""
        return MonoMs(self._offset_ms + self._timeline.now * self._rate // _MILLION)

    def at(self, true_ms: int) -> MonoMs:
        """The boot time at a true time."""
        return MonoMs(self._offset_ms + true_ms * self._rate // _MILLION)

    def until(self, when: MonoMs) -> int:
        """True milliseconds from now until the clock shows at least `when`; 0 if it does."""
        true_ms = -((self._offset_ms - when) * _MILLION // self._rate)  # rounded up
        return max(0, true_ms - self._timeline.now)
