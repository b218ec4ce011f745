"""One connection and its lock: runs scripts one at a time, each in a transaction of its own."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable
from typing import Final, TypeVar

from unswept.adapters.sql.steps import Each, Mode, Row, Script, Statement, Step
from unswept.adapters.sqlite.errors import translated
from unswept.adapters.sqlite.patience import patiently
from unswept.core.units import StoreMs

T = TypeVar("T")

Clock = Callable[[], StoreMs]


class Connection:
    """Connects at the first command, and anew after it was closed."""

    def __init__(
        self,
        path: str,
        connect: Callable[[], sqlite3.Connection],
        clock: Clock,
        busy_timeout_ms: int,
    ) -> None:
        self.lock: Final = threading.Lock()
        """Held by whoever uses the connection, and through a fork."""
        self._path = path
        self._connect = connect
        self._clock = clock
        self._busy_timeout_ms = busy_timeout_ms
        self._database: sqlite3.Connection | None = None

    def open(self) -> sqlite3.Connection:
        """The database, connected; the caller holds the lock."""
        if self._database is None:
            self._database = self._connect()
        return self._database

    def close(self) -> None:
        """Disconnect; the caller holds the lock."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def run(self, mode: Mode, script: Callable[[], Script[T]]) -> T:
        """Carry a script out, as a whole or not at all; the caller holds the lock."""
        database = self.open()
        wait_ms = self._busy_timeout_ms
        committing = False
        try:
            if mode is Mode.READ:
                return patiently(lambda: self._drive(database, script()), wait_ms)
            # IMMEDIATE: a transaction that begins as a reader fails at once, whatever the timeout,
            # when it turns to writing after somebody else has written.
            patiently(lambda: database.execute("BEGIN IMMEDIATE"), wait_ms)
            reply = self._drive(database, script())
            committing = True
            database.execute("COMMIT")
        except BaseException as error:
            self._roll_back(database)
            if isinstance(error, sqlite3.Error):
                raise translated(error, self._path, committing=committing) from error
            raise
        return reply

    def _drive(self, database: sqlite3.Connection, script: Script[T]) -> T:
        now: list[Row] | None = None
        rows: list[Row] | None = None
        while True:
            try:
                step: Step = next(script) if rows is None else script.send(rows)
            except StopIteration as end:
                reply: T = end.value
                return reply
            # All rows are fetched at once: an open cursor with RETURNING would hold up the COMMIT.
            if isinstance(step, Statement):
                rows = database.execute(step.sql, step.params).fetchall()
            elif isinstance(step, Each):
                rows = []
                for params in step.params:
                    rows += database.execute(step.sql, params)
            else:
                # One time for the whole transaction, read with its lock held.
                if now is None:
                    now = [(self._clock(),)]
                rows = now

    def _roll_back(self, database: sqlite3.Connection) -> None:
        if not database.in_transaction:
            return
        try:
            database.execute("ROLLBACK")
        except sqlite3.Error:
            # Closing rolls back too, and the next command begins on a sound connection. A store in
            # memory would be lost with its connection, but has no disk that could fail it.
            with contextlib.suppress(sqlite3.Error):
                self.close()
