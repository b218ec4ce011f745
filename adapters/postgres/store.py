"""The store on one Postgres schema, for programs that wait."""

from __future__ import annotations

import os
import threading
import time
from types import TracebackType
from typing import Any, TypeVar

import psycopg
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from unswept.adapters.postgres import borrowed, schema
from unswept.adapters.postgres.announce import Announcer, makes_work
from unswept.adapters.postgres.dialect import DEFAULT_SCHEMA
from unswept.adapters.postgres.errors import (
    ConflictError,
    ConnectionLostError,
    NoConnectionError,
)
from unswept.adapters.postgres.settings import (
    DEFAULT_CONNECTIONS,
    DEFAULT_TIMEOUT_MS,
    Patience,
    Settings,
    settings,
)
from unswept.adapters.postgres.sync import begin, connected, drive
from unswept.adapters.sql import poison
from unswept.adapters.sql.scripts import Entry, entry_of, entry_within
from unswept.core.checks import check_bool
from unswept.core.commands import Command, Complete, Enqueue, Heartbeat, Outcome
from unswept.core.errors import MisuseError, StoreUnavailableError

R = TypeVar("R")

_Pool = ConnectionPool[psycopg.Connection[Any]]


class PostgresStore:
    """A store in one schema of a Postgres database, for any number of threads, processes and hosts.

    `PostgresStore("postgresql://user@host/database")`. The schema is made where there is none, and
    brought to the newest version, unless `migrate` is False.

    A command is one transaction: it takes effect as a whole or not at all. What the outside world
    does is raised as a `StoreError`; after an `OutcomeUnknownError` the command may be repeated.
    """

    def __init__(
        self,
        url: str,
        *,
        schema: str = DEFAULT_SCHEMA,
        migrate: bool = True,
        operation_timeout_ms: int = DEFAULT_TIMEOUT_MS,
        max_connections: int = DEFAULT_CONNECTIONS,
        announce: bool = False,
    ) -> None:
        """Open the store.

        `operation_timeout_ms` is how long a statement may take on the server, waits for locks
        included, and how long a command waits for a connection; it should be the policy's.
        `max_connections` bounds the connections of this process, to which one more for heartbeats
        comes. With `announce` runners that listen are told of each job that comes into the queue,
        by a NOTIFY after its commit; what `execute_within` enqueues is the caller's to announce.
        """
        check_bool("announce", announce)
        self._settings = settings(
            url,
            schema,
            migrate=migrate,
            operation_timeout_ms=operation_timeout_ms,
            max_connections=max_connections,
        )
        self.schema = schema
        self._opening = threading.Lock()
        self._closed = False
        self._process = os.getpid()
        self._announcer = Announcer(url, schema=schema) if announce else None
        prepare(self._settings)
        self._open()

    def _open(self) -> None:
        """Nothing but heartbeats uses the reserved connection, so that they wait for no command."""
        self._commands = _pool(self._settings, self._settings.max_connections)
        self._beats = _pool(self._settings, 1)

    def execute(self, command: Command[R]) -> R:
        """Carry out one command and reply. Raises `StoreError` where the outside world fails: after
        an `OutcomeUnknownError` repeat the command, after the others it took no effect."""
        reply: R = poison.in_parts(self._execute, command)
        return reply

    def _execute(self, command: Command[R]) -> R:
        entry = entry_of(command)
        self._check_usable()
        pool = self._beats if isinstance(command, Heartbeat) else self._commands
        patience = Patience(self._settings.timeout_ms)
        while True:
            try:
                return self._announced(command, self._try(pool, entry, command, patience.ask_s))
            except (ConflictError, ConnectionLostError, NoConnectionError) as error:
                time.sleep(patience.pause_s(error))

    def _announced(self, command: Command[R], reply: R) -> R:
        if self._announcer is not None and makes_work(command, reply):
            self._announcer.ring()
        return reply

    def announce(self) -> None:
        """Tell runners of work that the caller's own transaction has enqueued, once it has
        committed; `MisuseError` where the store was not opened with `announce`."""
        if self._announcer is None:
            raise MisuseError(f"{self!r} was opened without announce=True")
        self._announcer.ring()

    def _try(self, pool: _Pool, entry: Entry, command: Command[R], wait_s: float) -> R:
        mine = self._settings
        try:
            with pool.connection(timeout=wait_s) as connection:
                return drive(connection, mine.session(entry, command), mine.where)
        except PoolTimeout:
            raise NoConnectionError(mine.no_connection) from None
        except PoolClosed:
            raise StoreUnavailableError(mine.no_connection) from None

    def execute_within(
        self, connection: psycopg.Connection[Any], command: Enqueue | Complete
    ) -> Outcome:
        """Carry out an `Enqueue` or a `Complete` in the caller's own open transaction.

        It takes effect when the caller commits, together with the caller's writes, or not at all.
        The transaction must be READ COMMITTED; its errors 40001 and 40P01 are raised as psycopg's,
        for the caller to repeat the whole of it.
        """
        entry = entry_within(command)
        mine = self._settings
        if not isinstance(connection, psycopg.Connection):
            raise MisuseError(
                f"connection must be a psycopg.Connection, got a {type(connection).__name__}"
            )
        borrowed.check_status(connection)
        session = mine.session_within(entry, command)
        try:
            begin(connection, mine.where)
            drive(connection, borrowed.check_transaction(mine.where), mine.where)
            with connection.transaction():
                return drive(
                    connection, borrowed.within(session, mine.schema, mine.where), mine.where
                )
        except ConflictError as error:
            raise borrowed.cause_of(error) from None

    def close(self) -> None:
        """Close all connections; a closed store carries out nothing more."""
        self._closed = True
        if self._announcer is not None:
            self._announcer.close()
        if os.getpid() == self._process:
            self._commands.close()
            self._beats.close()

    def _check_usable(self) -> None:
        if self._closed:
            raise MisuseError(f"{self!r} is closed; open the store anew")
        if os.getpid() != self._process:
            self._after_fork()

    def _after_fork(self) -> None:
        """The parent's connections are the parent's: this process makes its own."""
        with self._opening:
            if os.getpid() != self._process:
                # Kept, and so never closed: their sockets are shared with the parent.
                self._parents = (self._commands, self._beats)
                self._open()
                self._process = os.getpid()

    def __enter__(self) -> PostgresStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"PostgresStore({self._settings.where!r})"


def prepare(mine: Settings) -> int:
    """Look at the schema, and migrate it where that is wanted; gives the version that it had."""
    with connected(mine) as connection:
        session = schema.prepare(mine.schema, mine.where, migrate=mine.migrate)
        return drive(connection, session, mine.where)


def _pool(mine: Settings, size: int) -> _Pool:
    return ConnectionPool(mine.conninfo, open=True, **mine.pool(size))
