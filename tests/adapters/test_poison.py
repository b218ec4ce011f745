"""On every store: a row whose sweep the database refuses stops no other's."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.postgres.helpers import Session
from tests.adapters.sqlite.helpers import TERMS
from unswept.adapters.postgres import AsyncPostgresStore, PostgresStore
from unswept.adapters.sqlite import SqliteStore
from unswept.core import commands as c
from unswept.core.refusal import Refusal
from unswept.core.units import StoreMs

IDS = tuple(f"j{number}" for number in range(7))
POISON = "j3"
SWEEP = c.Sweep("s", tuple(c.Target(job_id, 1, 1, StoreMs(1)) for job_id in (*IDS, "none")))
LEFT = (
    "INSERT INTO {events} (job_id, epoch, kind, at, status, beats, forced)"
    f" VALUES ('{POISON}', 1, 'orphan', 0, 'orphaned', 1, 0)"
)
"""An event that no sweep has left: the sweep's own cannot be written beside it."""
EXPIRED = "UPDATE {jobs} SET deadline = 1"


def check(execute: Callable[[c.Command[Any]], Any]) -> None:
    """All but one are swept, at once, and by a repeat no more."""
    for repeated in (False, True):
        answers = execute(SWEEP).answers
        assert [answer.job_id for answer in answers] == [*IDS, "none"]
        became = {answer.job_id: answer for answer in answers}
        assert became.pop("none").refusal is Refusal.ABSENT
        assert became.pop(POISON).refusal is Refusal.BROKEN
        assert {(a.refusal, a.repeated) for a in became.values()} == {(None, repeated)}
        assert execute(c.Find(POISON)).job.lease.status == "queued"
        assert execute(c.Find("j4")).job.lease.status == "orphaned"
    alone = c.Sweep("s", (SWEEP.targets[3],))
    assert [answer.refusal for answer in execute(alone).answers] == [Refusal.BROKEN]


def test_on_sqlite(tmp_path: Path) -> None:
    """The write lock is given back between the halves."""
    path = tmp_path / "jobs.db"
    with SqliteStore(path) as store:
        for job_id in IDS:
            store.execute(c.Admit(job_id, "a", TERMS))
        database = sqlite3.connect(path)
        database.execute(LEFT.format(events="unswept_events"))
        database.execute(EXPIRED.format(jobs="unswept_jobs"))
        database.commit()
        database.close()
        check(store.execute)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_on_postgres(postgres_url: str, postgres_schema: str, asynchronous: bool) -> None:
    """Blocking and asynchronous."""
    with PostgresStore(postgres_url, schema=postgres_schema) as store:
        for job_id in IDS:
            store.execute(c.Admit(job_id, "a", TERMS))
        with Session(postgres_url) as session:
            session.run(LEFT.format(events=f"{postgres_schema}.events"))
            session.run(EXPIRED.format(jobs=f"{postgres_schema}.jobs"))
        if not asynchronous:
            check(store.execute)
            return
    with asyncio.Runner() as loop:
        other = AsyncPostgresStore(postgres_url, schema=postgres_schema)
        loop.run(other.open())
        check(lambda command: loop.run(other.execute(command)))
        loop.run(other.close())
