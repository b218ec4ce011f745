"""`unswept report --evidence` as a person calls it, and what the commands leave for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from typer.testing import CliRunner, Result

from tests.adapters.cli.usage import refusal
from tests.adapters.evidence.made import fill, record
from unswept.adapters.cli import explore
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.explore_table import TableTask, table_tasks
from unswept.adapters.cli.main import app
from unswept.adapters.cli.simulate_options import Campaign
from unswept.adapters.cli.simulate_report import Report
from unswept.adapters.evidence.dossier import dossier
from unswept.adapters.evidence.records import FOLDER, VARIABLE, read, read_all
from unswept.adapters.evidence.verdicts import Kind
from unswept.adapters.sqlite import SqliteStore
from unswept.core.commands import Enqueue


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder, in which records lie where they lie by default."""
    monkeypatch.delenv(VARIABLE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def test_two_pages_are_written(here: Path) -> None:
    """Without holes it ends with 0."""
    fill(FOLDER)
    result = run("report", "--evidence")
    assert result.exit_code == ExitCode.HELD, result.output
    assert "No holes" in result.output
    assert sorted(path.name for path in here.glob("evidence.*")) == ["evidence.html", "evidence.md"]


def test_another_folder_and_another_name(here: Path) -> None:
    """RUN is the folder, and --out the page, beside which lies the other."""
    fill(here / "kept")
    result = run("report", "kept", "--evidence", "--out", "page.html")
    assert result.exit_code == ExitCode.HELD, result.output
    assert (here / "page.md").exists()


@pytest.mark.parametrize(
    ("change", "code", "word"),
    [
        (lambda r: r.update(checked={}), ExitCode.COVERAGE_SHORT, "Holes"),
        (lambda r: r.update(unequal_seed=3), ExitCode.UNDETERMINED, "Holes"),
        (lambda r: r.update(exit_code=1, verdict="refuted"), ExitCode.REFUTED, "Refuted"),
    ],
)
def test_the_exit_code_says_what_is_wrong(
    change: Callable[[dict[str, Any]], None], code: ExitCode, word: str
) -> None:
    """And the pages are written all the same."""
    fill(FOLDER, record("simulate", change))
    result = run("report", "--evidence")
    assert result.exit_code == code, result.output
    assert word in result.output
    assert Path("evidence.html").exists()


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((), "RUN is missing"),
        (("--evidence", "--seed", "1"), "--evidence is of no one run"),
        (("--evidence", "--out", "page.md"), "--out must end in .html"),
        (("--evidence", "--out", "nowhere/page.html"), "cannot be written"),
    ],
)
def test_what_cannot_be_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    named: str,
) -> None:
    """Exit 2, with what is wrong."""
    assert named in refusal(monkeypatch, capsys, "report", *words)


# What the commands leave --------------------------------------------------------------------------


def test_an_audit_is_kept(here: Path) -> None:
    """One record for each database."""
    pytest.importorskip("duckdb")
    for name in ("one.db", "two.db"):
        with SqliteStore(here / name) as store:
            store.execute(Enqueue("j1"))
        assert run("audit", name).exit_code == ExitCode.HELD
    assert [told.stem for told in read_all(FOLDER)] == ["audit-one-db", "audit-two-db"]
    assert read(FOLDER / "audit-one-db.json").result["events"] == 1


def test_a_small_campaign_is_no_evidence(here: Path) -> None:
    """Its laws held, of a part."""
    small = ("--store", "memory:", "--hours", "0.05", "--faults", "none")
    assert run("simulate", "--seed", "1", *small).exit_code == ExitCode.HELD
    assert run("mutants", "two-step-claim").exit_code == ExitCode.HELD
    assert not FOLDER.exists()


