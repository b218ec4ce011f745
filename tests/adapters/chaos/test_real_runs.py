"""Real gateways in processes of their own, under real faults.

UNSWEPT_CHAOS_MINUTES says how long the faults go on in each of the two full runs, by default a
third of a minute; coming up and coming to rest take half a minute more on a busy host.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from tests.adapters.chaos.real_runs import Auditor
from tests.postgres_server import running
from unswept.adapters.chaos.driver import all_events
from unswept.adapters.chaos.plan import Fault
from unswept.adapters.chaos.run import Report, Settings, run
from unswept.adapters.sqlite import SqliteStore
from unswept.core.commands import ListInstances

MINUTES = float(os.environ.get("UNSWEPT_CHAOS_MINUTES", "0.3"))
SEED = int(os.environ.get("UNSWEPT_CHAOS_SEED", "1"))
DOWN_S = 3.5
"""Longer than a lease."""

UNSURE = {"dead owners' jobs orphaned in time"}
"""On a host so busy that no gateway was steady, L13 promises nothing, and a run says so."""


def check(report: Report, faults: set[Fault]) -> None:
    """Nothing was broken, and what had to be put to the test was."""
    assert not report.violations, "\n".join(
        f"{violation.check}: {violation.offence}" for violation in report.violations
    )
    assert set(report.missing) <= UNSURE, report
    assert {fault for fault in Fault if report.faults[fault]} >= faults


ONE = {Fault.KILL, Fault.STOP, Fault.PAUSE, Fault.TERM, Fault.BLOCK}


def test_on_sqlite_no_heartbeated_job_is_swept(tmp_path: Path) -> None:
    """Gateways are killed, stopped, drained and blocked, and the file is locked: what the laws
    promise of a store holds of it, and an audit of what is left finds nothing either.
    (L1, L2, L4, L5, L12, L12a, L13, L14)"""
    url = f"sqlite:{tmp_path / 'jobs.db'}"
    auditor = Auditor(url)
    report = run(Settings(url, MINUTES, seed=SEED), auditor)
    check(report, {*ONE, Fault.LOCK})
    auditor.check()
    with SqliteStore(url) as store:  # what is left are the jobs, and nobody who seems to run
        assert store.execute(ListInstances()).instances == ()
        assert len({event.job_id for event in all_events(store)}) >= report.counts["jobs admitted"]


def test_on_postgres_no_heartbeated_job_is_swept() -> None:
    """Gateways are killed, stopped, drained, blocked and cut off, and the server crashes and comes
    back after longer than a lease; an audit of the schema finds nothing either.
    (L1, L2, L4, L5, L12, L12a, L13, L14)"""
    schema = "unswept_chaos_audited"
    # What was acknowledged must survive the crash, as it does where nobody has asked otherwise.
    with running({"synchronous_commit": "on"}) as server:

        def restart() -> None:
            server.stop(crash=True)
            time.sleep(DOWN_S)
            server.start()

        auditor = Auditor(server.url, schema)
        report = run(
            Settings(server.url, MINUTES, seed=SEED, restart=restart, schema=schema), auditor
        )
        assert "unswept_chaos" not in schemas(server.url)
    check(report, {*ONE, Fault.CUT, Fault.RESTART})
    auditor.check()


def schemas(url: str) -> str:
    """The names of all schemas in that database."""
    import psycopg

    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT nspname FROM pg_catalog.pg_namespace").fetchall()
    return " ".join(name for (name,) in rows)


def test_a_sweeper_that_looks_once_is_found_out() -> None:
    """A run of gateways whose window is 0 is refuted."""
    program = "tests.adapters.chaos.hasty_worker"
    report = run(Settings("sqlite:", 0.08, instances=3, seed=SEED, program=program))
    broken = {violation.check for violation in report.violations}
    assert "a sweep takes a whole window" in broken
