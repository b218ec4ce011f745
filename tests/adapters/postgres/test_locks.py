"""Locks, large beats, fences and indexes: X1 to X7 of the reference.

As with the deadlines, a naive statement on a table of its own is seen to fail first. X8 is about
speed, and stands with the benchmarks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
import pytest

from tests.adapters.postgres.conftest import Connect
from tests.adapters.postgres.helpers import (
    TERMS,
    Meanwhile,
    Observer,
    ServerClock,
    Session,
    admit_many,
    eventually,
)
from unswept.adapters.postgres import PostgresStore
from unswept.core import commands as c
from unswept.core.errors import MisuseError, StoreUnavailableError
from unswept.core.lease import RequeueRule
from unswept.core.refusal import Refusal
from unswept.core.replies import Accepted, Answer, Claimed, Refused
from unswept.core.units import Ms
from unswept.core.values import Chunk, Request, Stream

LATE = Ms(1_000)
SOON = "SET lock_timeout = '50ms'"


@pytest.fixture
def brief(postgres_url: str, postgres_schema: str) -> Iterator[PostgresStore]:
    """A store that waits for no lock for long."""
    with PostgresStore(postgres_url, schema=postgres_schema, operation_timeout_ms=400) as opened:
        yield opened


@contextmanager
def lock(session: Session, sql: str) -> Iterator[None]:
    """Whatever the statement locks is locked within the block."""
    session.begin()
    session.run(sql)
    try:
        yield
    finally:
        session.rollback()


# X1: the whole table is locked ------------------------------------------------------------------


def test_x1_naive_sweeper_is_steady_while_nobody_can_renew(
    connect: Connect, observer: Observer, postgres_schema: str
) -> None:
    """A beat that touches only its own row goes through, and its sweep, which waits for the table,
    is carried out before the owner's next try."""
    jobs, instances = f"{postgres_schema}.naive", f"{postgres_schema}.naive_instances"
    owner, sweeper, stranger = connect(), connect(), connect()
    owner.run(f"CREATE SCHEMA {postgres_schema}")
    owner.run(f"CREATE TABLE {jobs} (id text PRIMARY KEY, status text, deadline timestamptz)")
    owner.run(f"CREATE TABLE {instances} (id text PRIMARY KEY, seen timestamptz)")
    owner.run(f"INSERT INTO {jobs} VALUES ('j', 'running', clock_timestamp())")
    owner.run(f"INSERT INTO {instances} VALUES ('s', clock_timestamp())")
    owner.run(SOON)
    with lock(stranger, f"LOCK TABLE {jobs} IN SHARE MODE"):
        with pytest.raises(psycopg.errors.LockNotAvailable):
            owner.run(f"UPDATE {jobs} SET deadline = clock_timestamp() + interval '1 hour'")
        assert sweeper.count(f"UPDATE {instances} SET seen = clock_timestamp()") == 1
        sweep = f"UPDATE {jobs} SET status = 'orphaned' WHERE deadline < clock_timestamp()"
        work = Meanwhile(lambda: sweeper.count(sweep))
        assert observer.sees_wait(work, stranger)
    assert work.result() == 1

    with (
        lock(stranger, f"LOCK TABLE {jobs} IN SHARE MODE"),
        pytest.raises(psycopg.errors.LockNotAvailable),
    ):  # an update of no row would have noticed
        owner.run(f"UPDATE {jobs} SET status = status WHERE false")


def test_no_beat_is_accepted_while_the_table_is_locked(
    brief: PostgresStore, connect: Connect, postgres_schema: str
) -> None:
    """Also one without holds tries the lease table, so that no sweeper stays steady. (X1, L12)"""
    brief.execute(c.Register("s"))
    with lock(connect(), f"LOCK TABLE {postgres_schema}.jobs IN SHARE MODE"):
        for beat in (c.Heartbeat("s", TERMS), c.Heartbeat("s", TERMS, watched=("j",))):
            with pytest.raises(StoreUnavailableError):
                brief.execute(beat)
    assert brief.execute(c.Heartbeat("s", TERMS)).registered


def test_a_lock_that_is_not_to_be_had_is_called_one(
    brief: PostgresStore, connect: Connect, postgres_schema: str
) -> None:
    """Whoever waited for a row in vain is told so, and not that a statement was slow."""
    brief.execute(c.Admit("j", "a", TERMS))
    with (
        lock(connect(), f"SELECT FROM {postgres_schema}.jobs WHERE id = 'j' FOR UPDATE"),
        pytest.raises(StoreUnavailableError, match="locked"),
    ):
        brief.execute(c.Start("j", "a", 1, TERMS))


