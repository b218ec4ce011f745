"""The reliability model cannot rot: every fault has its row, and its seed shows what that says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer.main

from tests.job_story import stories
from unswept.adapters.cli.main import app
from unswept.simulations.faults import FAULTS
from unswept.simulations.marks import Mark
from unswept.simulations.profiles import faults_of
from unswept.simulations.run import Settings
from unswept.simulations.scenarios.catalogue import SCENARIOS
from unswept.spec.laws import LAWS

PAGE = (Path(__file__).resolve().parents[1] / "docs/reliability.md").read_text(encoding="utf-8")


class Row(NamedTuple):
    """One fault of the table."""

    fault: str
    command: str
    seen: str
    told: str


ROWS = {
    found[1]: Row(found[1], found[2], found[3], found[4])
    for found in re.finditer(
        r"^\| `([a-z-]+)` \| [^|]+ \| `(unswept replay [^`]+)` \| ([^|]+) \| ([^|]*) \|$",
        PAGE,
        re.MULTILINE,
    )
}


def test_every_fault_has_its_row() -> None:
    """In the order in which the simulator lists them."""
    assert list(ROWS) == list(FAULTS)


def parsed(command: str) -> dict[str, Any]:
    _, name, *words = shlex.split(command)
    group: Any = typer.main.get_command(app)
    found: dict[str, Any] = group.commands[name].make_context(name, list(words)).params
    return found


@pytest.mark.parametrize("row", ROWS.values(), ids=list(ROWS))
def test_the_seed_of_a_row_shows_what_it_says(row: Row) -> None:
    """The fault strikes, the job goes through what stands there, in this order and within the
    time that is shown; no law breaks."""
    given = parsed(row.command)
    assert given["store"] == "memory:"
    faults = faults_of(given["faults"])
    assert row.fault in faults
    settings = Settings(
        int(given["target"]), given["hours"], given["instances"], faults, runners=given["runners"]
    )
    outcome, told = stories(settings, row.fault)
    assert outcome.violation is None
    assert outcome.faults[row.fault] >= 1
    words, _, marks = row.seen.partition(";")
    begin, end = 1000 * given["begin"], 1000 * given["end"]
    story = [word for at, word in told.of[given["job"]] if begin <= at <= end]
    rest = iter(story)
    missing = [word for word in words.split(", ") if word not in rest]
    assert not missing, f"{missing[0]} does not come there: {', '.join(story)}"
    for mark in re.findall(r"\*(.+?)\*", marks):
        assert outcome.sometimes[Mark(mark).value] >= 1


def test_the_stories_of_a_row_are_there() -> None:
    """What stands under *told as* are scenarios."""
    for row in ROWS.values():
        assert set(filter(None, row.told.split(", "))) <= SCENARIOS.keys(), row.fault


def test_every_law_has_its_clock() -> None:
    """Once, in the table of clocks."""
    table = PAGE.split("| law | by which clock |")[1].split("\n\n")[0]
    cells = re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)
    named = [law for cell in cells for law in cell.split(", ")]
    assert sorted(named) == sorted(law.id for law in LAWS)
