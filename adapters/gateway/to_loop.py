"""Hands something to an event loop from another thread; a loop that is closed has no use for it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TypeVarTuple, Unpack

Ts = TypeVarTuple("Ts")


def tell(
    loop: asyncio.AbstractEventLoop, function: Callable[[Unpack[Ts]], object], *args: *Ts
) -> None:
    """Let the loop call this soon."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(function, *args)
