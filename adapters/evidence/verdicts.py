"""What one road says of one law: one word of a small algebra, how much stands behind it, and the
rows that show it. Undetermined is never a pass."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from attrs import frozen


class Kind(StrEnum):
    """The words."""

    REFUTED = "REFUTED"
    """There is a counterexample."""
    UNDETERMINED = "UNDETERMINED"
    """It was tried, and not found out."""
    STALE = "STALE"
    """It was found out of other sources, or of another version."""
    HOLE = "HOLE"
    """Nothing was tried, and nothing says why not."""
    PROVED = "PROVED"
    """For every input."""
    EXHAUSTED = "EXHAUSTED"
    """In every schedule of a small world."""
    SURVIVED = "SURVIVED"
    """In all that was tried at random, or found in a real run."""
    CAUGHT = "CAUGHT"
    """Designs that break it were noticed by it."""
    NAMED = "NAMED"
    """Tests name it; whether they pass, the test run says."""
    NOT_JUDGED = "NOT JUDGED HERE"
    """This road cannot judge it, and it is declared why."""
    NOT_RUN = "NOT RUN"
    """This road is an addition, and was not taken."""


HOLES: Final = frozenset({Kind.UNDETERMINED, Kind.STALE, Kind.HOLE})
"""What is no evidence where evidence is owed."""
_WORST_FIRST: Final = tuple(Kind)


@frozen
class Row:
    """One line of what shows it."""

    cells: tuple[str, ...]
    seconds: float | None = None
    """How long that took, where it is known: two runs never take the same time."""


@frozen
class Verdict:
    """The word, and what stands behind it."""

    kind: Kind
    said: str = ""
    """How much, or why; one clause."""
    headings: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind} ({self.said})" if self.said else str(self.kind)

    @property
    def is_hole(self) -> bool:
        """Is it no evidence?"""
        return self.kind in HOLES


def together(verdicts: Iterable[Verdict]) -> Verdict | None:
    """What several records of one road say: the worst word, and all that was said with it."""
    ordered = sorted(verdicts, key=lambda verdict: _WORST_FIRST.index(verdict.kind))
    if not ordered:
        return None
    alike = [verdict for verdict in ordered if verdict.kind is ordered[0].kind]
    said = "; ".join(dict.fromkeys(verdict.said for verdict in alike if verdict.said))
    rows = tuple(row for verdict in ordered for row in verdict.rows)
    headings = next((verdict.headings for verdict in ordered if verdict.headings), ())
    return Verdict(ordered[0].kind, said, headings, rows)


def counted(count: int, one: str, many: str | None = None) -> str:
    """`1 seed`, `1,200 seeds`."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