def test_a_small_campaign_that_breaks_a_law_is(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    """But not that of a design that is to break one."""
    broken = ("--store", "memory:", "--seed", "1", "--design", "two-step-claim", "--no-shrink")
    assert run("simulate", *broken).exit_code == ExitCode.REFUTED
    assert not FOLDER.exists()
    monkeypatch.setattr(Campaign, "judges_the_design", lambda self: True)
    assert run("simulate", *broken).exit_code == ExitCode.REFUTED
    (told,) = read_all(FOLDER)
    assert (told.stem, told.whole) == ("simulate-memory-refuted", False)
    assert "--seed 1" in told.command


def test_a_whole_campaign_is_kept(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    """With what `--json` prints, under its store."""
    monkeypatch.setattr(Report, "stands_for_all", property(lambda self: True))
    monkeypatch.setattr(Campaign, "tries_broken_designs", lambda self: False)
    small = ("--seeds", "1", "--hours", "0.05", "--faults", "none")
    assert run("simulate", "--store", "memory:", *small).exit_code == ExitCode.HELD
    told = read(FOLDER / "simulate-memory.json")
    assert told.command.startswith("unswept simulate --store memory: --seeds 1 --hours 0.05")
    assert told.result["checked"]["L3"] > 0
    assert told.weight == told.result["simulated_ms"] > 0


def test_what_a_whole_campaign_is() -> None:
    """The default, or more; a part of it, or one of few faults, is none."""
    from unswept.adapters.cli.simulate_options import DEFAULT
    from unswept.simulations.campaign import Shard, Totals

    def whole(seeds: int, shard: Shard | None = None, violated: int | None = None) -> bool:
        totals = Totals(seeds=seeds, unequal_seed=violated)
        return Report(Campaign(DEFAULT, "memory:", shard=shard), totals).stands_for_all

    assert whole(20)
    assert not whole(19)
    assert whole(3, violated=3)
    assert not whole(20, Shard(1, 2))


def test_a_theorem_alone_is_no_evidence(here: Path) -> None:
    """Though it is proved; the same with its twin."""
    pytest.importorskip("crosshair")
    pytest.importorskip("sqlglot")
    one = ("--only", "sqlite_no_other_statement_writes_a_job", "--workers", "1")
    assert run("prove", *one).exit_code == ExitCode.HELD
    assert run("prove", "--twins", *one).exit_code == ExitCode.HELD
    assert not FOLDER.exists()


def one_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all searches the least, of hearts, and one of the table, a few steps deep."""
    hearts, table = explore._tasks, table_tasks

    def small(design: str, limit: int, alone: bool) -> list[explore.Task]:
        return [task for task in hearts(design, limit, alone) if str(task.mix) == "1 step forward"]

    def shallow(design: str, bounds: Any, alone: bool) -> list[Any]:
        every = table(design, bounds, True)
        return [evolve(task, depth=2) for task in every if isinstance(task, TableTask)][:1]

    monkeypatch.setattr(explore, "_tasks", small)
    monkeypatch.setattr(explore, "table_tasks", shallow)


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ((), ["explore"]),
        (("--alone", "--leases", "2"), ["explore-instances-2-leases-2-alone"]),
        (("--limit", "900000"), []),
        (("--depth", "2"), []),
    ],
)
def test_an_exploration_is_kept_if_it_is_whole(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], names: list[str]
) -> None:
    """More jobs are a record of their own, and fewer states or steps are none."""
    one_search(monkeypatch)
    result = run("explore", "--workers", "1", *words)
    assert result.exit_code in (ExitCode.HELD, ExitCode.UNDETERMINED), result.output
    assert [told.stem for told in read_all(FOLDER)] == names


def test_what_the_explorer_leaves_is_what_the_page_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By every law that its steps were judged by."""
    one_search(monkeypatch)
    run("explore", "--workers", "1")
    told = dossier(FOLDER)
    words = {
        chapter.law.id: entry.verdict.kind
        for chapter in told.chapters
        for entry in chapter.entries
        if entry.road == "Explorer"
    }
    assert words["L12"] is Kind.EXHAUSTED
    assert words["L3"] in (Kind.EXHAUSTED, Kind.UNDETERMINED)
