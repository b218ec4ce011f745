"""What the planner makes of the statements: no cost of a sweep grows with finished rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.adapters.postgres.conftest import Connect
from tests.adapters.postgres.helpers import Session, admit_many
from unswept.adapters.postgres import PostgresStore
from unswept.adapters.postgres.dialect import PostgresDialect
from unswept.adapters.sql.queries import Queries
from unswept.core import commands as c
from unswept.core.units import Ms

FINISHED = 30_000


@pytest.fixture
def filled(store: PostgresStore, connect: Connect) -> Session:
    """A hundred held jobs, fifty that wait, and many that are over."""
    session = connect()
    admit_many(session, store.schema, 100, deadline=1)
    for number in range(50):
        store.execute(c.Enqueue(f"w{number}"))
    session.run(
        f"INSERT INTO {store.schema}.jobs (id, status, owner, epoch, beats, ttl_ms, confirm_ms,"
        f" requeue, transport, admitted_at, attempts, finished_at)"
        f" SELECT 'done-' || n, 'completed', 'a', 1, 2, 100, 60, 'never', 'process', n, 1, n"
        f" FROM generate_series(1, {FINISHED}) AS n"
    )
    session.run(f"VACUUM ANALYZE {store.schema}.jobs")
    return session


@pytest.fixture
def told(store: PostgresStore, connect: Connect) -> Session:
    """Many jobs that were evicted, a few of them long ago."""
    session = connect()
    session.run(
        f"INSERT INTO {store.schema}.events (job_id, epoch, kind, at, status, beats, forced)"
        f" SELECT 'j' || n, 1, kind, n, 'completed', 1, 0 FROM generate_series(1, {FINISHED}) AS n,"
        f" unnest(ARRAY['admit', 'start', 'complete', 'evict']) AS kind"
    )
    session.run(f"VACUUM ANALYZE {store.schema}.events")
    return session


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def indexes(session: Session, sql: str, **params: Any) -> set[str]:
    """The indexes that a statement goes through; a scan of all jobs or all events fails."""
    explained = session.value(f"EXPLAIN (FORMAT JSON) {sql}", **params)
    if isinstance(explained, str):
        explained = json.loads(explained)
    found = set()
    for node in nodes(explained[0]["Plan"]):
        whole = node["Node Type"] == "Seq Scan" and node["Relation Name"] in ("jobs", "events")
        assert not whole, sql
        found.add(node.get("Index Name", ""))
    return found - {""}


def test_suspects_touch_only_the_owned(filled: Session, store: PostgresStore) -> None:
    """A page of suspects goes through the partial index over active, owned jobs."""
    q = Queries(PostgresDialect(store.schema))
    page = {"now": 2_000_000_000_000, "after": "", "rows": 1_001}
    assert indexes(filled, q.suspects, **page) == {"jobs_owned"}


def test_a_sweep_goes_by_ids(filled: Session, store: PostgresStore) -> None:
    """Its targets are locked and written by index, each for itself."""
    q = Queries(PostgresDialect(store.schema))
    by_id = {"jobs_pkey", "jobs_owned", "jobs_id_epoch_key"}
    ids = {"ids": [f"j{number:05}" for number in range(100)]}
    assert indexes(filled, q.lock_to_sweep, **ids) <= by_id
    one = {"id": "j00001", "epoch": 1, "beats": 1, "now": 2_000_000_000_000}
    assert indexes(filled, q.update["orphan"], **one) <= by_id
    holds = {"hold_ids": ids["ids"], "hold_epochs": [1] * 100, "owner": "a", "now": 1}
    terms = {"lease_ttl_ms": 100, "http_grace_ms": 160, "confirm_ms": 60}
    assert indexes(filled, q.renew_holds, **holds, **terms) <= by_id


def test_claims_and_housekeeping_have_indexes_of_their_own(
    filled: Session, store: PostgresStore
) -> None:
    """The head of the queue, what may expire and what may be evicted are found without a scan."""
    q = Queries(PostgresDialect(store.schema))
    now = 2_000_000_000_000
    here = {"partition": "", "label_set": 0, "now": now, "rows": 1}
    for head in (q.candidates, q.heads):
        assert indexes(filled, head, **here) == {"jobs_waiting"}
    assert indexes(filled, q.expirable, now=now, rows=100) == {"jobs_expirable"}
    assert indexes(filled, q.evictable, now=1_000, retention_ms=10, rows=100) == {"jobs_ended"}
    assert indexes(filled, q.claimed_before, owner="a", claim_no=1) >= {"jobs_claimed"}


def test_counts_go_by_what_is_open(filled: Session, store: PostgresStore) -> None:
    """Each part of a count has its partial index: no finished row is read."""
    q = Queries(PostgresDialect(store.schema))
    assert indexes(filled, q.count_jobs) == {"jobs_waiting", "jobs_owned", "jobs_orphaned"}
    counted = store.execute(c.Count())
    assert (counted.total.waiting, counted.total.held, counted.total.orphaned) == (50, 100, 0)


def test_old_events_are_found_by_their_evictions(told: Session, store: PostgresStore) -> None:
    """Neither the look nor the removal reads an event that is not due."""
    q = Queries(PostgresDialect(store.schema))
    due = {"newest": 4 * FINISHED, "behind": 4 * FINISHED, "event_retention_ms": 10, "now": 1_000}
    by_job = "events_job_id_epoch_kind_key"
    assert "events_evicted" in indexes(told, q.past_events, **due, rows=5_000)
    assert by_job in indexes(told, q.forget_events, **due, id="j7")
    assert "events_pkey" in indexes(told, q.how_far)
    looked = store.execute(c.LookOverdue(Ms(1), Ms(1), Ms(1), 10, Ms(1)))
    assert looked.events == tuple(f"j{number}" for number in range(1, 11))
    assert store.execute(c.ForgetEvents(looked.events, Ms(1))).count == 10
