"""`unswept mutants` as a person calls it: what caught each, what survived, exit codes."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner, Result

from tests.adapters.cli.usage import refusal
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.main import app
from unswept.simulations.designs import DESIGNS

QUICK = ("two-step-claim", "label-blind")


def run(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["mutants", *words, "--workers", "1"])


def test_each_design_is_told_with_its_law_seed_and_last_events() -> None:
    """Exit 0: law, seed, offence, what came before, and a table of all."""
    result = run(*QUICK)
    assert result.exit_code == ExitCode.HELD, result.output
    assert "WF, in seed 1: " in result.output
    assert "F1, in seed " in result.output
    assert "Heartbeat" in result.output
    assert "All 2 broken designs were caught." in result.output


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


@pytest.mark.parametrize(
    ("words", "named"), [(("bogus",), "bogus"), (("unswept",), "unswept"), (("--seeds", "0"), "0")]
)
def test_wrong_words_are_usage_errors(
    words: tuple[str, ...],
    named: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A design that is not there, or not broken, is refused with exit 2."""
    assert named in refusal(monkeypatch, capsys, "mutants", *words)
