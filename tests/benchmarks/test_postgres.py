"""How fast the Postgres store is, as a ratio to the plain alternative on the same server.

    python -m pytest tests/benchmarks/test_postgres.py --benchmark-only -n 0 -s

A ratio of 1 is as fast as the alternative. The bounds leave room for the noise of shared machines.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from threading import Thread
from typing import Any

import psycopg
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from tests.benchmarks.turns import taking_turns
from unswept.adapters.postgres import PostgresStore
from unswept.adapters.postgres.dialect import PostgresDialect
from unswept.adapters.sql.queries import Queries
from unswept.core import commands as c
from unswept.core.job import Terms
from unswept.core.lease import Status
from unswept.core.replies import Accepted, Answer, Claimed
from unswept.core.units import Ms

TERMS = Terms(Ms(90_000), Ms(300_000), Ms(90_000), Ms(45_000))
STAMPED = {"lease_ttl_ms": 90_000, "http_grace_ms": 300_000, "confirm_ms": 45_000}
RULES = {"requeue": "never", "transport": "process", "on_orphan": "mark", "max_attempts": None}
NO_PROCESS = {"pid": None, "process_start": None, "boot_id": None}


@pytest.fixture
def store(postgres_url: str, postgres_schema: str) -> Iterator[PostgresStore]:
    with PostgresStore(postgres_url, schema=postgres_schema, max_connections=8) as opened:
        yield opened


class HandWritten:
    """The commands as one would write them on psycopg: the same guarded statements in the same
    transactions, and nothing around them."""

    def __init__(self, url: str, schema: str) -> None:
        self.q = Queries(PostgresDialect(schema))
        self.connection = psycopg.connect(url, autocommit=True, prepare_threshold=None)
        self.clock = f"SELECT {schema}.now_ms()".encode()

    def run(self, sql: str, params: dict[str, Any]) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(sql.encode(), params)
        return cursor.fetchall() if cursor.description else []

    def now(self) -> int:
        rows = self.connection.execute(self.clock).fetchall()
        return int(rows[0][0])

    def event(
        self, job_id: str, kind: str, status: str, was: Any, now: int, epoch: int = 1
    ) -> None:
        params = {
            "job_id": job_id,
            "epoch": epoch,
            "kind": kind,
            "at": now,
            "status": status,
            "owner": "a",
            "actor": "a",
            "beats": 2,
            "deadline": None if was is None else was[4],
            "beat_at": None if was is None else was[5],
            "first_seen_at": None,
            "forced": 0,
            "cause": None,
        }
        self.run(self.q.put_event, params)

    def admit(self, job_id: str) -> None:
        with self.connection.transaction():
            used = {"id": job_id, "owner": "a", "joined_to": None}
            assert self.run(self.q.bear_id, {**used, "now": self.now()})
            now = self.now()
            row = {"id": job_id, "owner": "a", **RULES}
            self.run(self.q.admit, {**row, "now": now, **STAMPED})
            request = {"job_id": job_id, "payload": b"", "principal": None, "request_key": None}
            self.run(self.q.put_request, request)
            self.event(job_id, "admit", "queued", None, now)

    def start(self, job_id: str) -> None:
        with self.connection.transaction():
            was = self.run(self.q.lock_job, {"id": job_id})[0]
            now = self.now()
            hold = {"id": job_id, "owner": "a", "epoch": 1, "now": now}
            assert self.run(self.q.update["start"], {**hold, **STAMPED, **NO_PROCESS})
            self.event(job_id, "start", "running", was, now)

    def complete(self, job_id: str) -> None:
        with self.connection.transaction():
            was = self.run(self.q.lock_job, {"id": job_id})[0]
            now = self.now()
            hold = {"id": job_id, "owner": "a", "epoch": 1, "now": now}
            assert self.run(self.q.update["complete"], {**hold, "outcome": "completed"})
            self.event(job_id, "complete", "completed", was, now)
            result = {"exit_code": None, "http_status": None, "error": None, "body": b""}
            self.run(self.q.put_result, {"job_id": job_id, **result})

    def claim(self) -> str | None:
        """The head of the queue, by FOR UPDATE SKIP LOCKED."""
        with self.connection.transaction():
            now = self.now()
            waiting = {"partition": "", "label_set": 0, "now": now, "rows": 1}
            rows = self.run(self.q.candidates, waiting)
            if not rows:
                return None
            job_id: str = rows[0][0]
            mine = {"owner": "a", "claim_no": 1, "first_beat_ttl_ms": 90_000, "confirm_ms": 45_000}
            assert self.run(self.q.update["claim"], {"id": job_id, "now": now, **mine})
            self.event(job_id, "claim", "running", rows[0], now)
            self.run(self.q.read_request, {"id": job_id})
            return job_id


def test_admit_start_complete(
    benchmark: BenchmarkFixture, store: PostgresStore, postgres_url: str
) -> None:
    """Three commands, against the same guarded statements written by hand."""
    by_hand = HandWritten(postgres_url, store.schema)
    numbers = count()

    def plain() -> None:
        job_id = f"job-{next(numbers)}"
        by_hand.admit(job_id)
        by_hand.start(job_id)
        by_hand.complete(job_id)

    def ours() -> None:
        job_id = f"job-{next(numbers)}"
        store.execute(c.Admit(job_id, "a", TERMS))
        store.execute(c.Start(job_id, "a", 1, TERMS))
        done = store.execute(c.Complete(job_id, "a", 1, Status.COMPLETED))
        assert isinstance(done, Accepted)

    ratio = taking_turns(benchmark, plain, ours, rounds=400)
    by_hand.connection.close()
    assert ratio >= 0.8


WORKERS = 8
EACH = 15
FEW, MANY, A_MILLION = 1_000, 100_000, 1_000_000
OTHERS = 10_000


def fill_queue(url: str, schema: str, rows: int, name: str = "waiting") -> None:
    """Queued jobs that require no labels, as many enqueues would have left them long ago."""
    columns = "id, status, epoch, beats, requeue, transport, admitted_at"
    names = f"SELECT '{name}-' || lpad(n::text, 7, '0') AS id, n FROM generate_series(1, {rows}) n"
    with psycopg.connect(url, autocommit=True) as connection:
        for table, values in (
            (f"jobs ({columns})", "id, 'queued', 0, 0, 'never', 'process', n"),
            ("job_ids (id, born_at)", "id, n"),
            ("requests (job_id, payload)", "id, ''"),
        ):
            insert = f"INSERT INTO {schema}.{table} SELECT {values} FROM ({names}) AS names"
            connection.execute(insert.encode())
        connection.execute(f"VACUUM ANALYZE {schema}.jobs".encode())


def fill_with_others(store: PostgresStore, url: str) -> None:
    """Jobs in front of all that wait, which require what nobody offers."""
    store.execute(c.Enqueue("other", labels=("gpu", "linux")))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            f"INSERT INTO {store.schema}.jobs (id, status, epoch, beats, requeue, transport,"
            f" admitted_at, label_set) SELECT 'other-' || n, 'queued', 0, 0, 'never',"
            f" 'process', 0, label_set FROM generate_series(1, {OTHERS}) AS n,"
            f" {store.schema}.jobs WHERE id = 'other'".encode()
        )
        connection.execute(f"VACUUM ANALYZE {store.schema}.jobs".encode())


class Fleet:
    """Eight workers on one store, each of which claims and completes."""

    def __init__(self, store: PostgresStore, labels: tuple[str, ...] = ()) -> None:
        self.store = store
        self.labels = labels
        self.claims = count(1)
        for worker in range(WORKERS):
            store.execute(c.Register(f"w{worker}"))

    def loop(self, worker: str) -> None:
        for _ in range(EACH):
            claim = c.Claim(worker, next(self.claims), TERMS, labels=self.labels)
            claimed = self.store.execute(claim)
            assert isinstance(claimed, Claimed)
            (grant,) = claimed.grants
            epoch = grant.standing.epoch
            self.store.execute(c.Complete(grant.standing.job_id, worker, epoch, Status.COMPLETED))

    def run(self) -> None:
        at_once([Thread(target=self.loop, args=(f"w{n}",)) for n in range(WORKERS)])


def at_once(threads: list[Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_claim_and_complete_with_8_workers(
    benchmark: BenchmarkFixture, store: PostgresStore, postgres_url: str
) -> None:
    """Against a loop of FOR UPDATE SKIP LOCKED with a connection for each worker, while 100 000
    jobs wait."""
    by_hand = [HandWritten(postgres_url, store.schema) for _ in range(WORKERS)]
    fill_queue(postgres_url, store.schema, MANY)
    fleet = Fleet(store)

    def plain_loop(hand: HandWritten) -> None:
        for _ in range(EACH):
            job_id = hand.claim()
            assert job_id is not None
            hand.complete(job_id)

    ratio = taking_turns(
        benchmark,
        lambda: at_once([Thread(target=plain_loop, args=(hand,)) for hand in by_hand]),
        fleet.run,
        rounds=20,
    )
    for hand in by_hand:
        hand.connection.close()
    assert ratio >= 0.8


@pytest.mark.parametrize("labels", [(), ("cpu", "linux")], ids=["all match", "10 000 do not"])
def test_a_million_queued_jobs_cost_what_a_thousand_do(
    benchmark: BenchmarkFixture,
    store: PostgresStore,
    postgres_url: str,
    postgres_schema: str,
    labels: tuple[str, ...],
) -> None:
    """Eight workers claim and complete, also where 10 000 jobs that they may not have wait in
    front of all others."""
    few_schema = f"{postgres_schema}_few"
    rounds = 7
    needed = (rounds + 1) * WORKERS * EACH
    try:
        with PostgresStore(postgres_url, schema=few_schema, max_connections=8) as few:
            fill_queue(postgres_url, few_schema, FEW)
            fill_queue(postgres_url, store.schema, A_MILLION)
            if labels:
                fill_with_others(store, postgres_url)
            few_fleet, fleet = Fleet(few, labels), Fleet(store, labels)
            assert needed <= FEW
            ratio = taking_turns(benchmark, few_fleet.run, fleet.run, rounds=rounds)
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {few_schema} CASCADE".encode())
    assert ratio >= 0.8


def fill_owned(url: str, schema: str, rows: int) -> None:
    """Running jobs of the instance `a`, as many admits and starts would have left them."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            f"INSERT INTO {schema}.jobs (id, status, owner, epoch, beats, deadline, ttl_ms,"
            f" confirm_ms, requeue, transport, admitted_at, attempts, beat_at, started_at)"
            f" SELECT 'job-' || lpad(n::text, 5, '0'), 'running', 'a', 1, 2,"
            f" {schema}.now_ms() + 90000, 90000, 45000, 'never', 'process', n, 1, n, n"
            f" FROM generate_series(0, {rows - 1}) AS n".encode()
        )
        connection.execute(f"VACUUM ANALYZE {schema}.jobs".encode())


