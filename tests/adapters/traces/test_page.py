"""What docs/traces.md says is so: its views, its records, and its questions, which are asked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adapters.traces.recorded import record
from unswept.adapters.traces.law_sql import NOT_JUDGED
from unswept.adapters.traces.store import TraceStore
from unswept.adapters.traces.views import VIEWS

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "traces.md").read_text(encoding="utf-8")
QUESTIONS = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)


def table(heading: str) -> list[list[str]]:
    """The rows of the table that begins with this heading."""
    (rows,) = re.findall(rf"^\| {heading} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    return [[cell.strip() for cell in row.strip("| ").split(" | ")] for row in rows.splitlines()]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with sweeps, and one that ends by a violation behind it."""
    folder = tmp_path_factory.mktemp("page")
    record(folder / "sound.jsonl", seed=6, hours=1.0)
    record(folder / "broken.jsonl", seed=1, design="forgetful")
    return folder


@pytest.fixture(scope="module")
def traces(file: Path) -> Iterator[TraceStore]:
    with TraceStore(file) as opened:
        yield opened


def test_the_page_lists_the_views() -> None:
    """With the sentence that the command prints."""
    assert table("view") == [[f"`{view.name}`", view.sentence] for view in VIEWS]


def test_the_page_says_what_is_not_judged() -> None:
    """And why."""
    assert table("law") == [[law, why] for law, why in NOT_JUDGED.items()]


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_questions_of_the_page_have_answers(traces: TraceStore, question: str) -> None:
    """None of them fails, and an hour under all faults gives each something to say."""
    assert traces.query(question).rows
    assert len(QUESTIONS) == 4


def test_the_page_names_the_records_and_their_keys_in_order(file: Path) -> None:
    """Every type that is written, and no other."""
    described = {name.strip("`"): re.findall(r"`(\w+)`", keys) for name, keys, _ in table("`type`")}
    written: set[str] = set()
    for trace in file.glob("*.jsonl"):
        for line in map(json.loads, trace.read_text().splitlines()):
            keys = described[line["type"]]
            written.add(line["type"])
            assert list(line)[1:] == [key for key in dict.fromkeys(keys) if key in line], line
    assert written == set(described)
