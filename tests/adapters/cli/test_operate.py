"""An operator looks at a store, and acts on one job of it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.adapters.cli.usage import refusal
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.main import app, main
from unswept.adapters.sqlite import SqliteStore
from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.job import Terms
from unswept.core.lease import RequeueRule, Status
from unswept.core.units import Ms, StoreMs
from unswept.core.values import Result as Ended

TERMS = Terms(Ms(100), Ms(160), Ms(80), Ms(60))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A store with two orphans, one job that runs, one that waits and one that has ended."""
    now = StoreMs(1_700_000_000_000)
    path = tmp_path / "jobs.db"
    with SqliteStore(path, clock=lambda: now) as store:
        store.execute(c.Register("i1", host="h1", role="gateway"))
        for job_id, rule in (("once", RequeueRule.NEVER), ("again", RequeueRule.ALLOWED)):
            store.execute(c.Admit(job_id, "i1", TERMS, requeue=rule))
        now = StoreMs(now + 101)
        targets = tuple(c.Target(job_id, 1, 1, StoreMs(0)) for job_id in ("once", "again"))
        store.execute(c.Sweep("i2", targets))
        for job_id in ("runs", "ended"):
            store.execute(c.Admit(job_id, "i1", TERMS))
            store.execute(c.Start(job_id, "i1", 1, TERMS))
        result = Ended(exit_code=3, error="no such file", body=b"1234")
        store.execute(c.Complete("ended", "i1", 1, Status.FAILED, result))
        store.execute(c.Enqueue("waits"))
    return path


class Operator:
    def __init__(self, file: Path) -> None:
        self.file = file

    def run(self, *words: str) -> Result:
        told = [*words, "--store", f"sqlite:{self.file}"]
        return CliRunner(env={"COLUMNS": "200"}).invoke(app, told)

    def found(self, job_id: str) -> Any:
        with SqliteStore(self.file) as store:
            return store.execute(c.Find(job_id))

    def last_event(self) -> Any:
        with SqliteStore(self.file) as store:
            return store.execute(c.ReadEvents(0, 1_000)).events[-1]


@pytest.fixture
def operator(file: Path) -> Operator:
    return Operator(file)


