"""How fast the SQLite store is, as a ratio to the plain alternative that is measured beside it.

    python -m pytest tests/benchmarks/test_sqlite.py --benchmark-only -n 0 -s

A ratio of 1 is as fast as the alternative. The bounds leave room for the noise of shared machines.
"""

from __future__ import annotations

import json
import sqlite3
import time
from itertools import count
from pathlib import Path
from typing import Any

from pytest_benchmark.fixture import BenchmarkFixture

from tests.benchmarks.turns import taking_turns
from unswept.adapters.sql.queries import Queries
from unswept.adapters.sqlite import SqliteStore
from unswept.adapters.sqlite.dialect import SqliteDialect
from unswept.core import commands as c
from unswept.core.job import Terms
from unswept.core.lease import Status
from unswept.core.replies import Accepted, Answer
from unswept.core.units import Ms, StoreMs

Q = Queries(SqliteDialect())
RULES = {"requeue": "never", "transport": "process", "on_orphan": "mark", "max_attempts": None}
TERMS = Terms(Ms(90_000), Ms(300_000), Ms(90_000), Ms(45_000))


def connected(path: Path) -> sqlite3.Connection:
    SqliteStore(path).close()
    database = sqlite3.connect(path, isolation_level=None, cached_statements=256)
    database.execute("PRAGMA synchronous = FULL")
    return database


class HandWritten:
    """Admit, start and complete as one would write them on `sqlite3`: the same guarded statements
    in the same transactions, and nothing around them."""

    def __init__(self, path: Path) -> None:
        self.database = connected(path)

    def run(self, sql: str, params: dict[str, Any]) -> list[tuple[Any, ...]]:
        return self.database.execute(sql, params).fetchall()

    def event(self, job_id: str, kind: str, status: str, beats: int, was: Any, now: int) -> None:
        self.run(
            Q.put_event,
            {
                "job_id": job_id,
                "epoch": 1,
                "kind": kind,
                "at": now,
                "status": status,
                "owner": "a",
                "actor": "a",
                "beats": beats,
                "deadline": None if was is None else was[4],
                "beat_at": None if was is None else was[5],
                "first_seen_at": None,
                "forced": 0,
                "cause": None,
            },
        )

    def admit(self, job_id: str) -> None:
        self.run("BEGIN IMMEDIATE", {})
        now = time.time_ns() // 1_000_000
        terms = {"lease_ttl_ms": 90_000, "http_grace_ms": 300_000, "confirm_ms": 45_000}
        self.run(Q.bear_id, {"id": job_id, "owner": "a", "now": now, "joined_to": None})
        row = {"id": job_id, "owner": "a", "now": now, **RULES}
        self.run(Q.admit, {**row, **terms})
        request = {"job_id": job_id, "payload": b"", "principal": None, "request_key": None}
        self.run(Q.put_request, request)
        self.event(job_id, "admit", "queued", 1, None, now)
        self.run("COMMIT", {})

    def start(self, job_id: str) -> None:
        self.run("BEGIN IMMEDIATE", {})
        now = time.time_ns() // 1_000_000
        terms = {"lease_ttl_ms": 90_000, "http_grace_ms": 300_000, "confirm_ms": 45_000}
        was = self.run(Q.lock_job, {"id": job_id})[0]
        process = {"pid": None, "process_start": None, "boot_id": None}
        hold = {"id": job_id, "owner": "a", "epoch": 1, "now": now}
        changed = self.run(Q.update["start"], {**hold, **terms, **process})
        assert len(changed) == 1
        self.event(job_id, "start", "running", 2, was, now)
        self.run("COMMIT", {})

    def complete(self, job_id: str) -> None:
        self.run("BEGIN IMMEDIATE", {})
        now = time.time_ns() // 1_000_000
        was = self.run(Q.lock_job, {"id": job_id})[0]
        hold = {"id": job_id, "owner": "a", "epoch": 1, "now": now}
        changed = self.run(Q.update["complete"], {**hold, "outcome": "completed"})
        assert len(changed) == 1
        self.event(job_id, "complete", "completed", 2, was, now)
        result = {"exit_code": None, "http_status": None, "error": None, "body": b""}
        self.run(Q.put_result, {"job_id": job_id, **result})
        self.run("COMMIT", {})


