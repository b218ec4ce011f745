"""On every store: claims by labels take what the pure store takes, and look at nothing else."""

from __future__ import annotations

import sqlite3
from itertools import count
from pathlib import Path
from random import Random
from threading import Barrier, Thread
from typing import Any

import pytest

from tests.adapters.postgres.helpers import ServerClock, Session
from tests.adapters.sqlite.helpers import TERMS
from unswept.adapters.postgres import PostgresStore
from unswept.adapters.postgres.dialect import PostgresDialect
from unswept.adapters.sql.queries import Queries
from unswept.adapters.sql.rows import labels_text
from unswept.adapters.sqlite import SqliteStore
from unswept.adapters.sqlite.dialect import SqliteDialect
from unswept.core import commands as c
from unswept.core.memory import MemoryStore
from unswept.core.replies import Accepted, Claimed

NAMES = ("cpu", "gpu", "CPU", "é", "o'h", "[]", "a,b", '"', "\\")


@pytest.fixture
def postgres(postgres_store: PostgresStore) -> PostgresStore:
    return postgres_store


def drawn(random: Random, most: int) -> tuple[str, ...]:
    return tuple(random.sample(NAMES, random.randint(0, most)))


def test_sqlite_knows_the_subsets_that_python_knows() -> None:
    """Whatever characters the labels have."""
    database = sqlite3.connect(":memory:")
    check_subsets(
        SqliteDialect().offered,
        lambda sql, params: database.execute(sql, params).fetchall(),
    )


def test_postgres_knows_the_subsets_that_python_knows(postgres_url: str) -> None:
    """The same there."""
    dialect = PostgresDialect()
    with Session(postgres_url) as session:
        check_subsets(
            dialect.offered,
            lambda sql, params: session.run(dialect.text(sql), **params),
        )


def check_subsets(offered: str, run: Any) -> None:
    random = Random(7)
    met = set()
    for _ in range(200):
        required, given = drawn(random, 3), drawn(random, 6)
        sql = f"SELECT 1 FROM (SELECT :labels AS labels) AS s WHERE {offered}"
        said = {"labels": labels_text(sorted(required)), "offered": labels_text(given)}
        fits = bool(run(sql, said))
        assert fits == set(given).issuperset(required), (required, given)
        met.add((fits, bool(required)))
    assert len(met) == 3  # nothing is required of nobody


def test_many_claims_take_the_same_from_every_store(
    postgres_url: str, postgres_schema: str, postgres: PostgresStore, tmp_path: Path
) -> None:
    """In the same order, through queues that are longer than what a claim looks at first."""
    random = Random(3)
    session = Session(postgres_url)
    clock = ServerClock(session, postgres_schema)
    pure = MemoryStore(clock)
    with SqliteStore(tmp_path / "jobs.db", clock=clock, durability="normal") as sqlite:
        for store in (pure, sqlite, postgres):
            store.execute(c.Register("a"))
        for number in range(150):
            clock.now += 1
            enqueue = c.Enqueue(
                f"j{random.randrange(10**6):06}-{number}",
                labels=drawn(random, 2),
                priority=random.randint(0, 2),
            )
            for store in (pure, sqlite, postgres):
                assert isinstance(store.execute(enqueue), Accepted)
        for number in range(1, 200):
            claim = c.Claim("a", number, TERMS, limit=random.randint(1, 4), labels=drawn(random, 9))
            expected = taken(pure.execute(claim))
            assert taken(sqlite.execute(claim)) == expected
            assert taken(postgres.execute(claim)) == expected
    session.close()


def taken(reply: Any) -> list[str]:
    assert isinstance(reply, Claimed)
    return [grant.standing.job_id for grant in reply.grants]


