"""The reliability model cannot rot: every fault has its row, and its seed shows what that says."""

from __future__ import annotations

import re

import pytest

from tests.fault_seeds import PAGE, Row, rows, what_is_wrong
from unswept.simulations.faults import FAULTS
from unswept.simulations.scenarios.catalogue import SCENARIOS
from unswept.spec.laws import LAWS

TEXT = PAGE.read_text(encoding="utf-8")
ROWS = rows(TEXT)


def test_every_fault_has_its_row() -> None:
    """In the order in which the simulator lists them, and each with a run that it takes part in."""
    assert [row.fault for row in ROWS] == list(FAULTS)
    for row in ROWS:
        assert row.fault in row.settings.faults
        assert f"`{row.command}`" in TEXT


@pytest.mark.parametrize("row", ROWS, ids=[row.fault for row in ROWS])
def test_the_seed_of_a_row_shows_what_it_says(row: Row) -> None:
    """The fault strikes, the job goes through what stands there, in this order and within the
    time that is shown; no law breaks. `python -m tests.fault_seeds --write` finds other seeds."""
    assert what_is_wrong(row) is None


def test_the_stories_of_a_row_are_there() -> None:
    """What stands under *told as* are scenarios."""
    for row in ROWS:
        assert set(row.told) <= SCENARIOS.keys(), row.fault


def test_every_law_has_its_clock() -> None:
    """Once, in the table of clocks."""
    table = TEXT.split("| law | by which clock |")[1].split("\n\n")[0]
    cells = re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)
    named = [law for cell in cells for law in cell.split(", ")]
    assert sorted(named) == sorted(law.id for law in LAWS)
