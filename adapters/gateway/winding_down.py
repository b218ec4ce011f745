"""How a drain waits for the tasks of its jobs, and ends those that it cannot wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping
from typing import TypeVar

from unswept.adapters.gateway.clock import boot_ms

K = TypeVar("K", bound=Hashable)


async def done_by(tasks: Mapping[K, asyncio.Task[None]], until_ms: int) -> bool:
    """Wait for all of them, also for those that come in meanwhile, each of which takes itself out
    once it is over; was that before `until_ms`, on the own clock?"""
    while tasks and boot_ms() < until_ms:
        left_s = (until_ms - boot_ms()) / 1000
        await asyncio.wait(tuple(tasks.values()), timeout=left_s)
    return not tasks


async def cut_off(tasks: Mapping[K, asyncio.Task[None]]) -> None:
    """Cancel what is left, which kills what still runs."""
    left = tuple(tasks.values())
    for task in left:
        task.cancel()
    await asyncio.wait(left)
