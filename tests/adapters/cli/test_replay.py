"""`unswept replay` as a person calls it: a seed, a script, a trace."""

from __future__ import annotations

import json
import re
import shlex
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.adapters.cli.usage import refusal
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.keep_script import FOLDER
from unswept.adapters.cli.main import app
from unswept.adapters.urls import SimulatedStore
from unswept.adapters.version import version
from unswept.simulations.campaign import run_seed
from unswept.simulations.run import Settings
from unswept.simulations.trace import Trace

LATE = ("--design", "early-acknowledgement", "--store", "memory:", "--faults", "consumer-lost")
"""A design that the first seed catches within two simulated minutes."""
BROKEN = Settings(1, faults=("consumer-lost",), design="early-acknowledgement")
"""The same as settings."""


def run(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, list(words))


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The script of a store that forgets ids, as `simulate` keeps it."""
    folder = tmp_path_factory.mktemp("forgetful")
    words = ("--design", "forgetful", "--store", "memory:", "--workers", "1")
    result = run("simulate", *words, "--save", str(folder))
    assert result.exit_code == ExitCode.REFUTED
    [path] = folder.glob("*.script.jsonl")
    assert f"unswept replay {path}" in result.output.replace("\n", "")
    return path


# A seed -------------------------------------------------------------------------------------------


def test_a_seed_is_stepped_through_to_its_violation() -> None:
    """Around the violation: rows before and after, beliefs, and the verdicts of the laws."""
    result = run("replay", "4", *LATE)
    assert result.exit_code == ExitCode.REFUTED
    assert "F4 is broken: authority acknowledged up to event" in result.output
    [job] = {found[1] for found in re.finditer(r"(\S+) before  running, owner i7", result.output)}
    row = rf"{job} %s  running, owner i7, epoch 1, beats (\d+), deadline"
    before, after = (re.search(row % when, result.output) for when in ("before", "after "))
    assert before is not None
    assert after is not None
    assert int(after[1]) == int(before[1]) + 1
    assert f"i7 is steady, holds {job}@1" in result.output
    assert "held: L3 L4 L5" in result.output
    assert "VIOLATION" not in result.output


def test_a_seed_is_shown_between_two_times_for_one_job() -> None:
    """Only what happens then, and only what concerns the job."""
    times = ("--hours", "0.1", "--from", "60", "--to", "120", "--store", "memory:")
    result = run("replay", "1", *times, "--job", "q1")
    assert result.exit_code == ExitCode.HELD
    begins = [float(line[:11]) for line in result.output.splitlines() if re.match(r" +\d", line)]
    titles = [line for line in result.output.splitlines() if re.match(r" +\d", line)]
    assert begins
    assert all(60 <= at <= 120 for at in begins)
    assert all("r6" in title or "q1" in title for title in titles)


def test_suspicions_are_shown_with_their_ages() -> None:
    """Where an instance suspects a job, its window and how much of it has passed are said."""
    words = ("--design", "single-observation", "--store", "memory:", "--faults", "flaps")
    result = run("replay", "2", *words, "--instance", "i1")
    assert re.search(r"i1 is steady, .*suspects i2-16@1/\d+ for 0.0 of 15.0 s", result.output)


def test_stepping_needs_a_terminal_to_wait_in() -> None:
    """Where nobody can press Enter, `--step` prints on."""
    result = run("replay", "1", *LATE, "--step")
    assert result.exit_code == ExitCode.REFUTED


# A script -----------------------------------------------------------------------------------------


def test_a_script_breaks_its_law_again_and_not_where_it_is_mended(script: Path) -> None:
    """Exit 1 on the broken design; on the real one, and on a real store, exit 0."""
    broken = run("replay", str(script))
    assert broken.exit_code == ExitCode.REFUTED
    [law] = re.findall(r"^\d steps that broke (L5|L6), told to the design forgetful", broken.output)
    [offence] = re.findall(rf"^{law} was broken by step \d: (.*)$", broken.output, re.MULTILINE)
    assert "stands in the script" not in broken.output
    for words in (("--design", "unswept"), ("--design", "unswept", "--store", "sqlite::memory:")):
        mended = run("replay", str(script), *words)
        assert mended.exit_code == ExitCode.HELD, mended.output
        assert f"No law was broken; {law} holds here." in mended.output
        assert "refused, spent" in mended.output
        assert f"Where the script was made: {offence}" in mended.output


def test_a_script_of_conduct_says_what_judges_a_repaired_instance(tmp_path: Path) -> None:
    """What an instance did is told as it was recorded, so that the law is broken again; both
    commands say so, and the seed that is named breaks the law too."""
    made = run("simulate", *LATE, "--workers", "1", "--save", str(tmp_path))
    assert made.exit_code == ExitCode.REFUTED
    recorded = "What an instance did stands in the script as it was recorded."
    assert recorded in made.output
    [path] = tmp_path.glob("*.script.jsonl")
    result = run("replay", str(path))
    assert result.exit_code == ExitCode.REFUTED
    assert recorded in result.output
    words = shlex.split(result.output.splitlines()[-1])
    assert words[:2] == ["unswept", "simulate"]
    seed = run(*words[1:], "--workers", "1", "--no-shrink")
    assert seed.exit_code == ExitCode.REFUTED
    assert "F4 was broken by seed 1" in seed.output


def test_a_script_is_replayed_the_same_twice(script: Path) -> None:
    """Nothing in it is left to chance."""
    assert run("replay", str(script)).output == run("replay", str(script)).output


def test_a_violation_need_not_be_shrunk(tmp_path: Path) -> None:
    """With --no-shrink nothing is kept."""
    words = ("--design", "forgetful", "--store", "memory:", "--workers", "1")
    result = run("simulate", *words, "--no-shrink", "--save", str(tmp_path / "none"))
    assert result.exit_code == ExitCode.REFUTED
    assert not (tmp_path / "none").exists()


def test_a_folder_that_cannot_be_made_leaves_the_violation_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What broke is said in any case, and so is why its script was not kept: nobody asked for the
    folder that is there by default."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / FOLDER).write_text("")
    words = ("--design", "forgetful", "--store", "memory:", "--workers", "1")
    result = run("simulate", *words)
    assert result.exit_code == ExitCode.REFUTED
    assert "could not be shrunk" in result.output


def test_a_folder_that_was_asked_for_and_cannot_be_made_is_refused_before_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A script that cannot be kept would be lost. Where none is made, none can be."""
    (tmp_path / "file").write_text("")
    folder = str(tmp_path / "file" / "in")
    said = refusal(monkeypatch, capsys, "simulate", *LATE, "--save", folder)
    assert "--save must name a folder that can be written" in said
    assert folder in said
    words = ("--seed", "1", "--hours", "0.01", "--store", "memory:", "--workers", "1")
    held = run("simulate", *words, "--no-shrink", "--save", folder)
    assert held.exit_code == ExitCode.HELD, held.output


