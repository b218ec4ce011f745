"""Clocks are types: a time says by which clock it was read; mixing two is a type error."""

from __future__ import annotations

from typing import Final, NewType

StoreMs = NewType("StoreMs", int)
"""Whole milliseconds since the epoch on the store clock, the only clock that decides a lease."""

MonoMs = NewType("MonoMs", int)
"""Whole milliseconds on an instance's own clock, which runs during suspend (boot time)."""

Ms = NewType("Ms", int)
"""A duration in whole milliseconds, of whichever clock it is added to."""

MAX_MS: Final = 2**53
"""Greatest time or duration that is accepted: exact in a double and in JSON, and the sum of two
stays far inside the 64-bit integer of either database."""

MAX_COUNT: Final = 2**63 - 1
"""Greatest epoch, beat, claim or chunk number: what a database's 64-bit integer holds."""
