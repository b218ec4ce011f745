"""`unswept report` as a person calls it."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.adapters.cli.usage import refusal
from tests.adapters.report.scripts import TWO_STEP_CLAIM, script
from tests.adapters.report.traces import lines, write
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.main import app


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return write(tmp_path / "run.jsonl", lines())


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(app, ["report", *map(str, words)])


def test_a_page_is_written_and_says_how_to_run_it_again(
    trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default into this folder, under its seed."""
    monkeypatch.chdir(trace.parent)
    result = run(trace)
    assert result.exit_code == ExitCode.HELD, result.output
    assert "report-seed-7.html" in result.output
    assert "L12 was broken" in result.output
    page = (trace.parent / "report-seed-7.html").read_text(encoding="utf-8")
    assert "unswept simulate --store memory: --seed 7 --hours 1 --instances 2" in page


def test_pictures_alone_write_no_page(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each goes where it was asked for."""
    monkeypatch.chdir(trace.parent)
    svg, png = trace.parent / "a.svg", trace.parent / "a.png"
    assert run(trace, "--svg", svg, "--png", png).exit_code == ExitCode.HELD
    assert svg.read_text(encoding="utf-8").startswith("<svg")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert not list(trace.parent.glob("*.html"))


def test_settings_of_another_version_give_no_command(tmp_path: Path) -> None:
    """A command that would run something else is worse than none."""
    told = lines()
    told[0]["settings"]["weather"] = "fair"
    out = tmp_path / "page.html"
    assert run(write(tmp_path / "run.jsonl", told), "--out", out).exit_code == ExitCode.HELD
    assert "unswept simulate --store" not in out.read_text(encoding="utf-8")


def test_a_script_is_drawn_under_its_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the command that replays it, and not the one of the whole run; pictures too."""
    monkeypatch.chdir(tmp_path)
    file = script(tmp_path, TWO_STEP_CLAIM, "two-step-claim")
    result = run(file.name)
    assert result.exit_code == ExitCode.HELD, result.output
    assert "report-a.html" in result.output
    assert "WF was broken" in result.output
    page = (tmp_path / "report-a.html").read_text(encoding="utf-8")
    assert "unswept replay a.script.jsonl" in page
    assert "unswept simulate --store" not in page
    assert run(file.name, "--svg", "a.svg").exit_code == ExitCode.HELD
    svg = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert "WF was broken: 3 steps of seed 7, two-step-claim" in svg


def test_a_script_is_of_one_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another one is refused, as of a trace."""
    file = script(tmp_path, TWO_STEP_CLAIM)
    assert "of seed 7" in refusal(monkeypatch, capsys, "report", str(file), "--seed", "8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--out", "gone/x.html"), "--out must name a file in a folder that is there, got gone/x"),
        (("--out", "folder"), "--out must name a file, and folder is a folder"),
        (("--out", ""), "--out must name a file, and . is a folder"),
        (("--png", "gone/x.png"), "--png must name a file in a folder that is there, got gone/x"),
        (("--svg", "folder"), "--svg must name a file, and folder is a folder"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    said: str,
) -> None:
    """Exit 2, with the option and the path; the trace, which is none, has not been looked at."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "run.jsonl").write_text("")
    assert said in refusal(monkeypatch, capsys, "report", "run.jsonl", *words)


def test_the_default_page_that_cannot_be_written_is_named(
    trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it is called is known only when the trace has been read."""
    monkeypatch.chdir(trace.parent)
    (trace.parent / "report-seed-7.html").mkdir()
    said = refusal(monkeypatch, capsys, "report", str(trace))
    assert "--out report-seed-7.html cannot be written: Is a directory" in said


@pytest.mark.parametrize("name", ["bin.jsonl", "bin.script.jsonl"])
def test_a_file_of_anything_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    """Exit 2, with the file and the line, from the first byte or from a later one on."""
    file = tmp_path / name
    whole = write(tmp_path / "whole", lines()).read_bytes()
    for content, line in ((b"\xff\xfe\x80", 1), (whole + b"\xff", len(lines()) + 1)):
        file.write_bytes(content)
        assert f"{file}, line {line}" in refusal(monkeypatch, capsys, "report", str(file))
    kept = script(tmp_path, TWO_STEP_CLAIM)
    file.write_bytes(kept.read_bytes() + b"\xff")
    said = refusal(monkeypatch, capsys, "report", str(file))
    assert f"{file} cannot be read as a script" in said


def test_a_line_that_lacks_what_its_type_has_is_refused(
    trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, with the file, the line and what is missing."""
    number = len(trace.read_text().splitlines()) + 1
    with trace.open("a") as file:
        file.write('{"type":"command","junk":1}\n')
    said = refusal(monkeypatch, capsys, "report", str(trace))
    assert f"{trace}, line {number}: its type is command, and it has no 'at'" in said


def test_a_folder_that_looks_like_a_script_is_passed_over(
    trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it lies in this folder, which has an empty name."""
    monkeypatch.chdir(trace.parent)
    (trace.parent / "x.script.jsonl").mkdir()
    result = run("")
    assert result.exit_code == ExitCode.HELD, result.output


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--seed", "8"), "--seed 8"),
        (("--seed", "-1"), "--seed"),
        (("--campaign", "nowhere.json"), "--campaign nowhere.json"),
        (("--campaign", "run.jsonl"), "--campaign run.jsonl"),
    ],
)
def test_what_cannot_be_is_refused(
    trace: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    named: str,
) -> None:
    """Exit 2, and the option is named."""
    monkeypatch.chdir(trace.parent)
    assert named in refusal(monkeypatch, capsys, "report", str(trace), *words, "--out", "x.html")