def test_a_set_is_interned_once_however_many_need_it_first(
    postgres_url: str, postgres_schema: str, postgres: PostgresStore
) -> None:
    """Enqueues that meet wait for whoever gives a set its number, and agree on it."""
    barrier = Barrier(6)

    def enqueue(worker: int) -> None:
        barrier.wait()
        for number in range(10):
            reply = postgres.execute(c.Enqueue(f"j{worker}-{number}", labels=("gpu", str(number))))
            assert isinstance(reply, Accepted)

    threads = [Thread(target=enqueue, args=(worker,)) for worker in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Session(postgres_url) as session:
        labels = f"{postgres_schema}.label_sets"
        assert session.value(f"SELECT count(*) FROM {labels}") == 11
        used = f"SELECT count(*), count(DISTINCT label_set) FROM {postgres_schema}.jobs"
        assert session.run(used) == [(60, 10)]


def test_a_claim_locks_only_what_it_takes(
    postgres_url: str, postgres_schema: str, postgres: PostgresStore
) -> None:
    """Claims that meet get different jobs, also where each set of labels has but one."""
    for number in range(4):
        postgres.execute(c.Enqueue(f"j{number}", labels=(f"l{number}",)))
    offered = tuple(f"l{number}" for number in range(4))
    for owner in "abcd":
        postgres.execute(c.Register(owner))
    with Session(postgres_url) as first, Session(postgres_url) as second:
        for session, owner, job_id in ((first, "a", "j0"), (second, "b", "j1")):
            session.begin()
            claim = c.Claim(owner, 1, TERMS, labels=offered)
            assert taken(session.execute(postgres_schema, claim)) == [job_id]
        assert taken(postgres.execute(c.Claim("c", 1, TERMS, labels=offered))) == ["j2"]
        first.rollback()
        assert taken(postgres.execute(c.Claim("d", 1, TERMS, limit=9, labels=offered))) == [
            "j0",
            "j3",
        ]
        second.commit()


def test_a_claim_looks_behind_what_others_have_locked(
    postgres_url: str, postgres_schema: str, postgres: PostgresStore
) -> None:
    """Also where more are locked than it looked at first: the head of a queue blocks nobody."""
    for number in range(300):
        postgres.execute(c.Enqueue(f"j{number:03}", labels=("x" if number % 2 else "y",)))
    postgres.execute(c.Register("a"))
    with Session(postgres_url) as session:
        session.begin()
        session.run(f"SELECT 1 FROM {postgres_schema}.jobs WHERE id < 'j280' FOR UPDATE")
        claim = c.Claim("a", 1, TERMS, labels=("x", "y"), limit=3)
        assert taken(postgres.execute(claim)) == ["j280", "j281", "j282"]


OTHERS = 10_000


def test_sqlite_passes_over_what_does_not_match(tmp_path: Path) -> None:
    """Jobs of other labels in front are not looked at: the rows that a claim reads are counted by
    the steps of the library's own machine."""
    numbers = count(1)
    with SqliteStore(tmp_path / "jobs.db", durability="normal") as store:
        store.execute(c.Register("a"))
        store.execute(c.Enqueue("other", labels=("gpu",)))
        for job_id in ("one", "two", "three"):
            store.execute(c.Enqueue(job_id, priority=5, labels=("cpu",)))
    database = sqlite3.connect(tmp_path / "jobs.db")
    database.execute(
        "INSERT INTO unswept_jobs (id, status, epoch, beats, requeue, transport, admitted_at,"
        " label_set) WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n <"
        f" {OTHERS}) SELECT 'a' || n, 'queued', 0, 0, 'never', 'process', 0, label_set FROM n,"
        " unswept_jobs WHERE id = 'other'"
    )
    database.commit()
    q = Queries(SqliteDialect())
    steps = [0]

    def counted() -> int:
        steps[0] += 1
        return 0

    database.set_progress_handler(counted, 1)
    here = {"partition": "", "now": 1, "offered": labels_text(("cpu", "tpu"))}
    ((number,),) = database.execute(q.matching_sets, here).fetchall()
    said = {**here, "label_set": number, "rows": next(numbers)}
    assert len(database.execute(q.candidates, said).fetchall()) == 1
    database.close()
    assert steps[0] < 1_000
