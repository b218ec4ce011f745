"""Which laws the promises speak of that `unswept chaos` and `unswept fleet` hold real runs to."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

LAWS_OF: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "no lease was cut short": ("L1",),
        "no healthy owner lost a job": ("L12",),
        "a sweep takes a whole window": ("L12a",),
        "orphan events say why": (),
        "orphan events agree with the owner's file": ("L2",),
        "no job is lost": ("L14",),
        "what is over stays over": ("L4", "L5"),
        "ends are what was acknowledged": ("L4", "L14"),
        "the dead are found in time": ("L13",),
        "slots are the live rows": (),
        "every job is finished or accounted for": ("L14",),
        "each completion is applied once": ("L5",),
        "no canceled job is claimed": ("L7", "F1"),
        "no job is claimed twice at the same epoch": ("L5",),
        "work follows grants": (),
        "acknowledged ends stand": ("L4",),
        "an enqueue that is repeated late changes nothing": ("L6",),
    }
)
"""By promise; what is of no law stands with an empty tuple."""
