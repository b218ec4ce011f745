"""Tells when, by the host's boot clock, something happened that the store has dated by its own.

Every answer brackets the store's clock: it was read between the send and the answer. As long as no
clock steps, one offset fits all brackets, but for what two good clocks drift apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from attrs import frozen

from unswept.adapters.chaos.history import History

_DRIFT: Final = 1_000
"""Clocks that drift by less than 1 in so many are good."""
_ROUNDING_MS: Final = 2


@frozen
class StoreClock:
    """How the store's clock stands to the host's boot clock."""

    offset_ms: int
    """Store time less boot time."""
    error_ms: int
    """By so much a time that is told may be wrong."""
    stepped: bool
    """No offset fits: one of the clocks was set during the run."""

    def boot(self, store_at: int) -> int:
        """The boot time of a store time."""
        return store_at - self.offset_ms


def store_clock(histories: Iterable[History]) -> StoreClock:
    """The offset that all answers agree on."""
    brackets = [
        (exchange.sent.at, answer.at, answer.store_at)
        for history in histories
        for exchange in history.exchanges
        if (answer := exchange.answer) is not None
    ]
    if not brackets:
        return StoreClock(0, 0, stepped=True)
    least = max(store_at - answered_at for _, answered_at, store_at in brackets)
    most = min(store_at - sent_at for sent_at, _, store_at in brackets)
    length = max(at for _, at, _ in brackets) - min(at for at, _, _ in brackets)
    drift_ms = length // _DRIFT + _ROUNDING_MS
    return StoreClock((least + most) // 2, abs(most - least), stepped=least > most + drift_ms)
