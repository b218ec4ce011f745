"""All theorems about the core, in the order of the laws."""

from __future__ import annotations

from typing import Final

from unswept.spec.theorems import invariant, leases, shapes, shifts
from unswept.spec.theorems.theorem import Theorem

THEOREMS: Final[tuple[Theorem, ...]] = (
    *leases.THEOREMS,
    *invariant.THEOREMS,
    *shapes.THEOREMS,
    *shifts.THEOREMS,
)
