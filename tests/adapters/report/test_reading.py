"""A trace is found, read, and refused with its file and line where it is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.adapters.report.traces import change, command, instance, lines, row, write
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
    assert all(each.ended for each in listed)


def test_a_trace_that_ends_early_is_listed_as_one(tmp_path: Path) -> None:
    """Also where it ends within its last line."""
    write(tmp_path / "a.jsonl", lines(1, violated=False)[:-1])
    cut = write(tmp_path / "b.jsonl", lines(2, violated=False))
    cut.write_text(cut.read_text()[:-20])
    _, listed = find(tmp_path, seed=None)
    assert [(each.law, each.ended) for each in listed] == [(None, False), (None, False)]


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


@pytest.mark.parametrize("broken", ["{", "[]", "{}", '{"type": 1}', "[" * 100_000])
def test_a_line_that_is_none_is_named(tmp_path: Path, broken: str) -> None:
    """By its number."""
    file = write(tmp_path / "run.jsonl", lines()[:2])
    file.write_text(file.read_text() + broken + "\n")
    with pytest.raises(MisuseError, match="line 3"):
        read(file)


@pytest.mark.parametrize(
    ("type_", "key", "value", "said"),
    [
        ("run", "seed", "seven", "line 1: its type is run, and its 'seed' cannot be 'seven'"),
        ("run", "store_clock_ms", None, "line 1: .*'store_clock_ms'"),
        ("instance", "name", None, "line 2: its type is instance, and its 'name'"),
        ("command", "at", True, "its type is command, and its 'at' cannot be 'True'"),
        ("command", "changes", [1], "one of its changes is no object"),
        ("command", "changes", [{"job": "j"}], "of one of its changes it has no 'before'"),
        (
            "command",
            "changes",
            [change("renew", None, {"status": "running", "epoch": 1})],
            "of one of its changes it has no 'beats'",
        ),
        ("sight", "beats", "2", "its type is sight, and its 'beats' cannot be '2'"),
        (
            "command",
            "changes",
            [change("renew", {"status": "bored", "epoch": 1, "beats": 1}, None)],
            "its 'status' cannot be 'bored'",
        ),
        (
            "command",
            "changes",
            [change("renew", None, row(status=[]))],
            r"its 'status' cannot be '\[\]'",
        ),
        (
            "command",
            "changes",
            [change("renew", None, row(deadline="soon"))],
            "its 'deadline' cannot be 'soon'",
        ),
        ("run", "settings", {"hours": "x"}, "line 1: .* of its settings its 'hours' cannot be 'x'"),
        ("fault", "on", [], "its type is fault, and its 'on'"),
        ("end", "checked", {"L1": None}, "its type is end, and its 'checked'"),
        ("violation", "law", None, "its type is violation, and its 'law'"),
        ("end", "at", "late", "its type is end, and its 'at' cannot be 'late'"),
    ],
)
def test_a_line_with_a_value_that_cannot_be_is_named(
    tmp_path: Path, type_: str, key: str, value: object, said: str
) -> None:
    """By its number, with the key: nothing is drawn of what is not known."""
    told = lines()
    place = next(place for place, line in enumerate(told) if line["type"] == type_)
    told[place][key] = value
    with pytest.raises(MisuseError, match=said):
        read(write(tmp_path / "run.jsonl", told))


def test_a_phase_and_a_transition_are_not_left_out(tmp_path: Path) -> None:
    """A heart's event names its phase, and a change how it came about."""
    told = [*lines()[:2], instance(1, "a", "phase")]
    with pytest.raises(MisuseError, match="line 3: its type is instance, and it has no 'phase'"):
        read(write(tmp_path / "run.jsonl", told))
    told = [*lines()[:2], instance(1, "a", "phase", phase="merry")]
    with pytest.raises(MisuseError, match=r"line 3: .*its 'phase' cannot be 'merry'"):
        read(write(tmp_path / "run.jsonl", told))
    changes = [{"job": "j", "before": None, "after": None}]
    told = [*lines()[:2], command(1, 1, "a", "Admit", changes=changes)]
    with pytest.raises(MisuseError, match=r"line 3: .* it has no 'transition'"):
        read(write(tmp_path / "run.jsonl", told))


def test_a_type_of_a_later_version_is_skipped(tmp_path: Path) -> None:
    """Whatever it has."""
    assert read(write(tmp_path / "run.jsonl", [*lines(), {"type": "weather"}])).end is not None


def test_a_folder_with_a_verdict_that_is_cut_is_refused(tmp_path: Path) -> None:
    """Whether the run broke a law is not guessed."""
    file = write(tmp_path / "run.jsonl", lines()[:-1])
    file.write_text(file.read_text()[:-20])
    with pytest.raises(MisuseError, match=r"run\.jsonl: its line of type violation is cut"):
        find(tmp_path, seed=None)


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    """JSON Lines, but no run."""
    with pytest.raises(MisuseError, match="no trace"):
        read(write(tmp_path / "run.jsonl", lines()[1:]))