# X2: one row of many is locked ------------------------------------------------------------------

MANY = 10_000


def test_x2_naive_lock_of_all_renews_none(
    connect: Connect, store: PostgresStore, postgres_schema: str
) -> None:
    """Lock first, and one row that a stranger has locked ends the beat of all the others."""
    beating, stranger, jobs = connect(), connect(), f"{postgres_schema}.jobs"
    ids = admit_many(beating, postgres_schema, MANY)
    beating.run(SOON)
    naive = f"SELECT id FROM {jobs} WHERE id = ANY(%(ids)s) ORDER BY id FOR UPDATE"
    with lock(stranger, f"SELECT FROM {jobs} WHERE id = 'j07777' FOR UPDATE"):
        with pytest.raises(psycopg.errors.LockNotAvailable):
            beating.run(naive, ids=ids)
        assert len(beating.run(f"{naive} SKIP LOCKED", ids=ids)) == MANY - 1


def test_of_ten_thousand_holds_all_but_the_locked_one_are_renewed(
    postgres_url: str, postgres_schema: str, connect: Connect
) -> None:
    """The one is busy, and is renewed as soon as the stranger lets go. (X2, L8)"""
    with PostgresStore(postgres_url, schema=postgres_schema, operation_timeout_ms=4_000) as store:
        clock, stranger, jobs = (
            ServerClock(connect(), postgres_schema),
            connect(),
            f"{postgres_schema}.jobs",
        )
        ids = admit_many(stranger, postgres_schema, MANY)
        clock.now += 7
        holds = tuple(c.Hold(job_id, 1) for job_id in reversed(ids))
        with lock(stranger, f"SELECT FROM {jobs} WHERE id = 'j07777' FOR UPDATE"):
            beaten = store.execute(c.Heartbeat("a", TERMS, holds))
            assert [answer.job_id for answer in beaten.answers] == [hold.job_id for hold in holds]
            answers = {answer.job_id: answer.answer for answer in beaten.answers}
            assert answers.pop("j07777") is Answer.BUSY
            assert set(answers.values()) == {Answer.RENEWED}
            renewed = f"SELECT count(*) FROM {jobs} WHERE deadline = %(deadline)s"
            assert stranger.value(renewed, deadline=clock.now + TERMS.lease_ttl_ms) == MANY - 1
        beaten = store.execute(c.Heartbeat("a", TERMS, (c.Hold("j07777", 1),)))
        assert beaten.answers[0].answer is Answer.RENEWED


def test_a_row_that_a_stranger_keeps_past_the_ttl_costs_nobody_anything(
    brief: PostgresStore, connect: Connect, postgres_schema: str
) -> None:
    """Its owner cannot renew it, so it is busy, no suspect, reported as locked to whoever watches
    it, and neither swept nor delayed; afterwards its owner's beat revives it. (L2, L8, L12)"""
    clock, stranger = ServerClock(connect(), postgres_schema), connect()
    for job_id in "jkl":
        brief.execute(c.Admit(job_id, "a", TERMS))
    row = f"SELECT FROM {postgres_schema}.jobs WHERE id = 'k' FOR UPDATE"
    sweep = c.Sweep("s", tuple(c.Target(job_id, 1, 1, clock()) for job_id in "jk"))
    beat = c.Heartbeat("a", TERMS, (c.Hold("k", 1), c.Hold("l", 1)))
    with lock(stranger, row):
        clock.now += TERMS.lease_ttl_ms + 1
        beaten = brief.execute(beat)
        assert [answer.answer for answer in beaten.answers] == [Answer.BUSY, Answer.RENEWED]
        suspects = brief.execute(c.Suspects()).suspects
        assert [suspect.job_id for suspect in suspects] == ["j"]
        watching = c.Heartbeat("s", TERMS, watched=("l", "k", "j"))
        assert brief.execute(watching).locked == ("k",)
        with pytest.raises(StoreUnavailableError):
            brief.execute(c.Delay("k", 1, 1, "s"))
        swept = brief.execute(sweep)
        assert [answer.refusal for answer in swept.answers] == [None, Refusal.BUSY]
    assert brief.execute(watching).locked == ()
    beaten = brief.execute(beat)
    assert [answer.answer for answer in beaten.answers] == [Answer.RENEWED, Answer.RENEWED]
    swept = brief.execute(sweep)
    assert [answer.refusal for answer in swept.answers] == [None, Refusal.BEATS_MOVED]
    assert swept.answers[0].repeated


