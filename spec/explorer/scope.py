"""What an exploration covers, and what it does not: printed with every report."""

from __future__ import annotations

from typing import Final

SEARCHED: Final = (
    "Every schedule of two instances and one job: the owner, which lives, and an instance that "
    "sweeps. Their hearts, the sweeper and the store's decisions are the functions that "
    "production calls.",
    "Time passes in ticks, each a quarter of a heartbeat; the order of events within a tick is "
    "free, and a fault may strike between any two of them, and last as long as it likes.",
    "In each row, every way in which the faults that it names can meet. Times are told relative "
    "to now, which the proofs allow: shifting all times changes nothing but the times.",
)

NOT_SEARCHED: Final = (
    "A message is executed and answered within its tick, or it is lost; only a sweep stays on its "
    "way for as long as it likes. How much longer the window must be where answers take time, "
    "docs/explorer.md says.",
    "More than two instances or one job; crashes, drains, claims and requeues; policies that "
    "differ between instances; clocks that drift. The simulator draws all of these at random.",
    "More faults at a time than a row names.",
)
