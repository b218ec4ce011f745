"""`unswept explore` as a person calls it: table, counterexample, exit codes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import evolve
from typer.testing import CliRunner, Result

from unswept.adapters.cli import explore as command
from unswept.adapters.cli import explore_windows
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.explore_table import AnyTask, Bounds, TableTask, table_tasks
from unswept.adapters.cli.main import app
from unswept.spec.explorer.designs import DESIGNS, REAL
from unswept.spec.explorer.scope import NOT_SEARCHED, SEARCHED
from unswept.spec.explorer.table.designs import TABLE_DESIGNS
from unswept.spec.explorer.windows import ROWS, Case

QUICK = ("single-observation", "short-window", "lock-blind")


def run(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["explore", *words])


def found(result: Result) -> Any:
    return json.loads(result.stdout)


@pytest.fixture
def quick_designs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what takes no time: the real design's smallest mixes, and two broken designs."""
    real = evolve(DESIGNS[REAL], mixes=DESIGNS[REAL].mixes[-2:])
    chosen = {REAL: real, **{name: DESIGNS[name] for name in QUICK}}
    monkeypatch.setattr(command, "DESIGNS", chosen)
    monkeypatch.setattr(command, "table_tasks", few_tasks)


QUICK_SCOPES = ("ids", "output")
QUICK_TABLE = (REAL, "evicted-at-once", "no-tombstone")


def few_tasks(design: str, bounds: Bounds, alone: bool) -> list[AnyTask]:
    """Of the searches of the table, those that take no time."""
    return [
        task
        for task in table_tasks(design, bounds, alone)
        if isinstance(task, TableTask)
        and task.table.scope.name in QUICK_SCOPES
        and len(task.table.job_ids) == 1
        and task.design in QUICK_TABLE
    ]


@pytest.fixture
def no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the hearts are searched."""
    monkeypatch.setattr(command, "table_tasks", lambda design, bounds, alone: [])


@pytest.mark.usefixtures("quick_designs")
def test_none_is_found_in_the_real_design() -> None:
    """Exit 0: every mix exhausted, every broken design refuted, and what was not searched."""
    result = run("--workers", "1")
    assert result.exit_code == ExitCode.HELD, result.output
    assert result.output.count("exhausted") == 4  # two mixes, two scopes
    assert result.output.count("refuted") == 6  # five designs, and the last line
    assert "No schedule breaks a law" in result.output
    for saying in (*SEARCHED, *NOT_SEARCHED):
        assert saying[:60] in result.output


@pytest.mark.usefixtures("quick_designs")
def test_the_report_does_not_depend_on_the_workers() -> None:
    """Two processes give the same searches in the same order as one."""

    def report(workers: str) -> Any:
        said = found(run("--json", "--workers", workers))
        for each in (*said["searches"], *said["table"]["searches"]):
            del each["seconds"]
        return said

    assert report("1") == report("2")


def test_a_broken_design_ends_with_its_story_and_its_timeline() -> None:
    """Exit 1, and the shortest way to the sweep of a live job in words and as a drawing."""
    result = run("--design", "single-observation")
    assert result.exit_code == ExitCode.REFUTED
    assert "A suspect is swept as soon as an answer names it." in result.output
    assert "tick 1: the sweep orphans the job, whose owner lives" in result.output
    assert "  store            >|\n" in result.output
    assert "L12: a job was swept whose owner lives" in result.output
    assert "A schedule breaks a law." in result.output


def test_json_is_one_object_for_machines() -> None:
    """`--json` prints verdict, counts and every event of the trace, and nothing else."""
    result = run("--design", "short-window", "--json")
    said = found(result)
    assert said["exit_code"] == result.exit_code == ExitCode.REFUTED
    (search,) = said["searches"]
    assert (search["verdict"], search["states"]) == ("refuted", 419)
    assert len(search["trace"]) == 7
    assert search["trace"][-1] == {
        "tick": 4,
        "lane": "sweeper",
        "what": "the sweep orphans the job, whose owner lives",
    }


@pytest.mark.usefixtures("quick_designs", "no_table")
def test_a_search_that_is_given_up_is_no_pass() -> None:
    """Too small a limit ends with exit 3, for each search that did not end by itself."""
    result = run("--limit", "130", "--workers", "1", "--json")
    assert result.exit_code == ExitCode.UNDETERMINED
    verdicts = [search["verdict"] for search in found(result)["searches"]]
    assert verdicts == [*["undetermined"] * 2, "refuted", *["undetermined"] * 2]


@pytest.mark.usefixtures("no_table")
def test_a_search_that_is_blind_to_a_broken_design_is_no_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Exit 4 if a broken design comes through, whatever the real one does."""
    real = evolve(DESIGNS[REAL], mixes=DESIGNS[REAL].mixes[-1:])
    harmless = evolve(DESIGNS["short-window"], window=12)
    monkeypatch.setattr(command, "DESIGNS", {REAL: real, "short-window": harmless})
    assert run("--workers", "1").exit_code == ExitCode.COVERAGE_SHORT