@pytest.mark.parametrize("words", [("job", "runs"), ("jobs",), ("instances",)], ids=lambda w: w[0])
def test_a_look_leaves_the_file_as_it_is(words: tuple[str, ...], operator: Operator) -> None:
    """Also one whose journal was set to another mode, which a store that is opened sets right."""
    with closing(sqlite3.connect(operator.file)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    before = operator.file.read_bytes()
    assert operator.run(*words).exit_code == ExitCode.HELD
    assert operator.file.read_bytes() == before


def test_a_job_is_told_as_it_stands(operator: Operator) -> None:
    """Status, owner, epoch and beats; how it ended; exit 1 for one that is not there."""
    runs = operator.run("job", "runs")
    assert runs.exit_code == ExitCode.HELD, runs.output
    assert runs.output.startswith("runs: running, owner i1, epoch 1, beats 2, deadline -")
    ended = operator.run("job", "ended")
    assert "ended: failed, owner i1, epoch 1" in ended.output
    assert "result: exit_code 3, error no such file, body 4 bytes" in ended.output
    gone = operator.run("job", "nobody")
    assert (gone.exit_code, gone.output) == (ExitCode.REFUTED, "nobody: refused, absent\n")


def test_json_is_one_object_for_machines(operator: Operator) -> None:
    """The whole row, and what was refused."""
    told = json.loads(operator.run("job", "ended", "--json").stdout)
    assert told["job"]["lease"]["status"] == "failed"
    assert told["result"] == {
        "exit_code": 3,
        "http_status": None,
        "error": "no such file",
        "body": 4,
    }
    refused = json.loads(operator.run("requeue", "once", "--json").stdout)
    assert (refused["exit_code"], refused["refusal"]) == (1, "not_requeueable")
    assert refused["job"]["lease"]["status"] == "orphaned"
    [seen] = json.loads(operator.run("instances", "--json").stdout)["instances"]
    assert (seen["id"], seen["host"], seen["role"]) == ("i1", "h1", "gateway")


def test_jobs_are_counted_by_where_they_stand(operator: Operator) -> None:
    """In one look; what is over is not counted."""
    [row] = json.loads(operator.run("jobs", "--json").stdout)["partitions"]
    del row["oldest_at"]
    assert row == {"partition": "", "waiting": 1, "queued": 0, "running": 1, "orphaned": 2}
    shown = operator.run("jobs")
    assert shown.exit_code == ExitCode.HELD
    assert "orphaned" in shown.output


def test_instances_are_listed_with_their_ages(operator: Operator) -> None:
    """By the store's clock."""
    result = operator.run("instances")
    assert result.exit_code == ExitCode.HELD
    assert "i1" in result.output
    assert "s ago" in result.output


def test_a_cancel_ends_what_is_nobodys_and_asks_an_owner(operator: Operator) -> None:
    """The request stays on the row of a job that runs."""
    waits = operator.run("cancel", "waits")
    assert waits.exit_code == ExitCode.HELD, waits.output
    assert operator.found("waits").job.lease.status is Status.CANCELED
    assert operator.run("cancel", "runs").exit_code == ExitCode.HELD
    assert operator.found("runs").job.lease.cancel_requested_at is not None
    assert operator.run("cancel", "ended").exit_code == ExitCode.REFUTED


def test_a_cancel_of_no_job_leaves_its_id_unused(operator: Operator) -> None:
    """A slip of the hand must not keep a later job from being enqueued."""
    assert operator.run("cancel", "later").exit_code == ExitCode.REFUTED
    with SqliteStore(operator.file) as store:
        assert isinstance(store.execute(c.Enqueue("later")), r.Accepted)


def test_an_orphan_is_requeued_by_force_where_it_may_not_run_twice(operator: Operator) -> None:
    """Its event names who decided it; what is no orphan is refused."""
    again = operator.run("requeue", "again")
    assert again.exit_code == ExitCode.HELD, again.output
    assert "again: requeue, now queued at epoch 2; queued, nobody's, epoch 2" in again.output
    once = operator.run("requeue", "once")
    assert once.exit_code == ExitCode.REFUTED
    assert "refused, not_requeueable; orphaned, owner i1" in once.output
    assert operator.run("requeue", "once", "--force", "--actor", "ann").exit_code == ExitCode.HELD
    event = operator.last_event()
    assert (event.job_id, event.actor, event.forced) == ("once", "ann", True)
    assert operator.run("requeue", "runs").exit_code == ExitCode.REFUTED
    assert operator.run("requeue", "nobody").exit_code == ExitCode.REFUTED


@pytest.mark.parametrize("outcome", ["failed", "canceled"])
def test_an_orphan_is_settled(operator: Operator, outcome: str) -> None:
    """As an authority may end it, and as nothing else."""
    result = operator.run("settle", "once", "--as", outcome)
    assert result.exit_code == ExitCode.HELD, result.output
    assert operator.found("once").job.lease.status.value == outcome
    assert operator.last_event().actor == "operator"
    assert operator.run("settle", "again", "--as", "completed").exit_code == ExitCode.USAGE


def test_nothing_is_made_where_there_is_no_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 3: a path that was misspelt is said, and no file is left there."""
    words = ["unswept", "job", "x", "--store", f"sqlite:{tmp_path / 'none.db'}"]
    monkeypatch.setattr("sys.argv", words)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == ExitCode.UNDETERMINED
    assert "none.db" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("store", "said"),
    [
        ("memory:", "sqlite:PATH or postgresql://"),
        ("sqlite::memory:", "in memory"),
        ("mysql://ann:hush@h/d", "got mysql://ann@h/d"),
    ],
)
def test_a_store_that_cannot_be_is_refused(
    store: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, and no password is quoted."""
    assert said in refusal(monkeypatch, capsys, "job", "x", "--store", store)


def test_a_store_on_postgres_is_asked_alike(postgres_url: str) -> None:
    """In the schema that is named."""
    from unswept.adapters.postgres import PostgresStore

    with PostgresStore(postgres_url, schema="operated") as store:
        store.execute(c.Enqueue("waits"))
    words = ["cancel", "waits", "--store", postgres_url, "--schema", "operated"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == ExitCode.HELD, result.output
    assert "now canceled" in result.output
