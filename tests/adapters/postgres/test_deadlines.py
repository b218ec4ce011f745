"""What a heartbeat and a sweep write while somebody else has the row: E1 to E9 of the reference.

In each case a naive statement, on a table of its own and by the server's own clock, is seen to fail
first: it shows that the case is real on this server. Then the store's command is seen to hold.
"""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.adapters.postgres.conftest import Connect
from tests.adapters.postgres.helpers import (
    PATIENT_MS,
    TERMS,
    Meanwhile,
    Observer,
    ServerClock,
    Session,
    admit_many,
    with_options,
)
from unswept.adapters.postgres import PostgresStore
from unswept.core import commands as c
from unswept.core.lease import Status
from unswept.core.refusal import Refusal
from unswept.core.replies import Accepted, Answer, Found, Suspect

TTL_MS = 50
"""Of the naive table: short, since a wait must outlast it."""


class Naive:
    """A lease table as one writes it first, with one running job, in the hands of two sessions."""

    def __init__(self, connect: Connect, observer: Observer, schema: str) -> None:
        self.a, self.b, self.observer = connect(), connect(), observer
        self.jobs = f"{schema}.naive"
        self.b.run(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        self.b.run(
            f"CREATE TABLE {self.jobs} (id text PRIMARY KEY, status text NOT NULL, owner text,"
            f" deadline timestamptz NOT NULL)"
        )

    def job(self, *, expired: bool) -> None:
        age_ms = 1_000 if expired else -1_000_000
        self.b.run(
            f"INSERT INTO {self.jobs} VALUES"
            f" ('j', 'running', 'a', clock_timestamp() - interval '{age_ms} ms')"
        )

    def hold(self, how: str) -> str:
        """B takes the row's lock and keeps it; gives how B is to let go of it."""
        self.b.begin()
        if how == "plain lock":
            self.b.run(f"SELECT FROM {self.jobs} FOR UPDATE")
        else:
            self.b.run(f"UPDATE {self.jobs} SET owner = owner")
        return "COMMIT" if how == "change" else "ROLLBACK"

    def meanwhile(self, sql: str) -> Meanwhile[list[tuple[Any, ...]]]:
        """A runs a statement, which has to wait for B."""
        work = Meanwhile(lambda: self.a.run(sql.format(jobs=self.jobs)))
        assert self.observer.sees_wait(work, self.b)
        return work

    def late_by(self, sql: str, end: str) -> float:
        """A's heartbeat waits for B longer than its ttl; how many ms its deadline lay in the past
        already when B let go (less than 0: it did not)."""
        work = self.meanwhile(sql)
        self.b.run(f"SELECT pg_sleep({2 * TTL_MS / 1_000})")
        let_go = self.b.value("SELECT clock_timestamp()")
        self.b.run(end)
        work.result()
        ms = f"SELECT extract(epoch FROM %(let_go)s - deadline)::float * 1000 FROM {self.jobs}"
        late: float = self.b.value(ms, let_go=let_go)
        return late

    def status(self) -> str:
        status: str = self.b.value(f"SELECT status FROM {self.jobs}")
        return status

    def beaten_meanwhile(self, sweep: str) -> str:
        """A sweeps an expired job while its heartbeat is not committed yet: the status after."""
        self.job(expired=True)
        self.b.begin()
        self.b.run(f"UPDATE {self.jobs} SET deadline = clock_timestamp() + interval '1 hour'")
        work = Meanwhile(lambda: self.a.run(sweep.format(jobs=self.jobs)))
        self.observer.sees_wait(work, self.b)
        self.b.commit()
        work.result()
        return self.status()


@pytest.fixture
def naive(connect: Connect, observer: Observer, postgres_schema: str) -> Naive:
    return Naive(connect, observer, postgres_schema)


BY_TRANSACTION = f"UPDATE {{jobs}} SET deadline = now() + interval '{TTL_MS} ms'"
BY_CLOCK = f"UPDATE {{jobs}} SET deadline = clock_timestamp() + interval '{TTL_MS} ms'"

# E1, E2: a heartbeat that waits for the row ------------------------------------------------------


def test_e1_naive_now_is_the_start_of_the_transaction(naive: Naive) -> None:
    """A heartbeat that waited writes a deadline that lies in the past already."""
    naive.job(expired=False)
    end = naive.hold("change")
    assert naive.late_by(BY_TRANSACTION, end) > 0


@pytest.mark.parametrize("how", ["rollback", "plain lock"])
def test_e2b_naive_clock_is_read_before_the_wait(naive: Naive, how: str) -> None:
    """`clock_timestamp()` in the UPDATE itself is evaluated before the lock is had, and not again
    where the row turns out to be unchanged."""
    naive.job(expired=False)
    end = naive.hold(how)
    assert naive.late_by(BY_CLOCK, end) > 0


def test_e2a_a_changed_row_is_evaluated_anew(naive: Naive) -> None:
    """Where the row did change the same statement is right, by luck."""
    naive.job(expired=False)
    end = naive.hold("change")
    assert naive.late_by(BY_CLOCK, end) <= -TTL_MS


def test_e2c_a_clock_that_is_read_after_the_lock_is_right(naive: Naive) -> None:
    """Lock first, then stamp."""
    naive.job(expired=False)
    end = naive.hold("rollback")
    naive.a.begin()
    work = naive.meanwhile("SELECT FROM {jobs} FOR UPDATE")
    naive.b.run(f"SELECT pg_sleep({2 * TTL_MS / 1_000})")
    let_go = naive.b.value("SELECT clock_timestamp()")
    naive.b.run(end)
    work.result()
    naive.a.run(BY_CLOCK.format(jobs=naive.jobs))
    naive.a.commit()
    ok = f"SELECT deadline >= %(let_go)s + interval '{TTL_MS} ms' FROM {naive.jobs}"
    assert naive.b.value(ok, let_go=let_go)


HOLDS: dict[str, tuple[str, str]] = {
    "change": ("UPDATE {jobs} SET priority = 7", "COMMIT"),
    "rollback": ("UPDATE {jobs} SET priority = 7", "ROLLBACK"),
    "plain lock": ("SELECT FROM {jobs} FOR UPDATE", "COMMIT"),
}
STAMPS: dict[str, c.Command[Any]] = {
    "heartbeat": c.Heartbeat("a", TERMS, (c.Hold("j", 1),)),
    "start": c.Start("j", "a", 1, TERMS),
    "delay": c.Delay("j", 1, 1, "s"),
}


@pytest.mark.parametrize("how", HOLDS)
@pytest.mark.parametrize("what", STAMPS)
def test_a_stamp_is_by_the_clock_after_the_wait(
    what: str,
    how: str,
    store: PostgresStore,
    clock: ServerClock,
    connect: Connect,
    observer: Observer,
    postgres_schema: str,
) -> None:
    """However whoever had the row lets go of it, the deadline counts from then. (E1, E2)"""
    store.execute(c.Admit("j", "a", TERMS))
    clock.now += TERMS.lease_ttl_ms + 1
    take, end = HOLDS[how]
    stranger = connect()
    stranger.begin()
    stranger.run(take.format(jobs=f"{postgres_schema}.jobs"))
    work: Meanwhile[Any] = Meanwhile(lambda: store.execute(STAMPS[what]))
    assert observer.sees_wait(work, stranger)
    clock.now += 10 * TERMS.lease_ttl_ms
    stranger.run(end)
    work.result()
    assert lease_of(store).deadline == clock.now + TERMS.lease_ttl_ms


def test_one_beat_stamps_all_its_holds_alike(
    store: PostgresStore, connect: Connect, postgres_schema: str
) -> None:
    """However long the statement takes, there is one store time for the holds of a beat, by a clock
    that does not stand; a bare UPDATE reads it row by row."""
    session, jobs = connect(), f"{postgres_schema}.jobs"
    ids = admit_many(session, postgres_schema, 2_000)
    stamps = f"SELECT count(DISTINCT deadline) FROM {jobs}"
    session.run(f"UPDATE {jobs} SET deadline = {postgres_schema}.now_ms()")
    assert session.value(stamps) > 1
    store.execute(c.Heartbeat("a", TERMS, tuple(c.Hold(job_id, 1) for job_id in ids)))
    assert session.value(stamps) == 1


# E3 to E6: a sweep beside a heartbeat that is not committed yet ---------------------------------

_STALE = "status = 'running' AND deadline < clock_timestamp()"
SWEEP_E3 = f"UPDATE {{jobs}} SET status = 'orphaned' WHERE {_STALE}"
SWEEP_E4 = (
    f"UPDATE {{jobs}} SET status = 'orphaned' WHERE id IN (SELECT id FROM {{jobs}} WHERE {_STALE})"
)
SWEEP_E5 = (
    f"WITH stale AS (SELECT id FROM {{jobs}} WHERE {_STALE})"
    f" UPDATE {{jobs}} AS j SET status = 'orphaned' FROM stale WHERE j.id = stale.id"
)
SWEEP_E6 = (
    f"UPDATE {{jobs}} SET status = 'orphaned' WHERE id IN"
    f" (SELECT id FROM {{jobs}} WHERE {_STALE} FOR UPDATE SKIP LOCKED)"
)


@pytest.mark.parametrize("sweep", [SWEEP_E4, SWEEP_E5], ids=["e4", "e5"])
def test_e4_e5_naive_guard_in_a_subselect_sweeps_a_live_job(naive: Naive, sweep: str) -> None:
    """The guard is not tested again on the row that the heartbeat has changed."""
    assert naive.beaten_meanwhile(sweep) == "orphaned"


@pytest.mark.parametrize("sweep", [SWEEP_E3, SWEEP_E6], ids=["e3", "e6"])
def test_e3_e6_a_guard_on_the_row_itself_holds(naive: Naive, sweep: str) -> None:
    """On the updated row, or on rows that nobody has locked, the guard sees the heartbeat."""
    assert naive.beaten_meanwhile(sweep) == "running"


def test_a_sweep_passes_over_a_row_that_is_being_beaten(
    store: PostgresStore, clock: ServerClock, connect: Connect, postgres_schema: str
) -> None:
    """It answers busy for that row alone and orphans the others; the beat counts. (E3 to E6)"""
    for job_id in "jkl":
        store.execute(c.Admit(job_id, "a", TERMS))
    clock.now += TERMS.lease_ttl_ms + 1
    beating = connect()
    beating.begin()
    beating.execute(postgres_schema, c.Heartbeat("a", TERMS, (c.Hold("k", 1),)))
    targets = tuple(c.Target(job_id, 1, 1, clock()) for job_id in "jkl")
    swept = store.execute(c.Sweep("s", targets))
    assert [answer.refusal for answer in swept.answers] == [None, Refusal.BUSY, None]
    beating.commit()
    again = store.execute(c.Sweep("s", targets))
    assert [answer.refusal for answer in again.answers] == [None, Refusal.BEATS_MOVED, None]
    assert lease_of(store, "k").status is Status.QUEUED


# E7: liveness from another table ----------------------------------------------------------------


def test_e7_naive_liveness_in_another_table_sweeps_a_live_job(
    naive: Naive, postgres_schema: str
) -> None:
    """The subquery on the other table is not evaluated anew after the wait for the row."""
    instances = f"{postgres_schema}.naive_instances"
    naive.job(expired=True)
    naive.b.run(f"CREATE TABLE {instances} (id text PRIMARY KEY, seen timestamptz NOT NULL)")
    naive.b.run(f"INSERT INTO {instances} VALUES ('a', clock_timestamp() - interval '1 hour')")
    naive.b.begin()
    naive.b.run(f"UPDATE {naive.jobs} SET deadline = deadline")  # its job's part of the heartbeat
    work = naive.meanwhile(
        f"UPDATE {{jobs}} AS j SET status = 'orphaned' WHERE NOT EXISTS (SELECT FROM {instances}"
        f" WHERE id = j.owner AND seen > clock_timestamp() - interval '1 minute')"
    )
    naive.b.run(f"UPDATE {instances} SET seen = clock_timestamp()")
    naive.b.commit()
    work.result()
    assert naive.status() == "orphaned"


def test_a_sweep_reads_the_lease_and_no_other_row(store: PostgresStore, clock: ServerClock) -> None:
    """An owner that the store does not know keeps its lease, and one that was seen just now loses
    what it has not renewed. (E7)"""
    store.execute(c.Register("seen"))
    store.execute(c.Admit("j", "seen", TERMS))
    store.execute(c.Admit("k", "unknown", TERMS))
    clock.now += TERMS.lease_ttl_ms + 1
    store.execute(c.Heartbeat("seen", TERMS))
    store.execute(c.Heartbeat("unknown", TERMS, (c.Hold("k", 1),)))
    swept = store.execute(
        c.Sweep("s", (c.Target("j", 1, 1, clock()), c.Target("k", 1, 2, clock())))
    )
    assert [answer.refusal for answer in swept.answers] == [None, Refusal.NOT_EXPIRED]


# E8: isolation ----------------------------------------------------------------------------------


def test_e8_naive_repeatable_read_fails_instead_of_waiting(naive: Naive) -> None:
    """At REPEATABLE READ whoever waited for a row that changed has failed."""
    naive.job(expired=True)
    naive.b.begin()
    naive.b.run(f"UPDATE {naive.jobs} SET deadline = clock_timestamp() + interval '1 hour'")
    naive.a.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    work = naive.meanwhile(SWEEP_E3)
    naive.b.commit()
    with pytest.raises(psycopg.errors.SerializationFailure):
        work.result()
    naive.a.rollback()


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_role_whose_default_is_stricter_makes_no_difference(
    level: str, postgres_url: str, postgres_schema: str, connect: Connect, observer: Observer
) -> None:
    """Commands say READ COMMITTED: what waited sees the row as it is now. (E8)"""
    escaped = level.replace(" ", "\\ ")
    url = with_options(postgres_url, f"-c default_transaction_isolation={escaped}")
    with Session(url) as session:
        assert session.value("SHOW transaction_isolation") == level
    with PostgresStore(url, schema=postgres_schema, operation_timeout_ms=PATIENT_MS) as store:
        store.execute(c.Admit("j", "a", TERMS))
        other = connect()
        other.begin()
        other.execute(postgres_schema, c.Start("j", "a", 1, TERMS))
        work = Meanwhile(lambda: store.execute(c.Complete("j", "a", 1, Status.COMPLETED)))
        assert observer.sees_wait(work, other)
        other.commit()
        done = work.result()
        assert isinstance(done, Accepted)
        assert not done.repeated


# E9: a heartbeat that commits late --------------------------------------------------------------


def test_e9_naive_sweep_takes_what_its_owner_is_told_it_holds(naive: Naive) -> None:
    """A heartbeat whose commit comes after the deadline that it stamped, and a sweep between: the
    owner hears that all is well, and the job is orphaned."""
    naive.job(expired=True)
    naive.b.begin()
    renewed = naive.b.count(BY_CLOCK.format(jobs=naive.jobs))
    naive.b.run(f"SELECT pg_sleep({2 * TTL_MS / 1_000})")
    work = naive.meanwhile(SWEEP_E3)
    naive.b.commit()
    work.result()
    assert renewed == 1
    assert naive.status() == "orphaned"


def test_a_beat_that_commits_late_is_not_swept_at_first_sight(
    store: PostgresStore, clock: ServerClock, connect: Connect, postgres_schema: str
) -> None:
    """While it is not committed its row is busy; then it has moved the beats, so that whoever saw
    the stamp before must see the new one first, and stay a window. (E9)"""
    store.execute(c.Admit("j", "a", TERMS))
    beating = connect()
    beating.begin()
    beaten = beating.execute(postgres_schema, c.Heartbeat("a", TERMS, (c.Hold("j", 1),)))
    stamped = beaten.answers[0].deadline
    assert stamped == clock.now + TERMS.lease_ttl_ms
    clock.now += 2 * TERMS.lease_ttl_ms
    sweep = c.Sweep("s", (c.Target("j", 1, 1, clock()),))
    assert store.execute(c.Suspects()).suspects == ()
    assert store.execute(sweep).answers[0].refusal is Refusal.BUSY
    beating.commit()
    assert store.execute(sweep).answers[0].refusal is Refusal.BEATS_MOVED
    (suspect,) = store.execute(c.Suspects()).suspects
    assert isinstance(suspect, Suspect)
    assert (suspect.beats, suspect.deadline) == (2, stamped)
    late = store.execute(c.Heartbeat("a", TERMS, (c.Hold("j", 1),)))
    assert late.answers[0].answer is Answer.RENEWED


def lease_of(store: PostgresStore, job_id: str = "j") -> Any:
    found = store.execute(c.Find(job_id))
    assert isinstance(found, Found)
    return found.job.lease