def test_many_rows_that_are_locked_for_a_moment_each_spoil_no_beat(
    connect: Connect, observer: Observer, postgres_url: str, postgres_schema: str
) -> None:
    """Each of many strangers lets go of its row soon after the beat begins to wait for it: together
    they last longer than the operation timeout, and yet the beat renews what it can. (L8)"""
    with PostgresStore(postgres_url, schema=postgres_schema, operation_timeout_ms=400) as store:
        ids = admit_many(connect(), postgres_schema, 30)
        strangers = [connect() for _ in ids[:-1]]
        for stranger, job_id in zip(strangers, ids, strict=False):
            stranger.begin()
            stranger.run(f"SELECT FROM {postgres_schema}.jobs WHERE id = '{job_id}' FOR UPDATE")
        beat = c.Heartbeat("a", TERMS, tuple(c.Hold(job_id, 1) for job_id in ids))
        work = Meanwhile(lambda: store.execute(beat))
        for stranger in strangers:
            if observer.sees_wait(work, stranger):
                work.over(0.03)  # less than the moment that a beat gives a row, and it adds up
            stranger.rollback()
        said = [answer.answer for answer in work.result().answers]
        assert said[-1] is Answer.RENEWED
        assert set(said) <= {Answer.RENEWED, Answer.BUSY}


def test_a_beat_does_not_depend_on_its_instance_row(
    brief: PostgresStore, connect: Connect, postgres_schema: str
) -> None:
    """The row only helps people: while a stranger keeps it locked, leases are renewed. (L8)"""
    brief.execute(c.Register("a"))
    brief.execute(c.Admit("j", "a", TERMS))
    row = f"SELECT FROM {postgres_schema}.instances WHERE id = 'a' FOR UPDATE"
    with lock(connect(), row):
        beaten = brief.execute(c.Heartbeat("a", TERMS, (c.Hold("j", 1),)))
    assert beaten.answers[0].answer is Answer.RENEWED


# X3: output of an old epoch ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "share", "requeue_waits", "beat_waits"),
    [
        ("", "FOR KEY SHARE", False, False),
        ("", "FOR SHARE", True, True),
        ("UNIQUE (id, epoch)", "FOR KEY SHARE", True, False),
    ],
    ids=["naive", "too strict", "right"],
)
def test_x3_naive_key_share_fences_no_output(
    key: str,
    share: str,
    requeue_waits: bool,
    beat_waits: bool,
    connect: Connect,
    observer: Observer,
    postgres_schema: str,
) -> None:
    """Only where the epoch is part of a key does a requeue wait for the output that has checked it,
    while heartbeats pass."""
    jobs = f"{postgres_schema}.naive"
    writer, other = connect(), connect()
    writer.run(f"CREATE SCHEMA {postgres_schema}")
    writer.run(
        f"CREATE TABLE {jobs} (id text PRIMARY KEY, epoch bigint, deadline int"
        f"{', ' if key else ''}{key})"
    )
    writer.run(f"INSERT INTO {jobs} VALUES ('j', 1, 0)")
    for sql, waits in (
        (f"UPDATE {jobs} SET deadline = deadline + 1", beat_waits),
        (f"UPDATE {jobs} SET epoch = epoch + 1", requeue_waits),
    ):
        with lock(writer, f"SELECT FROM {jobs} WHERE id = 'j' AND epoch = 1 {share}"):
            work = Meanwhile(partial(other.count, sql))
            assert observer.sees_wait(work, writer) == waits
        assert work.result() == 1


def test_what_moves_the_epoch_waits_for_output_and_beats_do_not(
    store: PostgresStore,
    clock: ServerClock,
    connect: Connect,
    observer: Observer,
    postgres_schema: str,
) -> None:
    """A chunk that is being appended under an epoch belongs to it; a renewal, also of a watcher,
    finds the row free. (X3, L3)"""
    store.execute(c.Admit("j", "a", TERMS, requeue=RequeueRule.ALLOWED))
    writer = connect()
    writer.begin()
    output = c.Output("j", "a", 1, Chunk(0, Stream.STDOUT, b"x"), LATE)
    writer.execute(postgres_schema, output)
    beaten = store.execute(c.Heartbeat("a", TERMS, (c.Hold("j", 1),)))
    assert beaten.answers[0].answer is Answer.RENEWED
    assert store.execute(c.Heartbeat("s", TERMS, watched=("j",))).locked == ()
    work = Meanwhile(lambda: store.execute(c.Release("j", "a", 1)))
    assert observer.sees_wait(work, writer)
    writer.commit()
    assert isinstance(work.result(), Accepted)
    late = store.execute(c.Output("j", "a", 1, Chunk(1, Stream.STDOUT, b"y"), LATE))
    assert isinstance(late, Refused)
    assert late.reason is Refusal.STALE_EPOCH


