"""Waits for one thing or another on the loop; `asyncio.wait` does the same at twice the price."""

from __future__ import annotations

import asyncio
from typing import Any


async def first_of(
    future: asyncio.Future[Any], other: asyncio.Future[Any], timeout_s: float | None = None
) -> None:
    """Wait until one of the two is done, or so long; neither is cancelled, only not waited for any
    longer."""
    if future.done() or other.done():
        return
    loop = asyncio.get_running_loop()
    either = loop.create_future()

    def wake(_: object = None) -> None:
        if not either.done():
            either.set_result(None)

    timer = None if timeout_s is None else loop.call_later(timeout_s, wake)
    future.add_done_callback(wake)
    other.add_done_callback(wake)
    try:
        await either
    finally:
        future.remove_done_callback(wake)
        other.remove_done_callback(wake)
        if timer is not None:
            timer.cancel()