def test_heartbeat_of_10_000_holds(
    benchmark: BenchmarkFixture, store: PostgresStore, postgres_url: str
) -> None:
    """Against one UPDATE over the same pairs with the same guard and RETURNING."""
    holds = tuple(c.Hold(f"job-{number:05}", 1) for number in range(10_000))
    fill_owned(postgres_url, store.schema, len(holds))
    connection = psycopg.connect(postgres_url, autocommit=True, prepare_threshold=None)
    bare = (
        f"UPDATE {store.schema}.jobs SET beats = beats + 1, deadline = now.ms + 90000,"
        f" ttl_ms = CASE WHEN ttl_ms < 90000 THEN 90000 ELSE ttl_ms END,"
        f" confirm_ms = 45000, beat_at = now.ms"
        f" FROM unnest(%(ids)s::text[], %(epochs)s::bigint[]) AS h (hold_id, hold_epoch),"
        f" (SELECT {store.schema}.now_ms() AS ms) AS now"
        f" WHERE id = hold_id AND epoch = hold_epoch AND owner = 'a'"
        f" AND status IN ('queued', 'running')"
        f" RETURNING id, deadline, cancel_requested_at"
    ).encode()

    def plain() -> None:
        pairs = {"ids": [h.job_id for h in holds], "epochs": [h.epoch for h in holds]}
        with connection.transaction():
            assert len(connection.execute(bare, pairs).fetchall()) == len(holds)

    def ours() -> None:
        beaten = store.execute(c.Heartbeat("a", TERMS, holds))
        assert beaten.answers[-1].answer is Answer.RENEWED

    def prepare() -> None:
        connection.execute(f"VACUUM {store.schema}.jobs".encode())

    ratio = taking_turns(benchmark, plain, ours, rounds=15, prepare=prepare)
    connection.close()
    assert ratio >= 0.4  # aimed at: 0.5


