"""All theorems about the core."""

from __future__ import annotations

from typing import Final

from unswept.spec.theorems import (
    facts,
    hearts,
    holding,
    invariant,
    leases,
    limits,
    shapes,
    shifts,
    sweepers,
    worlds,
)
from unswept.spec.theorems.theorem import Theorem

THEOREMS: Final[tuple[Theorem, ...]] = (
    *leases.THEOREMS,
    *worlds.THEOREMS,
    *hearts.THEOREMS,
    *holding.THEOREMS,
    *sweepers.THEOREMS,
    *limits.THEOREMS,
    *shapes.THEOREMS,
    *facts.THEOREMS,
    *invariant.THEOREMS,
    *shifts.THEOREMS,
)
