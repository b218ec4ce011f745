"""An operator lists the orphans, and learns what each needs to be decided on."""

from __future__ import annotations

import json
import time

import pytest
from typer.testing import CliRunner

from tests.adapters.cli.places import Place
from tests.adapters.cli.usage import refusal
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.main import app
from unswept.core import commands as c
from unswept.core.job import OnOrphan, Terms
from unswept.core.lease import RequeueRule
from unswept.core.units import Ms, StoreMs

TERMS = Terms(Ms(20), Ms(20), Ms(20), Ms(20))


@pytest.fixture
def place(store_place: Place) -> Place:
    """Two orphans of i1: one that may not run twice and one that may, and whose end was asked for;
    besides them a job that waits."""
    with store_place.opened() as store:
        store.execute(c.Register("i1", host="h1", role="gateway"))
        store.execute(c.Admit("once", "i1", TERMS, on_orphan=OnOrphan.HOLD))
        time.sleep(0.03)
        store.execute(c.Sweep("i2", (c.Target("once", 1, 1, StoreMs(0)),)))
        store.execute(c.Admit("again", "i1", TERMS, requeue=RequeueRule.ALLOWED))
        store.execute(c.RequestCancel("again"))
        store.execute(c.Deregister("i1"))
        time.sleep(0.03)
        store.execute(c.Sweep("i2", (c.Target("again", 1, 1, StoreMs(0)),)))
        store.execute(c.Enqueue("waits"))
    return store_place


def test_orphans_are_listed_the_oldest_first(place: Place) -> None:
    """With what decides on them, and the commands that do; nothing is changed by it."""
    before = place.state()
    told = json.loads(place.run("orphans", "--json").stdout)
    assert told["total"] == 2
    once, again = told["orphans"]
    assert (once["id"], once["owner"], once["epoch"], once["attempts"]) == ("once", "i1", 1, 1)
    assert (once["requeue"], once["on_orphan"]) == ("never", "hold")
    assert once["cause"] == "outcome_unknown"
    assert once["beat_at"] < once["orphaned_at"] <= again["orphaned_at"] <= told["at"]
    assert (again["id"], again["requeue"]) == ("again", "allowed")
    assert again["cancel_requested_at"] is not None
    shown = place.run("orphans")
    assert shown.exit_code == ExitCode.HELD, shown.output
    for word in ("once", "never, on orphan: hold", "outcome_unknown", "canceled, cancel asked"):
        assert word in shown.output
    for command in ("unswept requeue ID ", "unswept requeue ID --force", "unswept settle ID --as"):
        assert command in shown.output
    assert place.state() == before


def test_a_list_that_is_cut_says_so(place: Place) -> None:
    """And how many are left out; only commands that fit are advised."""
    shown = place.run("orphans", "--limit", "1").output
    assert "again" not in shown
    assert "1 more (--limit)" in shown
    assert "unswept requeue ID  " not in shown


@pytest.mark.parametrize("columns", ["60", None])
def test_an_id_is_never_cut(place: Place, columns: str | None) -> None:
    """On a narrow terminal it goes on below; where nobody says how wide it is, it stands in one
    line, for whoever looks for it there."""
    with place.opened() as store:
        store.execute(c.Admit("Q" * 120, "i1", TERMS))
        time.sleep(0.03)
        seen = CliRunner(env={"COLUMNS": columns}).invoke(app, ["sweep", "--dry-run", *place.words])
        store.execute(c.Sweep("i2", (c.Target("Q" * 120, 1, 1, StoreMs(0)),)))
    shown = CliRunner(env={"COLUMNS": columns}).invoke(app, ["orphans", *place.words])
    for output in (seen.output, shown.output):
        assert output.count("Q") == 120
        assert ("Q" * 120 in output) == (columns is None)


def test_what_is_decided_is_no_orphan_any_more(place: Place) -> None:
    """The two commands that are named do what is said of them."""
    assert place.run("settle", "once", "--as", "failed").exit_code == ExitCode.HELD
    assert place.run("requeue", "again").exit_code == ExitCode.HELD
    shown = place.run("orphans")
    assert (shown.exit_code, shown.output) == (ExitCode.HELD, "No job is orphaned.\n")


def test_a_limit_that_cannot_be_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names the bound."""
    said = refusal(monkeypatch, capsys, "orphans", "--store", "sqlite:none.db", "--limit", "0")
    assert "--limit must be" in said