FINISHED = 1_000_000


def test_suspects_and_sweep_beside_a_million_finished_rows(
    benchmark: BenchmarkFixture, store: PostgresStore, postgres_url: str, postgres_schema: str
) -> None:
    """Against the same in a store that holds nothing else."""
    alone_schema = f"{postgres_schema}_alone"
    connection = psycopg.connect(postgres_url, autocommit=True)
    connection.execute(
        f"INSERT INTO {store.schema}.jobs (id, status, owner, epoch, beats, ttl_ms, confirm_ms,"
        f" requeue, transport, admitted_at, attempts, beat_at, started_at, finished_at)"
        f" SELECT 'done-' || lpad(((n::bigint * 7919) % 100000000)::text, 8, '0'), 'completed',"
        f" 'a', 1, 2, 90000, 45000, 'never', 'process', n, 1, n, n, n"
        f" FROM generate_series(1, {FINISHED}) AS n".encode()
    )
    connection.execute(f"VACUUM ANALYZE {store.schema}.jobs".encode())
    numbers = count()

    def dead(schema: str, first: int) -> None:
        connection.execute(
            f"INSERT INTO {schema}.jobs (id, status, owner, epoch, beats, deadline, ttl_ms,"
            f" confirm_ms, requeue, transport, admitted_at, attempts, beat_at, started_at)"
            f" SELECT 'job-' || ({first} + n), 'running', 'b', 1, 2, 1, 90000, 45000, 'never',"
            f" 'process', 1, 1, 1, 1 FROM generate_series(1, 100) AS n".encode()
        )

    def sweep(which: PostgresStore) -> None:
        suspects = which.execute(c.Suspects()).suspects
        targets = tuple(c.Target(s.job_id, s.epoch, s.beats, s.deadline) for s in suspects)
        assert len(which.execute(c.Sweep("a", targets)).answers) >= 100

    try:
        with PostgresStore(postgres_url, schema=alone_schema) as alone:

            def prepare() -> None:
                first = 1000 * next(numbers)
                dead(store.schema, first)
                dead(alone_schema, first)

            ratio = taking_turns(
                benchmark, lambda: sweep(alone), lambda: sweep(store), 20, prepare=prepare
            )
    finally:
        connection.execute(f"DROP SCHEMA IF EXISTS {alone_schema} CASCADE".encode())
        connection.close()
    assert ratio >= 0.5
