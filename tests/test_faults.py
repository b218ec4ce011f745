"""docs/faults.md: every fault of the field has its row, and what the rows name is there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

from unswept.adapters.proofs.catalogue import theorems
from unswept.simulations.designs import DESIGNS
from unswept.simulations.faults import FAULTS
from unswept.simulations.scenarios.catalogue import SCENARIOS
from unswept.spec.laws import LAWS

ROOT: Final = Path(__file__).resolve().parents[1]
ENTRIES: Final = re.findall(
    r"\S+",
    """
    C1 C2 C3 C5 C6 C7 C8 C10 C11 C12 C14 C20 C21 C23 C25 C26 C27 C29 C31 C32 C34 C35 C36 C37 C38 C40
    C42 C45 C46 C49 C50 C51 C52 C55 C57 C58 C60a C61 C62 C63 C64 C67 C68 C69 C71 C72 C73 C74 C76 C80
    C81 C82 C83 C84 C88 C89 C90 C91 C92 C96 C101 C102 (1) (2) (3) (4) (5) (6) (7) (8) (9) (10)
    """,
)
"""The catalogue of faults; its numbers have gaps."""
KINDS: Final = 23
"""Of faults; they have names and no numbers."""


@cache
def rows() -> list[list[str]]:
    """The cells of each row, headings left out."""
    page = (ROOT / "docs/faults.md").read_text(encoding="utf-8")
    lines = (line for line in page.splitlines() if line.startswith("| "))
    cells = ([cell.strip() for cell in line.strip("|").split(" | ")] for line in lines)
    return [row for row in cells if row[-1] not in ("shown by", "closed by")]


def test_every_fault_has_its_row() -> None:
    """In the order of the catalogue, the kinds between the entries and the holes."""
    first = [row[0] for row in rows()]
    labelled = [word for word in first if word in ENTRIES]
    assert labelled == ENTRIES
    assert len(first) == len(ENTRIES) + KINDS


def test_every_row_is_shown_by_something() -> None:
    """A scenario, a test, a law, a theorem or a fault of the simulator."""
    for row in rows():
        assert re.search(r"`\w[\w-]+`|\bL\d|\*[a-z-]+\*", row[-1]), row


def test_every_name_is_there() -> None:
    """A table of evidence that no check reads decays."""
    tests = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)\(", path.read_text(encoding="utf-8"))
    }
    known = tests | {theorem.name for theorem in theorems()} | set(SCENARIOS) | set(DESIGNS)
    laws = {law.id for law in LAWS}
    for *_, shown in rows():
        assert set(re.findall(r"`([\w-]+)`", shown)) - {"now"} <= known, shown
        assert set(re.findall(r"\bL\d+a?\b|\bWF\b", shown)) <= laws, shown
        assert set(re.findall(r"\*([a-z-]+)\*", shown)) <= set(FAULTS), shown


def test_every_scenario_is_in_the_row_of_its_fault() -> None:
    """And so none is told that belongs to no fault."""
    shown_by = {row[0]: row[-1] for row in rows()}
    for id_ in SCENARIOS:
        assert f"`{id_}`" in shown_by[id_.partition("-")[0]]
