"""`unswept mutants` as a person calls it: what caught each, what survived, exit codes."""

from __future__ import annotations

import json
import re
import shlex

import pytest
from typer.testing import CliRunner, Result

from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.main import app
from unswept.simulations.designs import DESIGNS
from unswept.simulations.shrinking import NotReproducedError

QUICK = ("two-step-claim", "label-blind")


def run(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["mutants", *words, "--workers", "1"])


def test_each_design_is_told_with_its_law_seed_and_minimal_trace() -> None:
    """Exit 0: law, seed, offence, the steps that it takes and no more, and a table of all."""
    result = run(*QUICK)
    assert result.exit_code == ExitCode.HELD, result.output
    assert "WF, in seed 1: " in result.output
    assert "F1, in seed " in result.output
    assert result.output.count("Shrunk to 3 steps:") == 2
    trace = re.findall(r"^ {6}0\.000  \S+: (.*)", result.output, re.MULTILINE)
    assert [words.split()[0] for words in trace] == ["Register", "Enqueue", "Claim"] * 2
    assert re.search(r"labels=\[.*gpu\]", trace[4])
    assert "All 2 broken designs were caught." in result.output


def test_the_command_that_is_printed_breaks_the_law_again() -> None:
    """What stands behind "Replay it" runs the seed that a law caught."""
    told = re.search(r"Replay it: unswept (.*)", run("two-step-claim").output)
    assert told is not None
    words = [*shlex.split(told[1]), "--no-shrink", "--workers", "1"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == ExitCode.REFUTED
    assert "WF was broken" in result.output


def test_a_design_without_a_script_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was caught all the same."""

    def shrink(*ignored: object) -> None:
        raise NotReproducedError("the store knows nothing of it")

    monkeypatch.setattr("unswept.simulations.mutants.shrink", shrink)
    result = run("two-step-claim")
    assert result.exit_code == ExitCode.HELD
    assert "It could not be shrunk: the store knows nothing of it" in result.output


def test_one_that_survives_fails_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 4, and the last line says which."""
    monkeypatch.setattr("unswept.adapters.cli.mutants.broken_designs", lambda: ["unswept"])
    result = run("unswept", "--seeds", "1")
    assert result.exit_code == ExitCode.COVERAGE_SHORT
    assert "No law caught it in 1 seeds." in result.output
    assert "Not caught as they must be: unswept." in result.output


def test_a_law_that_was_not_expected_fails_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """A design that is caught by another law than it says does not do what it says."""
    design = DESIGNS["two-step-claim"]
    object.__setattr__(design, "caught_by", frozenset({"L1"}))
    try:
        result = run("two-step-claim")
    finally:
        object.__setattr__(design, "caught_by", frozenset({"WF"}))
    assert result.exit_code == ExitCode.COVERAGE_SHORT
    assert "not L1" in result.output


def test_json_is_one_object_for_machines() -> None:
    """`--json` prints the verdicts, the survivors and the exit code, and nothing else."""
    words = ["mutants", "two-step-claim", "--json", "--workers", "1"]
    found = json.loads(CliRunner().invoke(app, words).stdout)
    assert found["exit_code"] == ExitCode.HELD
    assert found["survivors"] == []
    [design] = found["designs"]
    assert (design["design"], design["law"], design["seed"]) == ("two-step-claim", "WF", 1)
    assert design["minimal"]["steps"] == len(design["minimal"]["trace"]) == 3
    assert design["minimal"]["trace"][1].startswith("0.000  producer: Enqueue job_id=q1")
    assert design["minimal"]["offence"].startswith("q1 is malformed")
    assert design["why_not_minimal"] is None
    assert "--seed 1 " in design["replay"]