def test_the_table_is_searched_alone_and_to_a_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--instances`, `--leases` and `--depth` leave the hearts out; short of its end is no pass."""
    monkeypatch.setattr(command, "table_tasks", few_tasks)
    whole = found(run("--instances", "2", "--leases", "1", "--alone", "--json"))
    assert (whole["verdict"], whole["searches"], whole["laws_broken"]) == ("held", [], [])
    assert [each["scope"] for each in whole["table"]["searches"]] == ["ids", "output"]
    assert whole["table"]["judged"]["L6"] == whole["judged"]["L6"] > 0
    assert "orphan: running to orphaned" in whole["table"]["cells"]["not_exercised"]
    assert "evict: completed to gone" in whole["table"]["cells"]["exercised"]
    part = run("--depth", "2", "--alone", "--json")
    assert part.exit_code == ExitCode.UNDETERMINED
    assert {each["depth"] for each in found(part)["table"]["searches"]} == {2}


def test_a_broken_design_of_the_table_ends_with_its_story() -> None:
    """Exit 1, the law, and the shortest way to a step that breaks it."""
    result = run("--design", "evicted-at-once")
    assert result.exit_code == ExitCode.REFUTED
    assert "tick 0: i1 admits j1 (process, requeue never, on_orphan mark)" in result.output
    assert "L14: j1 was evicted before its retention was over" in result.output
    said = found(run("--design", "evicted-at-once", "--json"))
    (search,) = said["table"]["searches"]
    assert (search["law"], search["expected"], said["laws_broken"]) == ("L14", "L14", ["L14"])
    assert search["trace"][-1] == {
        "tick": 0,
        "what": "j1, seen under epoch 1: to be evicted",
    }


def test_a_job_that_is_never_settled_is_told_with_what_goes_on_for_ever() -> None:
    """Exit 1, the way there, and what happens again and again."""
    result = run("--design", "instances-trusted")
    assert result.exit_code == ExitCode.REFUTED
    assert "for ever: a tick passes and i2 looks for suspects" in result.output
    (search,) = found(run("--design", "instances-trusted", "--json"))["table"]["searches"]
    assert (search["law"], search["again"][0]) == ("L13", "a tick passes")


@pytest.mark.usefixtures("quick_designs")
def test_a_broken_design_that_breaks_another_law_is_not_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Exit 4: what was to be shown of this law has not been shown."""
    others = {
        **TABLE_DESIGNS,
        "evicted-at-once": evolve(TABLE_DESIGNS["evicted-at-once"], law="L1"),
    }
    monkeypatch.setattr("unswept.adapters.cli.explore_table.TABLE_DESIGNS", others)
    assert run("--workers", "1").exit_code == ExitCode.COVERAGE_SHORT


def test_windows_are_compared_with_the_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--windows` exits 0 where both sides of the formula are as it says."""
    monkeypatch.setattr(explore_windows, "CASES", (Case(ROWS[2], 0), Case(ROWS[0], 0)))
    result = run("--windows", "--workers", "1")
    assert result.exit_code == ExitCode.HELD, result.output
    assert "8: refuted" in result.output
    assert "9: exhausted" in result.output
    said = found(run("--windows", "--workers", "1", "--json"))
    assert [each["owner_retry"] for each in said["windows"]] == ["1/4", "1"]
    assert all(each["agrees"] for each in said["windows"])


def test_windows_with_a_wrong_formula_or_without_an_end_are_no_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Exit 1 where the formula is a tick off, exit 3 where a search was given up."""

    class OneOff(Case):
        @property
        def too_short(self) -> int:
            return super().too_short + 1

    monkeypatch.setattr(explore_windows, "CASES", (OneOff(ROWS[2], 0),))
    assert run("--windows", "--workers", "1").exit_code == ExitCode.REFUTED
    monkeypatch.setattr(explore_windows, "CASES", (Case(ROWS[2], 0),))
    assert run("--windows", "--limit", "50").exit_code == ExitCode.UNDETERMINED


def test_help_names_every_design() -> None:
    """A newcomer finds the designs in the help."""
    text = run("--help").output
    assert all(name in text for name in DESIGNS)
