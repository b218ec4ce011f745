"""How a runner with nothing to do learns of work: it is woken, and looks by itself all the same."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from typing import Final, Protocol

from attrs import frozen

from unswept.core.checks import check_duration
from unswept.core.errors import MisuseError
from unswept.core.units import Ms

_JITTER: Final = 0.25
"""Runners that were started together must not look together for ever."""

_FIRST_DEAF_MS: Final = 20
_LONGEST_DEAF_MS: Final = 1_000


@frozen(kw_only=True)
class Polling:
    """How often a runner looks for work while it finds none: the pauses double.

    A notification may be lost, and a job that pauses gets none; so it looks while it listens, too.
    """

    first_ms: Ms = Ms(50)
    max_ms: Ms = Ms(1_000)
    listening_ms: Ms = Ms(5_000)
    """The longest pause of a runner that is told of new work."""

    def __attrs_post_init__(self) -> None:
        """Durations that grow."""
        for name in ("first_ms", "max_ms", "listening_ms"):
            check_duration(name, getattr(self, name))
        for name in ("max_ms", "listening_ms"):
            if getattr(self, name) < self.first_ms:
                raise MisuseError(
                    f"{name} ({getattr(self, name)}) must be at least first_ms ({self.first_ms})"
                )


class Waker(Protocol):
    """Tells a runner of new work, as well as it can."""

    @property
    def listening(self) -> bool:
        """Is it sure to hear of new work just now?"""
        ...

    async def listen(self, wake: Callable[[], None]) -> None:
        """Call `wake` whenever there may be work, until cancelled; never raises for the outside
        world's sake."""
        ...


class Idleness:
    """The pauses of one runner, on its event loop.

    Whoever tells of one job wakes a whole fleet, and one runner gets it. So a look in vain makes
    the next word wait, longer each time; work that was got makes the wait shorter.
    """

    def __init__(self, polling: Polling, waker: Waker | None) -> None:
        """Nothing has been looked for yet."""
        self._polling = polling
        self._waker = waker
        self._woken = asyncio.Event()
        self._urged = asyncio.Event()
        self._pause_ms = polling.first_ms
        self._deaf_ms = Ms(0)
        """How long after a look no word of new work is heeded."""

    @property
    def listening(self) -> bool:
        """Is new work sure to be told?"""
        return self._waker is not None and self._waker.listening

    def wake(self) -> None:
        """There may be work. On the loop."""
        self._woken.set()

    def urge(self) -> None:
        """Wait no longer, now or ever: the runner ends. On the loop."""
        self._urged.set()
        self._woken.set()

    def look(self) -> None:
        """A look begins now: what is told from here on is a reason for another one."""
        if not self._urged.is_set():
            self._woken.clear()

    def found(self) -> None:
        """There was work, so that there may be more soon."""
        self._pause_ms = self._polling.first_ms
        # Not 0: each gets some of a stream that they share, and would look for all the rest.
        self._deaf_ms = Ms(self._deaf_ms // 2)

    async def wait(self) -> None:
        """Until it is worth another look."""
        polling = self._polling
        longest = polling.listening_ms if self.listening else polling.max_ms
        pause_ms = min(self._pause_ms, longest)
        deaf_ms = min(self._deaf_ms, pause_ms)
        if await _set_within(self._urged, _jittered(deaf_ms)):
            return
        if await _set_within(self._woken, _jittered(pause_ms) - deaf_ms):
            self._deaf_ms = Ms(min(max(_FIRST_DEAF_MS, 2 * self._deaf_ms), _LONGEST_DEAF_MS))
        else:
            self._deaf_ms = Ms(0)
        self._pause_ms = Ms(min(2 * pause_ms, longest))


async def _set_within(event: asyncio.Event, ms: float) -> bool:
    if ms > 0 and not event.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ms / 1000):
                await event.wait()
    return event.is_set()


def _jittered(ms: Ms) -> float:
    return ms * random.uniform(1 - _JITTER, 1 + _JITTER)
