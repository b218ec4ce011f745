"""Which transitions happened while which faults were felt: a matrix of transition x fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from attrs import frozen

from unswept.core.lease import Kind
from unswept.simulations.timeline import Timeline

AFTERMATH_MS: Final = 60_000
"""A fault is felt for so long after its end: while the store is down nothing happens at all, and
what matters is how everybody comes back."""

OWED: Final = 1 / 3
"""The share of the faults under which a campaign owes each transition, and of the transitions that
it owes under each fault. Some cells are met once in a thousand seeds."""

OF_THE_FLEET: Final[Mapping[str, str]] = MappingProxyType(
    {
        Kind.ENQUEUE.value: "only the producer enqueues",
        Kind.CLAIM.value: "only runners claim",
        Kind.RELEASE.value: "only runners release",
        Kind.EXPIRE.value: "only what was enqueued has a queue deadline",
        "consumer-lost": "consumers come with the fleet",
    }
)
"""Rows and columns that stay empty where gateways are alone, each with its reason. Where there is a
fleet every transition may happen in the wake of every fault."""


def cell(kind: Kind, fault: str) -> str:
    """The name of one cell."""
    return f"{kind.value} × {fault}"


@frozen
class Matrix:
    """The rows and columns that can be met, for faults with or without a fleet."""

    faults: tuple[str, ...]
    kinds: tuple[Kind, ...]

    @classmethod
    def of(cls, faults: Iterable[str], fleet: bool) -> Matrix:
        """The matrix of a campaign."""
        barred = () if fleet else OF_THE_FLEET
        return cls(
            tuple(fault for fault in faults if fault not in barred),
            tuple(kind for kind in Kind if kind.value not in barred),
        )

    def cells(self) -> list[str]:
        """All that can be met."""
        return [cell(kind, fault) for fault in self.faults for kind in self.kinds]

    def empty(self, counted: Mapping[str, int]) -> list[str]:
        """The cells in which nothing was counted."""
        return [name for name in self.cells() if not counted.get(name)]

    def thin(self, counted: Mapping[str, int]) -> list[str]:
        """The rows and columns that are too empty, in words."""
        found = []
        for kind in self.kinds:
            met = sum(bool(counted.get(cell(kind, fault))) for fault in self.faults)
            if met < OWED * len(self.faults):
                found.append(f"{kind.value} under {met} of {len(self.faults)} faults, too few")
        for fault in self.faults:
            met = sum(bool(counted.get(cell(kind, fault))) for kind in self.kinds)
            if met < OWED * len(self.kinds):
                found.append(f"{met} of {len(self.kinds)} transitions under {fault}, too few")
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