def test_output_waits_for_what_moves_the_epoch_and_is_then_refused(
    store: PostgresStore,
    clock: ServerClock,
    connect: Connect,
    observer: Observer,
    postgres_schema: str,
) -> None:
    """The other order: nothing of the old epoch lands behind its end. (X3, L3)"""
    store.execute(c.Admit("j", "a", TERMS, requeue=RequeueRule.ALLOWED))
    other = connect()
    other.begin()
    other.execute(postgres_schema, c.Release("j", "a", 1))
    output = c.Output("j", "a", 1, Chunk(0, Stream.STDOUT, b"x"), LATE)
    work = Meanwhile(lambda: store.execute(output))
    assert observer.sees_wait(work, other)
    other.commit()
    late = work.result()
    assert isinstance(late, Refused)
    assert late.reason is Refusal.STALE_EPOCH
    assert other.value(f"SELECT count(*) FROM {postgres_schema}.output") == 0


# X4: what no array can carry --------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad", [("a\0b", 1), ("\ud800", 1), ("b", 2**63)], ids=["NUL", "surrogate", "2^63"]
)
def test_x4_naive_array_fails_as_a_whole(connect: Connect, bad: tuple[str, int]) -> None:
    """One such id or epoch, and no hold of the beat is renewed; a command refuses it when made."""
    holds = [("a", 1), bad]
    ids, epochs = [job_id for job_id, _ in holds], [epoch for _, epoch in holds]
    naive = "SELECT * FROM unnest(%(ids)s::text[], %(epochs)s::bigint[])"
    with pytest.raises((psycopg.DataError, UnicodeEncodeError)):
        connect().run(naive, ids=ids, epochs=epochs)
    with pytest.raises(MisuseError):
        c.Hold(*bad)


# X5: which updates are HOT ----------------------------------------------------------------------


def hot_share(session: Session, schema: str, table: str, update: str, times: int) -> float:
    """How many of the updates of a table touched no index."""
    session.begin()
    for _ in range(times):
        session.run(update)
    stats = (
        "SELECT n_tup_hot_upd::float / n_tup_upd FROM pg_stat_xact_user_tables"
        " WHERE schemaname = %(schema)s AND relname = %(table)s"
    )
    share: float = session.value(stats, schema=schema, table=table)
    session.commit()
    return share


@pytest.mark.parametrize(
    ("condition", "share"),
    [("deadline IS NOT NULL", 0.0), ("status IN ('queued', 'running')", 1.0)],
    ids=["naive", "right"],
)
def test_x5_naive_index_that_names_the_deadline_ends_hot_updates(
    connect: Connect, postgres_schema: str, condition: str, share: float
) -> None:
    """Also where the deadline stands only in the index's condition, which stays as true as it was:
    then every renewal writes to every index."""
    session, table = connect(), f"{postgres_schema}.naive"
    session.run(f"CREATE SCHEMA {postgres_schema}")
    session.run(
        f"CREATE TABLE {table} (id text PRIMARY KEY, status text, deadline int)"
        f" WITH (fillfactor = 50)"
    )
    session.run(f"CREATE INDEX ON {table} (id) WHERE {condition}")
    session.run(f"INSERT INTO {table} SELECT i, 'running', 0 FROM generate_series(1, 100) AS i")
    update = f"UPDATE {table} SET deadline = deadline + 1"
    assert hot_share(session, postgres_schema, "naive", update, 1) == share


def test_renewals_touch_no_index(
    store: PostgresStore, connect: Connect, postgres_schema: str
) -> None:
    """A hundred beats of a thousand jobs: at least 95 % of the updates are HOT. (X5)"""
    session = connect()
    ids = admit_many(session, postgres_schema, 1_000)
    beat = c.Heartbeat("a", TERMS, tuple(c.Hold(job_id, 1) for job_id in ids))
    for _ in range(100):
        store.execute(beat)
    # Each backend reports what it did when it is idle, at the latest when it ends.
    store.close()
    stats = (
        "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables"
        " WHERE schemaname = %(schema)s AND relname = 'jobs'"
    )
    eventually(lambda: session.run(stats, schema=postgres_schema)[0][0] >= 100_000)
    updated, hot = session.run(stats, schema=postgres_schema)[0]
    assert updated == 100_000
    assert hot / updated >= 0.95


# X6: an admit in a caller's transaction ---------------------------------------------------------


