"""Which transitions happened while which faults were felt: a matrix of transition x fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from unswept.core.lease import Kind
from unswept.simulations.timeline import Timeline

AFTERMATH_MS: Final = 60_000
"""A fault is felt for so long after its end: while the store is down nothing happens at all, and
what matters is how everybody comes back."""

OWED: Final = 0.5
"""The share of the faults under which a campaign owes each transition, and of the transitions that
it owes under each fault. Some cells are met once in a thousand seeds."""

IMPOSSIBLE: Final[Mapping[str, str]] = MappingProxyType({})
"""Cells that stay empty, each with its reason."""


def cell(kind: Kind, fault: str) -> str:
    """The name of one cell."""
    return f"{kind.value} × {fault}"


def empty_cells(counted: Mapping[str, int], faults: Iterable[str]) -> list[str]:
    """The cells of these faults in which nothing was counted, but for those that must be empty."""
    names = (cell(kind, fault) for fault in faults for kind in Kind)
    return [name for name in names if not counted.get(name) and name not in IMPOSSIBLE]


def thin(counted: Mapping[str, int], faults: tuple[str, ...]) -> list[str]:
    """The rows and columns of the matrix that are too empty, in words."""
    found = []
    for kind in Kind:
        met = sum(bool(counted.get(cell(kind, fault))) for fault in faults)
        if met < OWED * len(faults):
            found.append(f"{kind.value} under {met} of {len(faults)} faults, not half of them")
    for fault in faults:
        met = sum(bool(counted.get(cell(kind, fault))) for kind in Kind)
        if met < OWED * len(Kind):
            found.append(f"{met} of {len(Kind)} transitions under {fault}, not half of them")
    return found


class Coverage:
    """Counts transitions by the faults that are felt; what is counted costs one addition, for the
    cells are added up only when a fault comes or goes."""

    def __init__(self, timeline: Timeline, always: Iterable[str]) -> None:
        """Nothing has happened; `always` are the faults that lie over the whole run."""
        self._timeline = timeline
        self._felt: Counter[str] = Counter(always)
        self._now: Counter[Kind] = Counter()
        self._cells: Counter[str] = Counter()

    def lasts(self, fault: str, length_ms: int = 0) -> None:
        """A fault strikes, and lasts for so long."""
        self.begins(fault)
        self._timeline.after(length_ms, self.ends, fault)

    def begins(self, fault: str) -> None:
        """A fault begins, and is felt."""
        self._add_up()
        self._felt[fault] += 1

    def ends(self, fault: str) -> None:
        """A fault is over, and is felt for a while."""
        self._timeline.after(AFTERMATH_MS, self._fades, fault)

    def _fades(self, fault: str) -> None:
        self._add_up()
        self._felt[fault] -= 1

    def count(self, kind: Kind, times: int = 1) -> None:
        """A transition has happened."""
        self._now[kind] += times

    def cells(self) -> Counter[str]:
        """All that was counted."""
        self._add_up()
        return self._cells

    def _add_up(self) -> None:
        if not self._now:
            return
        for fault, depth in self._felt.items():
            if depth:
                for kind, times in self._now.items():
                    self._cells[cell(kind, fault)] += times
        self._now.clear()
