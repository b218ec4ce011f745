"""What a page carries is the whole picture, small."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.report.traces import FIRST, ORPHANED, QUEUED, RENEWED, lines, write
from unswept.adapters.report.composing import compose
from unswept.adapters.report.packing import document, packed
from unswept.adapters.report.picture import Picture
from unswept.adapters.report.reading import Line, read


@pytest.fixture
def picture(tmp_path: Path) -> Picture:
    return compose(read(write(tmp_path / "run.jsonl", lines())))


def replayed(changes: list[list[Any]]) -> list[tuple[Line | None, Line | None]]:
    """As `model.js` does it."""
    row: Line | None = None
    rows: list[tuple[Line | None, Line | None]] = []
    for _, _, _, news, *known in changes:
        before = known[0] if known else row
        row = None if news is None else {**(before or {}), **news}
        row = row and {name: value for name, value in row.items() if value is not None}
        rows.append((before, row))
    return rows


def test_rows_are_told_as_changes_and_come_back_whole(picture: Picture) -> None:
    """Before and after every change of the job."""
    told = document(picture)["jobs"][0]["changes"]
    assert replayed(told) == [
        (None, FIRST),
        (FIRST, RENEWED),
        (RENEWED, ORPHANED),
        (ORPHANED, QUEUED),
    ]
    assert told[2][3] == {"status": "orphaned", "deadline": None}


def test_a_row_that_moved_unseen_is_told_whole(tmp_path: Path) -> None:
    """The row before a change need not be the row after the last one."""
    told = lines()
    told[-3]["changes"][0]["before"] = moved = {**RENEWED, "beats": 9}
    told[-3]["changes"][0]["after"] = after = {**moved, "status": "orphaned"}
    changes = document(compose(read(write(tmp_path / "run.jsonl", told))))["jobs"][0]["changes"]
    assert replayed(changes)[2] == (moved, after)


def test_the_text_is_the_document_and_nothing_that_html_reads(picture: Picture) -> None:
    """Two packings of one picture are the same, byte for byte."""
    text = packed(picture)
    assert text == packed(picture)
    assert not set(text) & set("<>&'\"")
    there = json.loads(gzip.decompress(b64decode(text)))
    assert there == json.loads(json.dumps(document(picture)))
