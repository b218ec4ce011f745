"""A trace is found, read, and refused with its file and line where it is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.adapters.report.traces import lines, write
from unswept.adapters.report import reading
from unswept.adapters.report.reading import find, read
from unswept.core.errors import MisuseError
from unswept.simulations import trace


def test_a_folder_gives_the_first_run_that_broke_a_law(tmp_path: Path) -> None:
    """Whatever its files are called, and all of its runs are listed by seed."""
    write(tmp_path / "z.jsonl", lines(1, violated=False))
    broken = write(tmp_path / "y.jsonl", lines(2))
    write(tmp_path / "x.jsonl", lines(3))
    file, listed = find(tmp_path, seed=None)
    assert file == broken
    assert [(each.seed, each.law) for each in listed] == [(1, None), (2, "L12"), (3, "L12")]


def test_a_folder_gives_the_run_of_a_seed(tmp_path: Path) -> None:
    """Also one that held, though another broke a law."""
    held = write(tmp_path / "a.jsonl", lines(1, violated=False))
    write(tmp_path / "b.jsonl", lines(2))
    assert find(tmp_path, seed=1)[0] == held
    with pytest.raises(MisuseError, match="no trace of seed 9, only of 1, 2"):
        find(tmp_path, seed=9)


def test_a_folder_without_a_violation_gives_its_first_seed(tmp_path: Path) -> None:
    """There is always something to look at."""
    write(tmp_path / "a.jsonl", lines(5, violated=False))
    first = write(tmp_path / "b.jsonl", lines(4, violated=False))
    assert find(tmp_path, seed=None)[0] == first


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    """An empty folder, or a path that leads nowhere."""
    with pytest.raises(MisuseError, match="has no trace"):
        find(tmp_path, seed=None)
    with pytest.raises(MisuseError, match="nowhere is not there"):
        find(tmp_path / "nowhere", seed=None)


def test_a_trace_is_read_with_its_verdict_apart(tmp_path: Path) -> None:
    """Its first line, its violation and its end are no part of what happened."""
    trace = read(write(tmp_path / "run.jsonl", lines()))
    assert trace.run["seed"] == 7
    assert trace.violation is not None
    assert trace.end is not None
    assert {line["type"] for line in trace.lines} == {"instance", "command", "fault", "sight"}


def test_a_trace_that_was_cut_short_has_no_end(tmp_path: Path) -> None:
    """Its run was killed: that is no pass, and no error either."""
    assert read(write(tmp_path / "run.jsonl", lines()[:5])).end is None


def test_the_format_that_is_read_is_the_one_that_is_written() -> None:
    """The reader has its own number, for it needs nothing that the writer needs."""
    assert reading.FORMAT == trace.FORMAT


def test_a_report_needs_no_extra() -> None:
    """Nothing of the simulator's, but for what the base install has."""
    code = (
        "import sys\n"
        "for extra in ('cattrs', 'duckdb', 'PIL', 'hypothesis'): sys.modules[extra] = None\n"
        "import unswept.adapters.cli.report"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_another_format_is_refused_with_the_version_that_wrote_it(tmp_path: Path) -> None:
    """A newer trace says which unswept reads it."""
    head, *rest = lines()
    file = write(tmp_path / "run.jsonl", [{**head, "format": 2, "version": "3.0"}, *rest])
    with pytest.raises(MisuseError, match=r"format 2, and this version reads 1.*unswept 3\.0"):
        read(file)


@pytest.mark.parametrize("broken", ["{", "[]", "{}", '{"type": 1}'])
def test_a_line_that_is_none_is_named(tmp_path: Path, broken: str) -> None:
    """By its number."""
    file = write(tmp_path / "run.jsonl", lines()[:2])
    file.write_text(file.read_text() + broken + "\n")
    with pytest.raises(MisuseError, match="line 3"):
        read(file)


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    """JSON Lines, but no run."""
    with pytest.raises(MisuseError, match="no trace"):
        read(write(tmp_path / "run.jsonl", lines()[1:]))