def test_admit_start_complete(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    """Three durable commands, against the same guarded statements written by hand."""
    by_hand = HandWritten(tmp_path / "plain.db")
    numbers = count()

    def plain() -> None:
        job_id = f"job-{next(numbers)}"
        by_hand.admit(job_id)
        by_hand.start(job_id)
        by_hand.complete(job_id)

    with SqliteStore(tmp_path / "store.db") as store:

        def ours() -> None:
            job_id = f"job-{next(numbers)}"
            store.execute(c.Admit(job_id, "a", TERMS))
            store.execute(c.Start(job_id, "a", 1, TERMS))
            done = store.execute(c.Complete(job_id, "a", 1, Status.COMPLETED))
            assert isinstance(done, Accepted)

        ratio = taking_turns(benchmark, plain, ours, rounds=1_000)
    by_hand.database.close()
    assert ratio >= 0.7  # aimed at: 0.8


def test_heartbeat_of_10_000_holds(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    """Against one UPDATE over the same pairs with the same guard and RETURNING."""
    path = tmp_path / "store.db"
    holds = tuple(c.Hold(f"job-{number:05}", 1) for number in range(10_000))
    with SqliteStore(path, durability="normal") as filling:
        for hold in holds:
            filling.execute(c.Admit(hold.job_id, "a", TERMS))
    database = connected(path)

    def plain() -> None:
        pairs = json.dumps({hold.job_id: hold.epoch for hold in holds})
        terms = {"lease_ttl_ms": 90_000, "http_grace_ms": 300_000, "confirm_ms": 45_000}
        database.execute("BEGIN IMMEDIATE")
        now = time.time_ns() // 1_000_000
        params = {"holds": pairs, "owner": "a", "now": now, **terms}
        assert len(database.execute(Q.renew_holds, params).fetchall()) == len(holds)
        database.execute("COMMIT")

    with SqliteStore(path) as store:

        def ours() -> None:
            beaten = store.execute(c.Heartbeat("a", TERMS, holds))
            assert beaten.answers[-1].answer is Answer.RENEWED

        ratio = taking_turns(benchmark, plain, ours, rounds=15)
    database.close()
    assert ratio >= 0.5


FINISHED = 1_000_000
FILL = """
INSERT INTO unswept_jobs
    (id, status, owner, epoch, beats, ttl_ms, confirm_ms, requeue, transport, admitted_at,
     attempts, beat_at, started_at, finished_at)
WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < :rows)
SELECT printf('done-%08d', (n * 7919) % 100000000), 'completed', 'a', 1, 2, 90000, 45000, 'never',
       'process', n, 1, n, n, n
FROM n
"""


def test_suspects_and_sweep_beside_a_million_finished_rows(
    benchmark: BenchmarkFixture, tmp_path: Path
) -> None:
    """Against the same in a store that holds nothing else."""
    now = [StoreMs(10_000_000)]
    numbers = count()
    empty, full = tmp_path / "empty.db", tmp_path / "full.db"
    database = connected(full)
    database.execute("PRAGMA synchronous = OFF")
    database.execute("BEGIN IMMEDIATE")
    database.execute(FILL, {"rows": FINISHED})
    database.execute(
        "INSERT INTO unswept_job_ids (id, first_owner, born_at)"
        " SELECT id, owner, admitted_at FROM unswept_jobs"
    )
    database.execute(
        "INSERT INTO unswept_events (job_id, epoch, kind, at, status, owner, beats, forced)"
        " SELECT id, 1, 'complete', finished_at, status, owner, beats, 0 FROM unswept_jobs"
    )
    database.execute("COMMIT")
    database.close()

    with (
        SqliteStore(empty, clock=lambda: now[0]) as alone,
        SqliteStore(full, clock=lambda: now[0]) as beside,
    ):

        def prepare() -> None:
            """A hundred jobs whose owner is gone, in both stores."""
            for number in range(100):
                job_id = f"job-{next(numbers)}-{number}"
                for store in (alone, beside):
                    store.execute(c.Admit(job_id, "b", TERMS))
            now[0] = StoreMs(now[0] + 100_000)

        def sweep(store: SqliteStore) -> None:
            suspects = store.execute(c.Suspects()).suspects
            targets = tuple(c.Target(s.job_id, s.epoch, s.beats, s.deadline) for s in suspects)
            swept = store.execute(c.Sweep("a", targets))
            assert len(swept.answers) >= 100

        ratio = taking_turns(
            benchmark, lambda: sweep(alone), lambda: sweep(beside), 20, prepare=prepare
        )
    assert ratio >= 0.5


OTHERS = 10_000


def test_claim_behind_10_000_jobs_of_other_labels(
    benchmark: BenchmarkFixture, tmp_path: Path
) -> None:
    """Against the same claims in a store where nothing else waits."""
    numbers, claims = count(), count(1)
    offered = ("cpu", "linux")
    with (
        SqliteStore(tmp_path / "alone.db", durability="normal") as alone,
        SqliteStore(tmp_path / "beside.db", durability="normal") as beside,
    ):
        for each in (alone, beside):
            each.execute(c.Register("a"))
        for _ in range(OTHERS):
            beside.execute(c.Enqueue(f"other-{next(numbers)}", labels=("gpu", "linux")))

        def prepare() -> None:
            for labels in ((), ("cpu",), offered):
                job_id = f"job-{next(numbers)}"
                for each in (alone, beside):
                    each.execute(c.Enqueue(job_id, labels=labels))

        def claim(which: SqliteStore) -> None:
            for _ in range(3):
                claimed = which.execute(c.Claim("a", next(claims), TERMS, labels=offered))
                assert len(claimed.grants) == 1  # type: ignore[union-attr]

        ratio = taking_turns(
            benchmark, lambda: claim(alone), lambda: claim(beside), 200, prepare=prepare
        )
    assert ratio >= 0.8
