"""Real runners in processes of their own, on one queue, under real kills."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import pytest

from tests.adapters.chaos.real_runs import Auditor, holders
from tests.adapters.gateway.helpers import environment
from unswept.adapters.chaos.fleet.records import Deed, read
from unswept.adapters.chaos.fleet.run import Report, Settings, run
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.sqlite import SqliteStore
from unswept.core.commands import Enqueue, ListInstances
from unswept.core.errors import MisuseError

JOBS = 500
SEED = int(os.environ.get("UNSWEPT_CHAOS_SEED", "1"))
PATIENCE_S = 60.0
MAIN = "from unswept.adapters.cli.main import main; main()"


def check(report: Report) -> None:
    """Nothing was broken, and what had to be put to the test was."""
    assert not report.violations, "\n".join(
        f"{violation.check}: {violation.offence}" for violation in report.violations
    )
    assert not report.missing, report
    assert report.counts["jobs"] == JOBS


def test_on_sqlite_every_job_is_accounted_for(tmp_path: Path) -> None:
    """Runners are killed, stopped past their leases, and drained; an audit finds nothing either.
    (L4, L5, L6, L7, L14, F1)"""
    url = f"sqlite:{tmp_path / 'jobs.db'}"
    auditor = Auditor(url)
    check(run(Settings(url, runners=4, jobs=JOBS, seed=SEED), auditor))
    auditor.check()
    with SqliteStore(url) as store:
        assert store.execute(ListInstances()).instances == ()
    with pytest.raises(MisuseError, match="one without jobs"):
        run(Settings(url, runners=4, jobs=JOBS))


def test_on_postgres_every_job_is_accounted_for(postgres_url: str) -> None:
    """The same on a server, whose schema is gone afterwards. (L4, L5, L6, L7, L14, F1)"""
    import psycopg

    schema = f"unswept_chaos_{uuid4().hex[:12]}"
    auditor = Auditor(postgres_url, schema)
    check(run(Settings(postgres_url, runners=4, jobs=JOBS, seed=SEED, schema=schema), auditor))
    auditor.check()
    with psycopg.connect(postgres_url) as connection:
        rows = connection.execute("SELECT nspname FROM pg_catalog.pg_namespace").fetchall()
    assert not [name for (name,) in rows if name.startswith("unswept_chaos")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"runners": 1}, "runners must be 2 to 100, got 1"),
        ({"jobs": 99}, "jobs must be 100 to 999999, got 99"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_what_cannot_be_run_is_refused(change: dict[str, int], message: str) -> None:
    """Before anything is started."""
    with pytest.raises(MisuseError, match=message):
        Settings("sqlite:", **change)  # type: ignore[arg-type]


def test_a_store_that_has_jobs_is_refused(tmp_path: Path) -> None:
    """They would be claimed, and judged with the run's own."""
    with SqliteStore(tmp_path / "jobs.db") as store:
        store.execute(Enqueue("somebody's"))
    with pytest.raises(MisuseError, match="one without jobs"):
        run(Settings(f"sqlite:{tmp_path / 'jobs.db'}"))


def test_a_run_that_is_ended_leaves_no_process(tmp_path: Path) -> None:
    """Neither a runner nor the producer; its exit code says that it found nothing out."""
    evidence = tmp_path / "evidence"
    arguments = ["fleet", "--evidence", str(evidence), "--jobs", "100000"]
    ran = subprocess.Popen(
        [sys.executable, "-c", MAIN, *arguments],
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(evidence, faults=1)
        assert holders(evidence) > 0
        ran.send_signal(signal.SIGTERM)
        assert ran.wait(PATIENCE_S) == ExitCode.UNDETERMINED
    finally:
        ran.kill()
        ran.wait()
    give_up_at = time.monotonic() + PATIENCE_S
    while holders(evidence):
        assert time.monotonic() < give_up_at
        time.sleep(0.05)


def until(evidence: Path, faults: int) -> None:
    """Wait until so many faults were done."""
    give_up_at = time.monotonic() + PATIENCE_S
    book = evidence / "driver.jsonl"
    while True:
        lines = read(book) if book.exists() else []
        if sum(isinstance(line, Deed) and line.act == "kill" for line in lines) >= faults:
            return
        assert time.monotonic() < give_up_at
        time.sleep(0.05)
