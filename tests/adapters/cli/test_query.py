"""`unswept query` as a person calls it, on traces that `unswept simulate --trace` made."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.adapters.cli.usage import refusal
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.main import app
from unswept.adapters.traces.views import VIEWS
from unswept.spec.laws import LAWS

FORGETFUL = ("L5", "L6")
"""The laws that the design breaks: a job is born again, and so is the event of its birth."""


def run(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, [*words])


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("sound"))
    simulated = run("simulate", "--seed", "1", "--hours", "0.2", "--trace", folder)
    assert simulated.exit_code == ExitCode.HELD, simulated.output
    return folder


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("broken"))
    words = ("--store", "memory:", "--design", "forgetful", "--workers", "1", "--no-shrink")
    simulated = run("simulate", *words, "--trace", folder)
    assert simulated.exit_code == ExitCode.REFUTED, simulated.output
    return folder


def test_a_question_is_answered_as_a_table(sound: str) -> None:
    """With the names of the columns."""
    answer = run("query", sound, "SELECT verb, count(*) AS times FROM commands GROUP BY verb")
    assert answer.exit_code == ExitCode.HELD
    heading, *lines = answer.stdout.splitlines()
    assert heading.split() == ["verb", "times"]
    assert any(line.split()[0] == "Heartbeat" for line in lines)


def test_a_question_is_answered_for_machines(sound: str) -> None:
    """As JSON, or as comma-separated values; nested values as JSON where it is JSON."""
    sql = "SELECT job, after, 'a,b' AS text FROM changes WHERE transition = 'admit' ORDER BY n"
    rows = json.loads(run("query", sound, sql, "--json").stdout)
    assert rows[0]["after"]["status"] == "queued"
    assert list(rows[0]) == ["job", "after", "text"]
    heading, first, *_ = csv.reader(io.StringIO(run("query", sound, sql, "--csv").stdout))
    assert heading == ["job", "after", "text"]
    assert (first[0], first[2]) == (rows[0]["job"], "a,b")


def test_one_trace_of_a_folder_can_be_asked(broken: str) -> None:
    """The file instead of the folder."""
    file = str(next(Path(broken).glob("*.jsonl")))
    answer = run("query", file, "SELECT law FROM violations", "--json")
    assert json.loads(answer.stdout) in [[{"law": law}] for law in FORGETFUL]


def test_without_a_question_the_views_are_listed(sound: str) -> None:
    """With each column and what it says."""
    listed = json.loads(run("query", sound, "--json").stdout)
    assert {row["view"] for row in listed} == {view.name for view in VIEWS}
    assert {"view": "jobs", "column": "job", "what it says": "its id"} in listed
    table = run("query", sound).stdout
    assert all(view.sentence in table for view in VIEWS)


def test_laws_hold_for_a_sound_run(sound: str) -> None:
    """Exit 0, a line per law, with how often it judged or why it did not."""
    judged = run("query", sound, "--laws")
    assert judged.exit_code == ExitCode.HELD, judged.output
    assert [line.split()[0] for line in judged.stdout.splitlines()[1:]] == [law.id for law in LAWS]
    assert "not judged: it takes the truth" in judged.stdout
    laws = {
        law["law"]: law
        for law in json.loads(run("query", sound, "--laws", "--json").stdout)["laws"]
    }
    assert laws["L8"]["judged"] > 10
    assert laws["L8"]["offences"] == []
    assert laws["L16"]["judged"] is None


def test_a_broken_law_is_named(broken: str) -> None:
    """Exit 1, with the run, the command and the offence; the simulator found the same."""
    judged = run("query", broken, "--laws")
    assert judged.exit_code == ExitCode.REFUTED
    (line,) = [line for line in judged.stdout.splitlines() if line.split()[0] == "L6"]
    assert re.search(r"broken: seed \d+, command \d+: \S+: its id had been used", line)
    found = json.loads(run("query", broken, "--laws", "--json").stdout)
    laws = {law["law"]: law for law in found["laws"]}
    seed = laws["L6"]["offences"][0]["seed"]
    assert [law for law in laws if laws[law]["reported_for_seeds"] == [seed]] in (["L5"], ["L6"])
    assert found["disagreements"] == []


def test_judgements_that_differ_are_no_verdict(broken: str, tmp_path: Path) -> None:
    """Exit 3: one of the two is wrong."""
    file = next(Path(broken).glob("*.jsonl"))
    silent = tmp_path / "run.jsonl"
    kept = [line for line in file.read_text().splitlines() if '{"type":"violation"' not in line]
    silent.write_text("\n".join(kept) + "\n")
    judged = run("query", str(silent), "--laws")
    assert judged.exit_code == ExitCode.UNDETERMINED
    assert re.search(r"L6 was broken in seed \d+ by SQL's judgement alone", judged.stderr)


def test_a_trace_that_ends_early_is_no_pass(sound: str, tmp_path: Path) -> None:
    """Exit 3, whose trace it is, and no law is said to hold; it can be asked all the same."""
    lines = (Path(sound) / "seed-1.jsonl").read_text().splitlines(keepends=True)
    short = tmp_path / "run.jsonl"
    for kept in (len(lines) // 2, len(lines) - 1):
        short.write_text("".join(lines[:kept]))
        judged = run("query", str(short), "--laws")
        assert judged.exit_code == ExitCode.UNDETERMINED
        assert "The trace of seed 1 ends early" in judged.stderr
        assert " held" not in judged.stdout
        found = json.loads(run("query", str(short), "--laws", "--json").stdout)
        assert (found["ends_early"], found["disagreements"]) == ([1], [])
        assert run("query", str(short), "SELECT 1").exit_code == ExitCode.HELD
    whole = json.loads(run("query", sound, "--laws", "--json").stdout)
    assert whole["ends_early"] == []


def test_a_law_is_broken_also_where_the_trace_ends_early(broken: str, tmp_path: Path) -> None:
    """Exit 1: what is missing are the simulator's words on it, and that is said."""
    lines = next(Path(broken).glob("*.jsonl")).read_text().splitlines(keepends=True)
    short = tmp_path / "run.jsonl"
    for missing in (1, 2):
        short.write_text("".join(lines[:-missing]))
        judged = run("query", str(short), "--laws")
        assert judged.exit_code == ExitCode.REFUTED, judged.output
        assert "ends early" in judged.stderr
        assert "alone" not in judged.stderr


