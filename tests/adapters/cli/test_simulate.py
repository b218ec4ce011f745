"""`unswept simulate` as a person calls it: tables, exit codes, replay."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.main import app, main
from unswept.core import lease
from unswept.simulations.designs import DESIGNS

pytestmark = pytest.mark.usefixtures("elsewhere")


def run(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["simulate", *words])


def test_a_short_campaign_holds_and_says_so() -> None:
    """One seed on SQLite: exit 0, the laws with their counts, and the verdict."""
    result = run("--seed", "1", "--hours", "0.2")
    assert result.exit_code == ExitCode.HELD, result.output
    assert "L12" in result.output
    assert "no heartbeated job was swept" in result.output


def test_a_broken_design_ends_with_its_law_and_a_replay_that_ends_the_same() -> None:
    """Exit 1 with law, offence, last events, and a command that gives the very same report."""
    alone = ("--workers", "1", "--no-shrink")
    result = run("--store", "memory:", "--design", "single-observation", *alone)
    assert result.exit_code == ExitCode.REFUTED
    assert "L12 was broken by seed" in result.output
    [replay] = [line for line in result.output.splitlines() if "unswept simulate --store" in line]
    words = shlex.split(replay)[2:]
    again = run(*words, *alone)
    assert again.exit_code == ExitCode.REFUTED
    assert result.output[result.output.index("The last events") :] in again.output


def test_a_violation_is_what_is_printed_last_and_once(tmp_path: Path) -> None:
    """No table of what held behind it, nor before it: events, offence, and each command once."""
    words = ("--store", "memory:", "--design", "forgetful", "--workers", "1")
    result = run(*words, "--save", str(tmp_path))
    assert result.exit_code == ExitCode.REFUTED
    [path] = tmp_path.glob("*.script.jsonl")
    assert "Laws checked" not in result.output
    assert "What must sometimes happen" not in result.output
    order = (
        "A law was broken.",
        "The last events before it",
        " was broken by seed ",
        "Run the seed again:",
        "Shrunk to ",
        "Replay it:",
        f"unswept replay {path}",
        "Draw it:",
        f"unswept report {path}",
    )
    assert [result.output.count(each) for each in order] == [1] * len(order)
    places = [result.output.index(each) for each in order]
    assert places == sorted(places)
    assert result.output.rstrip().endswith(order[-1])


def test_a_script_of_a_smaller_run_says_that_it_is_another_incident(tmp_path: Path) -> None:
    """Its jobs and instances are not those of the offence above it."""
    words = ("--store", "memory:", "--design", "forgetful", "--workers", "1")
    other = "it is another incident than the one that was found"
    result = run(*words, "--save", str(tmp_path / "all"))
    assert other in result.output
    least = ("--instances", "1", "--runners", "1", "--faults", "none")
    small = run(*words, *least, "--save", str(tmp_path / "least"))
    assert small.exit_code == ExitCode.REFUTED
    assert "Shrunk to" in small.output
    assert other not in small.output


def test_json_is_one_object_for_machines() -> None:
    """`--json` prints settings, counts, verdict and the replay of a violation, and nothing else."""
    words = ("--design", "blanket-sweep", "--store", "memory:", "--json", "--workers", "1")
    result = CliRunner().invoke(app, ["simulate", *words, "--no-shrink"])
    found = json.loads(result.stdout)
    assert found["exit_code"] == result.exit_code == ExitCode.REFUTED
    assert found["violation"]["law"] in ("L1", "L2")
    assert found["replay"].startswith("unswept simulate --store memory: --seed")


def test_coverage_that_is_required_is_owed_by_a_single_seed() -> None:
    """Exit 4, and the empty cells of the matrix by name; without it the same seed holds."""
    words = ("--store", "memory:", "--seed", "1", "--hours", "0.1")
    assert run(*words).exit_code == ExitCode.HELD
    short = run(*words, "--require-coverage")
    assert short.exit_code == ExitCode.COVERAGE_SHORT
    assert "empty  heal × outage" in short.output
    assert "too few  " in short.output


def test_a_profile_is_asked_for_and_replayed_by_its_name() -> None:
    """What strikes is of the profile, and the replay says it."""
    words = ("--store", "memory:", "--seed", "1", "--faults", "calm", "--design", "two-step-claim")
    result = run(*words, "--no-shrink")
    assert result.exit_code == ExitCode.REFUTED
    assert "--faults calm" in result.output


def test_a_harness_that_misses_its_canary_has_found_nothing_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 3 before anything else is said, also for one seed."""
    monkeypatch.setattr("unswept.simulations.mutants.CANARY", "unswept")
    monkeypatch.setattr("unswept.simulations.mutants._CANARY_SEEDS", 1)
    monkeypatch.setattr("sys.argv", ["unswept", "simulate", "--seed", "1", "--store", "memory:"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == ExitCode.UNDETERMINED
    said = capsys.readouterr()
    assert "the harness is broken" in said.err
    assert "held" not in said.out


def test_a_fault_that_the_canary_shares_is_the_designs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A law that both break is a refutation, and no broken harness."""
    right = lease.fence
    monkeypatch.setattr(lease, "fence", lambda row, owner, epoch: right(row, row.owner, epoch))
    result = run("--seeds", "3", "--store", "memory:", "--workers", "1", "--no-shrink")
    assert result.exit_code == ExitCode.REFUTED, result.output
    assert "L3 was broken by seed" in result.output


def test_the_canary_is_reported() -> None:
    """A campaign says that it was caught."""
    result = run("--seed", "1", "--hours", "0.1", "--store", "memory:")
    assert "The canary two-step-claim was caught by WF." in result.output


def test_help_names_every_design() -> None:
    """A newcomer finds the designs under test in the help."""
    text = run("--help").output
    assert all(name in text for name in DESIGNS)
