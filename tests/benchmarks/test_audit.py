"""How fast an audit is, as a ratio to the plainest look at the same events.

    python -m pytest tests/benchmarks/test_audit.py --benchmark-only -n 0 -s

and, for the time that 10 million events take, as Parquet and in a SQLite store:

    python -m tests.benchmarks.test_audit 10000000 [sqlite]
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import duckdb
from pytest_benchmark.fixture import BenchmarkFixture

from tests.benchmarks.turns import taking_turns
from unswept.adapters.audit.place import Audit, audit
from unswept.adapters.audit.tables import EVENTS
from unswept.adapters.sqlite import SqliteStore

# A job's life of five events: enqueued, claimed, orphaned, healed and evicted.
_LIVES = """
SELECT
    j * 5 + k + 1 AS seq, 'job-' || j AS job_id, least(k, 1) AS epoch,
    (['enqueue', 'claim', 'orphan', 'heal', 'evict'])[k + 1] AS kind,
    1700000000000 + j * 7 + k * 100000 AS "at",
    (['queued', 'running', 'orphaned', 'completed', 'completed'])[k + 1] AS status,
    CASE WHEN k > 0 THEN 'instance-' || (j % 50) END AS owner,
    CASE WHEN k = 2 THEN 'sweeper' WHEN k IN (1, 3) THEN owner END AS actor,
    least(k, 1) AS beats,
    CASE WHEN k = 2 THEN 1700000000000 + j * 7 + 190000 END AS deadline,
    CASE WHEN k > 1 THEN 1700000000000 + j * 7 + 100000 END AS beat_at,
    CASE WHEN k = 2 THEN 1700000000000 + j * 7 + 150000 END AS first_seen_at,
    0 AS forced, CASE WHEN k = 2 THEN 'lease_expired' END AS cause
FROM range($jobs) AS jobs (j), range(5) AS steps (k)
"""
BOUND = 1 / 150
"""The plainest count reads one column and sorts nothing; an audit orders all events by job."""


def parquet(path: Path, events: int) -> None:
    """Events of that many jobs, as an export has them."""
    with closing(duckdb.connect()) as connection:
        lives = _LIVES.replace("$jobs", str(events // 5))
        connection.execute(f"COPY ({lives}) TO '{path}' (FORMAT parquet)")


def store(path: Path, events: int) -> None:
    """The same in a SQLite store, which remembers the ids."""
    SqliteStore(path).close()
    with (
        closing(duckdb.connect()) as source,
        closing(sqlite3.connect(path, isolation_level=None)) as target,
    ):
        rows = source.execute(_LIVES.replace("$jobs", str(events // 5)))
        marks = ", ".join("?" for _ in EVENTS.columns)
        target.execute("PRAGMA synchronous = OFF")
        target.execute("BEGIN")
        while batch := rows.fetchmany(50_000):
            target.executemany(f"INSERT INTO unswept_events VALUES ({marks})", batch)
        target.execute(
            "INSERT INTO unswept_job_ids"
            " SELECT job_id, NULL, at, NULL FROM unswept_events WHERE kind = 'enqueue'"
        )
        target.execute("COMMIT")


def plain(path: Path) -> None:
    with closing(duckdb.connect()) as connection:
        connection.execute(f"SELECT kind, count(*) FROM '{path}' GROUP BY kind").fetchall()


def test_an_audit_of_a_million_events(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    """It takes a bounded number of times as long as counting them, and finds nothing."""
    path = tmp_path / "events.parquet"
    parquet(path, 1_000_000)

    def judged() -> None:
        found = audit(str(path), None, 10)
        assert not any(verdict.count for verdict in found.verdicts)

    ratio = taking_turns(benchmark, lambda: plain(path), judged, rounds=3)
    assert ratio > BOUND, ratio


def timed(place: Path) -> Audit:
    wall, cpu = time.perf_counter(), time.process_time()
    found = audit(str(place), None, 3)
    took, worked = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{place.name}: {found.events} events, {took:.1f} s, {worked:.1f} s of CPU", flush=True)
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="unswept-audit-") as name:
        make, file = (store, "jobs.db") if "sqlite" in sys.argv else (parquet, "events.parquet")
        make(Path(name, file), int(sys.argv[1]))
        timed(Path(name, file))