def test_a_folder_for_scripts_is_not_made_where_there_is_none_to_keep(tmp_path: Path) -> None:
    """That it can be made is found out without making it."""
    words = ("--seed", "1", "--hours", "0.01", "--store", "memory:", "--workers", "1")
    held = run("simulate", *words, "--save", str(tmp_path / "new" / "scripts"))
    assert held.exit_code == ExitCode.HELD, held.output
    assert list(tmp_path.iterdir()) == []


# A trace ------------------------------------------------------------------------------------------


def trace(path: Path, settings: Settings, by: str) -> Path:
    with path.open("w", encoding="utf-8") as file:
        opener = SimulatedStore("memory:")
        run_seed(settings, opener, lambda seed: nullcontext(Trace(file.write, by, "memory:")))
    return path


def test_a_trace_comes_again_line_for_line(tmp_path: Path) -> None:
    """Its first line is the recipe; the digest is said."""
    path = trace(tmp_path / "seed-3.jsonl", Settings(3, hours=0.05), version())
    digest = json.loads(path.read_text().splitlines()[-1])["digest"]
    result = run("replay", str(path))
    assert result.exit_code == ExitCode.HELD, result.output
    assert digest in result.output


def test_a_trace_of_a_violation_breaks_its_law_again(tmp_path: Path) -> None:
    """The same again is no pass where a law was broken."""
    path = trace(tmp_path / "seed-1.jsonl", BROKEN, version())
    result = run("replay", str(path))
    assert result.exit_code == ExitCode.REFUTED
    assert "F4 was broken" in result.output


@pytest.mark.parametrize(
    ("by", "code"), [(None, ExitCode.NOT_DETERMINISTIC), ("0.0.1", ExitCode.UNDETERMINED)]
)
def test_the_first_line_that_differs_is_named(
    tmp_path: Path, by: str | None, code: ExitCode
) -> None:
    """Of this version it is a fault of determinism; of another it proves nothing."""
    path = trace(tmp_path / "seed-3.jsonl", Settings(3, hours=0.05), by or version())
    lines = path.read_text().splitlines()
    lines[20] = lines[20].replace('"type"', '"kind"')
    path.write_text("\n".join(lines))
    result = run("replay", str(path))
    assert result.exit_code == code, result.output
    assert "line 21 is now another" in result.output.replace("\n", " ")
    assert '"kind"' in result.output


def test_a_trace_that_goes_on_behind_its_end_is_noticed(tmp_path: Path) -> None:
    """Lines that do not come differ from those that were there."""
    path = trace(tmp_path / "seed-3.jsonl", Settings(3, hours=0.05), version())
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, "{}"]))
    assert f"line {len(lines) + 1} is now" in run("replay", str(path)).output.replace("\n", " ")


@pytest.mark.parametrize("settings", [Settings(3, hours=0.05), BROKEN], ids=["held", "broken"])
def test_a_trace_that_ends_early_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    settings: Settings,
) -> None:
    """That its last lines do not come again is no fault of determinism; the specification judges
    what is there, and that is no verdict on the run."""
    path = trace(tmp_path / "run.jsonl", settings, version())
    lines = path.read_text().splitlines()
    for kept in (30, len(lines) - 1):
        path.write_text("\n".join(lines[:kept]) + "\n")
        said = refusal(monkeypatch, capsys, "replay", str(path))
        assert f"{path} ends early: line {kept}, its last, is not of type end" in said
        judged = run("replay", str(path), "--specification")
        assert judged.exit_code == ExitCode.UNDETERMINED
        assert "ends early" in judged.output
    for whole in (29, len(lines) - 1):
        path.write_text("\n".join([*lines[:whole], lines[whole][:-9]]))
        said = refusal(monkeypatch, capsys, "replay", str(path))
        assert f"{path} is cut in line {whole + 1}" in said


