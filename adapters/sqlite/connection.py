"""One connection and its lock: runs scripts one at a time, in transactions of their own."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Sequence
from typing import TypeVar

from unswept.adapters.sql.steps import Script
from unswept.adapters.sqlite import forks
from unswept.adapters.sqlite.driving import Clock, drive
from unswept.adapters.sqlite.errors import translated
from unswept.adapters.sqlite.opening import Opener
from unswept.adapters.sqlite.patience import Wait, patiently
from unswept.adapters.sqlite.turns import Turn

T = TypeVar("T")


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

    def read(self, script: Callable[[], Script[T]], wait: Wait) -> T:
        """Carry out a script that writes nothing; the caller holds the lock."""
        database = self.open(wait)
        try:
            return patiently(lambda: self._drive(database, script()), wait)
        except sqlite3.Error as error:
            raise translated(error, self._opener.path) from error

    def write(self, scripts: Sequence[Callable[[], Script[T]]], wait: Wait) -> list[T]:
        """Carry scripts out in one transaction, one after the other, all of them or none; the
        caller holds the lock."""
        database = self.open(wait)
        committing = False
        try:
            # IMMEDIATE: a transaction that begins as a reader fails at once, whatever the timeout,
            # when it turns to writing after somebody else has written.
            patiently(lambda: database.execute("BEGIN IMMEDIATE"), wait)
            replies = [self._drive(database, script()) for script in scripts]
            self._check_not_abandoned(database)
            committing = True
            database.execute("COMMIT")
        except BaseException as error:
            self._roll_back(database)
            if isinstance(error, sqlite3.Error):
                path = self._opener.path
                raise translated(error, path, committing=committing) from error
            raise
        return replies

    def _drive(self, database: sqlite3.Connection, script: Script[T]) -> T:
        return drive(
            script, database.cursor(), self._clock, lambda: self._check_not_abandoned(database)
        )

    def _check_not_abandoned(self, database: sqlite3.Connection) -> None:
        if self._database is not database:
            raise forks.carried_over(self._opener.path)

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
