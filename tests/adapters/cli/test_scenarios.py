"""`unswept scenarios` as a person calls it: what it tells, on which store, and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from unswept.adapters.cli import scenarios as cli
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.main import app
from unswept.core import commands as c
from unswept.core.memory import MemoryStore
from unswept.core.refusal import Refusal
from unswept.core.replies import Refused
from unswept.core.units import StoreMs
from unswept.simulations.scenarios.catalogue import SCENARIOS


def run(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["scenarios", *words])


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that finds no job."""

    class Forgetful(MemoryStore):
        def execute(self, command: c.Command[Any]) -> Any:
            if isinstance(command, c.Find):
                return Refused(StoreMs(0), Refusal.ABSENT, None)
            return super().execute(command)

    @contextmanager
    def opened(opener: object, clock: Any, number: int) -> Iterator[c.Store]:
        yield Forgetful(clock)

    monkeypatch.setattr(cli, "_open", opened)


@pytest.mark.parametrize("store", ["sqlite::memory:", "memory:"])
def test_every_scenario_is_told_and_holds(store: str) -> None:
    """A line each, and what they come to."""
    result = run("--store", store)
    assert result.exit_code == ExitCode.HELD, result.output
    *lines, last = result.output.splitlines()
    assert [line.split()[:2] for line in lines] == [[id_, "held"] for id_ in SCENARIOS]
    assert last == f"{len(SCENARIOS)} scenarios: each ended as it must."


def test_one_that_is_named_is_shown_whole() -> None:
    """With those that tell more of the same fault."""
    result = run("C49")
    assert result.exit_code == ExitCode.HELD
    assert "86400000 live 9 S -> 86400000 S sees j1" in result.output
    assert "C49-back" in result.output
    assert result.output.endswith("2 scenarios: each ended as it must.\n")


def test_it_speaks_to_postgres(postgres_url: str) -> None:
    """By its URL."""
    assert run("C10", "C50", "--store", postgres_url).exit_code == ExitCode.HELD


@pytest.mark.usefixtures("forgetful")
def test_an_answer_that_differs_is_shown_beside_the_right_one() -> None:
    """Exit 1, with the fault of the field, for people and for machines."""
    result = run("C10", "C14")
    assert result.exit_code == ExitCode.REFUTED
    assert "overwrote completions" in result.output
    assert "\n  - 104 find j1 -> found: completed A e1 b1 code=None\n" in result.output
    assert "\n  + 104 find j1 -> refused absent\n" in result.output
    assert result.output.endswith("2 of 3 differ: C10, C10-attempt.\n")
    said = json.loads(run("C10", "--json").stdout)
    assert (said["verdict"], said["exit_code"]) == ("refuted", 1)
    assert [each["holds"] for each in said["scenarios"]] == [False, False]