def test_a_trace_that_this_version_cannot_run_says_why(tmp_path: Path) -> None:
    """A fault, a design or a setting that is gone is named."""
    path = trace(tmp_path / "seed-3.jsonl", Settings(3, hours=0.01), "0.0.1")
    for old, new, said in (
        ('"cut"', '"meteor"', "no fault 'meteor'"),
        ('"design":"unswept"', '"design":"older"', "no design 'older'"),
        ('"runners":2', '"moons":2', "moons"),
    ):
        other = tmp_path / "other.jsonl"
        other.write_text(path.read_text().replace(old, new, 1))
        result = run("replay", str(other))
        assert result.exit_code == ExitCode.UNDETERMINED
        assert said in result.output


def test_a_trace_is_judged_by_the_specification(tmp_path: Path) -> None:
    """Each command of a run under all faults is a step of it; the trace is not run again."""
    path = trace(tmp_path / "seed-3.jsonl", Settings(3, hours=0.1), "0.0.1")
    result = run("replay", str(path), "--specification")
    assert result.exit_code == ExitCode.HELD, result.output
    commands = path.read_text().count('{"type":"command"')
    assert f"Each of {commands} commands is a step of the specification." in result.output


def test_a_trace_with_a_row_that_no_rule_makes_is_refuted(tmp_path: Path) -> None:
    """A renewal that counts two stamps, and a row that changes between two commands."""
    path = trace(tmp_path / "seed-3.jsonl", Settings(3, hours=0.1), version())
    text = path.read_text()
    twice = re.sub(r'("transition":"renew",.*?"after":.*?"beats":)\d+', r"\g<1>99", text, count=1)
    path.write_text(twice)
    result = run("replay", str(path), "--specification")
    assert result.exit_code == ExitCode.REFUTED
    assert "now its beats is 99, not" in result.output
    path.write_text("\n".join(line for line in text.splitlines() if '"verb":"Start"' not in line))
    result = run("replay", str(path), "--specification")
    assert result.exit_code == ExitCode.REFUTED
    assert "changed by no command before" in result.output


# Wrong words --------------------------------------------------------------------------------------


def test_what_cannot_be_replayed_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The file, the line, and the option that does not fit are named."""
    garbage = tmp_path / "x.script.jsonl"
    for text, said in (
        ("", "line 1: this is no JSON"),
        ("\x00", "line 1: this is no JSON"),
        ('{"type":"script"}', "line 1: the format is None"),
        ('{"type":"query"}', "line 1: the type must be script"),
    ):
        garbage.write_text(text)
        assert said in refusal(monkeypatch, capsys, "replay", str(garbage))
    garbage.write_bytes(b"\xff\xfe")
    assert "neither a seed nor a file" in refusal(monkeypatch, capsys, "replay", str(garbage))
    assert "neither a seed nor a file" in refusal(monkeypatch, capsys, "replay", "nothing.jsonl")
    said = refusal(monkeypatch, capsys, "replay", str(garbage), "--hours", "2")
    assert "--hours is for the replay of a seed" in said
    for text, said in (
        ('{"type":"run","format":9}', "line 1 must begin a trace of format 1"),
        ('{"type":"run","format":1}\n{"type":"command"}', "line 2 is no command of a trace"),
        ('{"type":"run","format":1}\n[]', "line 2"),
    ):
        garbage.write_text(text)
        refused = refusal(monkeypatch, capsys, "replay", str(garbage), "--specification")
        assert said in refused
    garbage.write_text("")
    refused = refusal(monkeypatch, capsys, "replay", str(garbage), "--specification")
    assert f"{garbage} is no trace: its first line is not of type run" in refused
    assert "--design must be one of" in refusal(
        monkeypatch, capsys, "replay", "1", "--design", "none"
    )
    assert "--hours" in refusal(monkeypatch, capsys, "replay", "1", "--hours", "0")


def test_without_its_library_a_file_is_refused_and_a_seed_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Files need an extra, which is named; a violation is then said without a script."""
    monkeypatch.setitem(sys.modules, "cattrs", None)
    (tmp_path / "x.script.jsonl").write_text("{}")
    said = refusal(monkeypatch, capsys, "replay", str(tmp_path / "x.script.jsonl"))
    assert "pip install 'unswept[simulate]'" in said
    assert run("replay", "1", "--hours", "0.01", "--store", "memory:").exit_code == ExitCode.HELD
    result = run("simulate", *LATE, "--workers", "1", "--save", str(tmp_path))
    assert result.exit_code == ExitCode.REFUTED
    assert "It could not be shrunk: scripts and traces need cattrs" in result.output
