"""What the Postgres tests share: sessions driven by hand, who waits for whom, a clock that a test
owns, and a look at all tables."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import psycopg

from tests.adapters.tables import COLUMNS, selected, tables_from
from unswept.adapters.postgres.session import inside
from unswept.adapters.postgres.settings import CONNECTION, Settings, settings
from unswept.adapters.postgres.simulated import MovableClock
from unswept.adapters.postgres.sync import drive
from unswept.adapters.sql.scripts import SCRIPTS
from unswept.core.commands import Command
from unswept.core.job import Terms
from unswept.core.units import Ms, StoreMs

R = TypeVar("R")
T = TypeVar("T")

TERMS = Terms(Ms(100), Ms(160), Ms(80), Ms(60))
"""Lease ttl 100, http grace 160, first beat 80, window 60."""
PATIENT_MS = 60_000
"""An operation timeout that no test outlives; a heartbeat waits an eighth of it for a row."""
PATIENCE_S = 30.0
"""After this a test gives up; nothing here is expected to take a second."""


class Session:
    """One backend of the server, driven by hand: each statement for itself until BEGIN."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.connection = psycopg.connect(url, **CONNECTION)
        self.pid: int = self.connection.info.backend_pid

    def run(self, sql: str, **params: Any) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(sql.encode(), params or None)
        return [] if cursor.description is None else cursor.fetchall()

    def value(self, sql: str, **params: Any) -> Any:
        ((value,),) = self.run(sql, **params)
        return value

    def count(self, sql: str, **params: Any) -> int:
        """How many rows a statement changed."""
        return self.connection.execute(sql.encode(), params or None).rowcount

    def begin(self) -> None:
        self.run("BEGIN ISOLATION LEVEL READ COMMITTED")

    def commit(self) -> None:
        self.run("COMMIT")

    def rollback(self) -> None:
        self.run("ROLLBACK")

    def execute(self, schema: str, command: Command[R]) -> R:
        """A command of the store in this session's open transaction."""
        store = _settings(self.url, schema)
        script = SCRIPTS[type(command)].script(store.queries, command)
        reply: R = drive(self.connection, inside(script, store.clock, store.limits), "the test")
        return reply

    def close(self) -> None:
        self.connection.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@cache
def _settings(url: str, schema: str) -> Settings:
    return settings(url, schema)


_WHO_WAITS = "SELECT pid FROM pg_stat_activity WHERE %(pid)s = ANY(pg_blocking_pids(pid))"


_WHO_PAUSES = (
    "SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND application_name = 'unswept'"
)


class Meanwhile(Generic[T]):
    """What another thread does while the test goes on."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._answers: list[T] = []
        self._errors: list[BaseException] = []
        self._thread = threading.Thread(target=self._do, args=(work,), daemon=True)
        self._thread.start()

    def _do(self, work: Callable[[], T]) -> None:
        try:
            self._answers.append(work())
        except BaseException as error:
            self._errors.append(error)

    def over(self, within_s: float = 0) -> bool:
        self._thread.join(within_s)
        return not self._thread.is_alive()

    def result(self) -> T:
        """What it came to, also if that was an exception."""
        assert self.over(PATIENCE_S), "it does not end"
        if self._errors:
            raise self._errors[0]
        return self._answers[0]


class Observer:
    """Sees who waits for whom, over a session of its own."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def waiting_for(self, holder: Session) -> list[int]:
        """The backends that wait for a lock that `holder` has."""
        return [pid for (pid,) in self.session.run(_WHO_WAITS, pid=holder.pid)]

    def pausing(self) -> list[int]:
        """The backends of stores that let a moment pass."""
        return [pid for (pid,) in self.session.run(_WHO_PAUSES)]

    def sees_wait(self, work: Meanwhile[Any], holder: Session) -> bool:
        """True as soon as somebody waits for `holder`, or pauses; False if the work is over
        without."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            if work.over(0.001):
                return False
            if self.waiting_for(holder) or self.pausing():
                return True
        raise AssertionError("it neither waits nor ends")


def with_options(url: str, options: str) -> str:
    """The same server, for sessions with settings of their own."""
    return f"{url}{'&' if '?' in url else '?'}options={quote(options)}"


def eventually(holds: Callable[[], bool]) -> None:
    """Waits until something is so."""
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until, "it does not come to be"
        time.sleep(0.002)


class ServerClock:
    """The store clock of one schema: it stands until the test moves it, in either direction.

    A move is seen at once by everybody.
    """

    def __init__(self, session: Session, schema: str, now: int = 1_000_000) -> None:
        self._clock = MovableClock(session.connection, schema)
        self.now = now

    @property
    def now(self) -> int:
        return self._now

    @now.setter
    def now(self, now: int) -> None:
        self._clock.move(now)
        self._now = now

    def __call__(self) -> StoreMs:
        return StoreMs(self._now)


def tables_of(session: Session, schema: str, where: str = "") -> Mapping[str, Any]:
    """All rows of a store, under the names and in the shape that a `World` has; with `where`, those
    whose ids (of jobs and instances) and principals begin so."""

    with session.connection.pipeline():
        found = {
            table: session.connection.execute(
                f"SELECT {selected(table, f'{schema}.label_sets')} FROM {schema}.{table}"
                f" WHERE starts_with({_KEYS.get(table, 'job_id')}, %s)"
                f" ORDER BY {_ORDER.get(table, 1)}".encode(),
                (where,),
            )
            for table in COLUMNS
        }
    return tables_from({table: cursor.fetchall() for table, cursor in found.items()})


_KEYS = {
    "dedup_keys": "principal",
    "jobs": "id",
    "job_ids": "id",
    "instances": "id",
    "consumers": "name",
    "dead_letters": "consumer",
}
"""The column that a name begins; of the other tables it is the job's id."""
_ORDER = {"events": "seq"}


def admit_many(session: Session, schema: str, jobs: int, deadline: int | None = None) -> list[str]:
    """Many jobs that "a" has admitted, faster than by commands; gives their ids, in order."""
    ids = [f"j{number:05}" for number in range(jobs)]
    now = session.value(f"SELECT {schema}.now_ms()")
    session.run(
        f"INSERT INTO {schema}.job_ids (id, first_owner, born_at)"
        f" SELECT id, 'a', %(now)s FROM unnest(%(ids)s::text[]) AS id",
        ids=ids,
        now=now,
    )
    session.run(
        f"INSERT INTO {schema}.jobs (id, status, owner, epoch, beats, deadline, ttl_ms, confirm_ms,"
        f" requeue, transport, admitted_at, attempts, beat_at)"
        f" SELECT id, 'queued', 'a', 1, 1, %(deadline)s::bigint, %(ttl)s::bigint,"
        f" %(confirm)s::bigint, 'allowed', 'process', %(now)s::bigint, 1, %(now)s::bigint"
        f" FROM unnest(%(ids)s::text[]) AS id",
        ids=ids,
        now=now,
        ttl=TERMS.lease_ttl_ms,
        confirm=TERMS.confirm_ms,
        deadline=now + TERMS.lease_ttl_ms if deadline is None else deadline,
    )
    return ids