@pytest.mark.parametrize("words", [("--laws",), ("SELECT 1",)])
def test_an_empty_file_is_no_trace(
    words: tuple[str, ...],
    sound: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing was judged and nothing asked; also where another one beside it is a trace."""
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    said = "empty.jsonl is no trace: its first line is not of type run"
    assert said in refusal(monkeypatch, capsys, "query", str(empty), *words)
    (tmp_path / "seed-1.jsonl").write_bytes((Path(sound) / "seed-1.jsonl").read_bytes())
    assert said in refusal(monkeypatch, capsys, "query", str(tmp_path), *words)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("{run}", "SELECT colour FROM jobs"), '"colour" not found'),
        (("{run}", "SELECT colour FROM jobs"), "There are: jobs, leases"),
        (("{run}", "DROP VIEW jobs"), "one SELECT"),
        (("{run}", "SELECT 1", "--laws"), "--laws"),
        (("{run}", "--json", "--csv"), "--csv"),
        (("{run}/gone",), "gone is not there"),
    ],
)
def test_wrong_words_are_usage_errors(
    words: tuple[str, ...],
    named: str,
    sound: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit 2, and what there is to ask."""
    filled = [word.replace("{run}", sound) for word in words]
    assert named in refusal(monkeypatch, capsys, "query", *filled)


def test_a_folder_of_something_else_is_no_place_for_traces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing runs, and nothing in it is touched."""
    (tmp_path / "thesis.txt").write_text("mine")
    assert "thesis.txt" in refusal(monkeypatch, capsys, "simulate", "--trace", str(tmp_path))
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]
