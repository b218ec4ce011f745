"""Two stores under one clock, and how the kit says that one of them is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from unswept.core import commands as c
from unswept.core.units import StoreMs

R = TypeVar("R")

History = list[tuple[int, c.Command[Any]]]
"""Commands, and the store time at which each was asked."""


class ClosableStore(c.Store, Protocol):
    """A store that can be closed."""

    def close(self) -> None:
        """Let go of whatever the store holds."""
        ...


MakeStore = Callable[[Callable[[], StoreMs]], ClosableStore]
"""Makes an empty store whose store time is what the given function returns."""


class NonconformanceError(AssertionError):
    """The store under test differs from the pure store; the message shows where, after what."""

    def __init__(self, message: str, history: History) -> None:
        """What differs, and all that was asked up to there."""
        super().__init__(message)
        self.history = history


class ShortfallError(AssertionError):
    """The search found nothing, but did not look everywhere: a green result would mean little."""


class Clock:
    """The store clock of both stores; only a rule moves it."""

    def __init__(self, now: int = 1_000_000) -> None:
        """A clock that stands at `now`."""
        self.now = StoreMs(now)

    def __call__(self) -> StoreMs:
        """The store time."""
        return self.now
