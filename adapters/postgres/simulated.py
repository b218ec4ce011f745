"""A Postgres store on a clock that somebody else moves, in a schema of its own that goes with it.

The statements are those of every other store: only the function that is its clock is replaced.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol, TypeVar

import psycopg

from unswept.adapters.postgres.settings import settings
from unswept.adapters.postgres.store import PostgresStore
from unswept.adapters.postgres.sync import connected
from unswept.core.commands import Command
from unswept.core.units import StoreMs

R = TypeVar("R")

_TIMEOUT_MS: Final = 30_000
"""Real time: a simulated run knows no slow server."""
_CLOCK: Final = """
CREATE SEQUENCE {schema}.given_clock MINVALUE 0;
CREATE OR REPLACE FUNCTION {schema}.now_ms() RETURNS bigint LANGUAGE sql VOLATILE
RETURN (SELECT last_value FROM {schema}.given_clock)
"""


class SchemaStore(Protocol):
    """A store in one schema of a Postgres database."""

    schema: str

    def execute(self, command: Command[R]) -> R:
        """Carry out one command and reply."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...


class MovableClock:
    """The store clock of one schema, taken over: it stands until it is moved, either way."""

    def __init__(self, connection: psycopg.Connection[Any], schema: str) -> None:
        """The connection, in no transaction, moves it."""
        self._connection = connection
        # Not a row: what a sequence holds is seen at once, also within a transaction.
        for statement in _CLOCK.split(";"):
            connection.execute(statement.replace("{schema}", schema).encode())
        self._move = f"SELECT setval('{schema}.given_clock', %(now)s)".encode()

    def move(self, now: int) -> None:
        """From here on the store time is `now`, for everybody."""
        self._connection.execute(self._move, {"now": now})


class GivenClockStore:
    """A store whose time is what the given function returns."""

    def __init__(
        self,
        store: SchemaStore,
        clock: Callable[[], StoreMs],
        connection: psycopg.Connection[Any],
    ) -> None:
        """The store, with its clock taken over; the connection moves it."""
        self._store = store
        self._clock = clock
        self._connection = connection
        self._on_server = MovableClock(connection, store.schema)
        self.schema = store.schema
        self._stands: StoreMs | None = None

    def execute(self, command: Command[R]) -> R:
        """Carry out one command at the time that the clock now has."""
        now = self._clock()
        if now != self._stands:
            self._on_server.move(now)
            self._stands = now
        return self._store.execute(command)

    def close(self) -> None:
        """Close the store and take its schema away."""
        self._store.close()
        self._connection.execute(f"DROP SCHEMA {self.schema} CASCADE".encode())
        self._connection.close()


def open_simulated(url: str, clock: Callable[[], StoreMs], name: str) -> GivenClockStore:
    """An empty store, in a schema that bears this process's number and the name."""
    mine = settings(_unsynced(url), f"unswept_{os.getpid()}_{name}")
    connection = connected(mine)
    try:
        connection.execute(f"DROP SCHEMA IF EXISTS {mine.schema} CASCADE".encode())
        store = PostgresStore(
            _unsynced(url), schema=mine.schema, operation_timeout_ms=_TIMEOUT_MS, max_connections=1
        )
    except BaseException:
        connection.close()
        raise
    return GivenClockStore(store, clock, connection)


@contextmanager
def simulated(url: str, clock: Callable[[], StoreMs], name: str) -> Iterator[GivenClockStore]:
    """The same, for as long as the block lasts."""
    store = open_simulated(url, clock, name)
    try:
        yield store
    finally:
        store.close()


def _unsynced(url: str) -> str:
    """A simulated run knows no power cut, so it need not wait for the disk at each commit."""
    if "options=" in url:
        return url
    return f"{url}{'&' if '?' in url else '?'}options=-csynchronous_commit%3Doff"