def test_x6_naive_admit_in_an_open_transaction_is_invisible(
    store: PostgresStore,
    clock: ServerClock,
    connect: Connect,
    observer: Observer,
    postgres_schema: str,
) -> None:
    """Its own beat finds no row, its deadline is over before it is born, and equal requests wait
    for a transaction that ends whenever it likes."""
    caller = connect()
    caller.begin()
    request = Request(b"", "p", "k")
    caller.execute(postgres_schema, c.Admit("j", "a", TERMS, request=request))
    beaten = store.execute(c.Heartbeat("a", TERMS, (c.Hold("j", 1),)))
    assert beaten.answers[0].answer is Answer.ABSENT
    twin = c.Admit("k", "a", TERMS, request=request, dedup_window_ms=Ms(1_000))
    work = Meanwhile(lambda: store.execute(twin))
    assert observer.sees_wait(work, caller)
    clock.now += TERMS.lease_ttl_ms + 1
    caller.commit()
    work.result()
    assert [suspect.job_id for suspect in store.execute(c.Suspects()).suspects] == ["j"]


def test_an_admit_in_a_callers_transaction_is_refused(
    store: PostgresStore, connect: Connect
) -> None:
    """Only what nobody has to beat for may wait for a caller's commit. (X6)"""
    caller = connect()
    caller.begin()
    with pytest.raises(MisuseError, match="an Enqueue or a Complete"):
        store.execute_within(caller.connection, c.Admit("j", "a", TERMS))  # type: ignore[arg-type]
    caller.rollback()


# X7: what a claim reads -------------------------------------------------------------------------


def scanned(session: Session, sql: str, **params: Any) -> float:
    """How many rows a statement looked at, whether it gave them or not."""
    ((plan,),) = session.run(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", **params)
    plans = plan if isinstance(plan, list) else json.loads(plan)

    def rows(node: dict[str, Any]) -> float:
        mine = float(node["Actual Rows"]) + float(node.get("Rows Removed by Filter", 0))
        return max([mine * int(node["Actual Loops"]), *map(rows, node.get("Plans", []))])

    return rows(plans[0]["Plan"])


def test_x7_naive_order_by_id_walks_past_all_that_do_not_match(
    connect: Connect, postgres_schema: str
) -> None:
    """Labels that are tested row by row, in the order of the ids: every job in front is read."""
    session, table = connect(), f"{postgres_schema}.naive"
    session.run(f"CREATE SCHEMA {postgres_schema}")
    session.run(f"CREATE TABLE {table} (id int PRIMARY KEY, status text, labels text[])")
    session.run(
        f"INSERT INTO {table} SELECT i, 'queued', ARRAY['gpu'] FROM generate_series(1, 10000) AS i"
    )
    session.run(f"INSERT INTO {table} VALUES (20000, 'queued', ARRAY['cpu'])")
    session.run(f"ANALYZE {table}")
    naive = (
        f"SELECT id FROM {table} WHERE status = 'queued' AND labels <@ ARRAY['cpu']"
        f" ORDER BY id LIMIT 1"
    )
    assert scanned(session, naive) >= 10_000


def test_a_claim_reads_no_more_than_it_takes(
    store: PostgresStore, clock: ServerClock, connect: Connect, postgres_schema: str
) -> None:
    """The jobs of other partitions in front, waiting or over, are not looked at. (X7)"""
    session, jobs = connect(), f"{postgres_schema}.jobs"
    store.execute(c.Register("a"))
    store.execute(c.Enqueue("mine", partition="mine", priority=5))
    session.run(
        f"INSERT INTO {jobs} (id, status, epoch, beats, requeue, transport, admitted_at, partition)"
        f" SELECT 'a' || i, 'queued', 0, 0, 'never', 'process', 0, 'other'"
        f" FROM generate_series(1, 10000) AS i"
    )
    session.run(f"ANALYZE {jobs}")
    before = reads(session, postgres_schema)
    claimed = store.execute(c.Claim("a", 1, TERMS, partition="mine", limit=10))
    assert isinstance(claimed, Claimed)
    assert [grant.standing.job_id for grant in claimed.grants] == ["mine"]
    store.close()
    eventually(lambda: reads(session, postgres_schema) != before)
    after = reads(session, postgres_schema)
    assert after[0] == before[0], "a sequential scan"
    assert after[1] - before[1] < 100


def reads(session: Session, schema: str) -> tuple[int, int]:
    """(rows read by sequential scans, rows fetched by index) of the table of jobs, so far."""
    stats = (
        "SELECT seq_tup_read, idx_tup_fetch FROM pg_stat_user_tables"
        " WHERE schemaname = %(schema)s AND relname = 'jobs'"
    )
    ((by_scan, by_index),) = session.run(stats, schema=schema)
    return by_scan, by_index
