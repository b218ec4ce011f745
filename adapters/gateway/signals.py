"""Turns SIGTERM and SIGINT into one drain, however often they come."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class Drained(Protocol):
    """A gateway or a runner."""

    async def drain(self, *, finish_ms: int = 0, timeout_ms: int = 30_000) -> bool:
        """Take no new work, end what there is, and go."""
        ...


async def drain_when_signaled(
    instance: Drained, *, finish_ms: int = 0, timeout_ms: int = 30_000
) -> bool:
    """Wait for a signal, then drain; what the drain says. Signals that come meanwhile, also
    during the drain, change nothing. Of the main thread's loop."""
    with signals() as came:
        await came.wait()
        return await instance.drain(finish_ms=finish_ms, timeout_ms=timeout_ms)


@contextmanager
def signals() -> Iterator[asyncio.Event]:
    """Set once one of them has come; meanwhile they do nothing else. Of the main thread's loop."""
    loop = asyncio.get_running_loop()
    came = asyncio.Event()
    for number in SIGNALS:
        loop.add_signal_handler(number, came.set)
    try:
        yield came
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
