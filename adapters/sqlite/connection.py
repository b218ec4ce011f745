"""One connection and its lock: runs scripts one at a time, each in a transaction of its own."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from typing import TypeVar

from unswept.adapters.sql.steps import CLOCK, Each, Mode, Row, Script, Step, Tell
from unswept.adapters.sqlite.errors import translated
from unswept.adapters.sqlite.opening import Opener
from unswept.adapters.sqlite.patience import Wait, patiently
from unswept.adapters.sqlite.turns import Turn
from unswept.core.checks import check_time
from unswept.core.errors import MisuseError
from unswept.core.units import StoreMs

T = TypeVar("T")

Clock = Callable[[], StoreMs]


class Connection:
    """Connects at the first command, and anew after it was closed."""

    def __init__(self, opener: Opener, clock: Clock, busy_timeout_ms: int) -> None:
        self._opener = opener
        self._clock = clock
        self._busy_timeout_ms = busy_timeout_ms
        self._database: sqlite3.Connection | None = None
        self._abandoned: sqlite3.Connection | None = None
        self.lock = Turn(opener.path)
        """Held by whoever uses the connection, and through a fork."""

    def open(self, wait: Wait | None = None) -> sqlite3.Connection:
        """The database, connected; the caller holds the lock."""
        # Also where it is connected: what is written to a file that was removed is lost.
        self._opener.check_same()
        if self._database is None:
            self._database = self._opener.connect(wait or Wait(self._busy_timeout_ms))
        return self._database

    def close(self) -> None:
        """Disconnect; the caller holds the lock."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def abandon(self) -> None:
        """Forget the connection, which a fork carried over in the middle of a command.

        It is kept, and so never closed: a thread that is not here any more may hold its locks.
        """
        self._abandoned, self._database = self._database, None
        self.lock = Turn(self._opener.path)

    def run(self, mode: Mode, script: Callable[[], Script[T]], wait: Wait) -> T:
        """Carry a script out, as a whole or not at all; the caller holds the lock."""
        database = self.open(wait)
        committing = False
        try:
            if mode is Mode.READ:
                return patiently(lambda: self._drive(database, script()), wait)
            # IMMEDIATE: a transaction that begins as a reader fails at once, whatever the timeout,
            # when it turns to writing after somebody else has written.
            patiently(lambda: database.execute("BEGIN IMMEDIATE"), wait)
            reply = self._drive(database, script())
            self._check_not_abandoned(database)
            committing = True
            database.execute("COMMIT")
        except BaseException as error:
            self._roll_back(database)
            if isinstance(error, sqlite3.Error):
                path = self._opener.path
                raise translated(error, path, committing=committing) from error
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
            self._check_not_abandoned(database)
            # All rows are fetched at once: an open cursor with RETURNING would hold up the COMMIT.
            if step is CLOCK:
                # One time for the whole transaction, read with its lock held.
                if now is None:
                    now = [(self._read_clock(),)]
                rows = now
            elif isinstance(step, (Each, Tell)):
                rows = []
                for params in step.params:
                    rows += database.execute(step.sql, params)
            else:
                rows = database.execute(step.sql, step.params).fetchall()

    def _read_clock(self) -> StoreMs:
        now = self._clock()
        check_time("what the store's clock returns", now)
        return now

    def _check_not_abandoned(self, database: sqlite3.Connection) -> None:
        if self._database is not database:
            raise MisuseError(
                f"{self._opener.path}: this process was forked by the very thread that carries the"
                " command out, in the middle of it; only the parent may go on with it"
            )

    def _roll_back(self, database: sqlite3.Connection) -> None:
        # An abandoned one is the parent's to roll back.
        if self._database is not database or not database.in_transaction:
            return
        try:
            database.execute("ROLLBACK")
        except sqlite3.Error:
            # Closing rolls back too, and the next command begins on a sound connection. A store in
            # memory would be lost with its connection, but has no disk that could fail it.
            with contextlib.suppress(sqlite3.Error):
                self.close()
