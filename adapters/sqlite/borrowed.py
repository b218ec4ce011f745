"""Carries a command out on a caller's own connection, inside the transaction that is open there.

The command then stands or falls with the caller's own writes. What is asked of the transaction is
that it holds the file's write lock already: all that the script reads is still so when it writes,
the store time is read after every wait, and no statement waits for anybody.

Only an Enqueue and a Complete can be carried out so: before the commit nobody has to know of them.
A job admitted there would be invisible to its own heartbeat, and its lease would run out meanwhile.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, NoReturn, TypeVar

from unswept.adapters.sql.steps import Script
from unswept.adapters.sqlite import files, forks
from unswept.adapters.sqlite.dialect import PREFIX
from unswept.adapters.sqlite.driving import Clock, drive
from unswept.adapters.sqlite.errors import translated_on_callers
from unswept.adapters.sqlite.opening import Opener
from unswept.adapters.sqlite.patience import is_busy
from unswept.adapters.sqlite.turns import Turn
from unswept.core.checks import shown
from unswept.core.errors import MisuseError

T = TypeVar("T")

_SAVEPOINT: Final = f"{PREFIX}command"
_AS_IT_WAS: Final = "Your transaction is as it was before the command."


class Borrowed:
    """One command at a time, each on the connection that its caller brings."""

    def __init__(self, opener: Opener, clock: Clock) -> None:
        self._opener = opener
        self._clock = clock
        self.lock = Turn(opener.path)
        """Held while a command is carried out, and through a fork."""

    def close(self) -> None:
        """Nothing: the connections are their callers'."""

    def abandon(self) -> None:
        """Leave to the parent what a fork carried over in the middle of a command."""
        self.lock = Turn(self._opener.path)

    def run(self, connection: sqlite3.Connection, script: Callable[[], Script[T]]) -> T:
        """Carry a script out, as a whole or not at all; the caller holds the lock."""
        cursor = self._cursor(connection)
        turn = self.lock
        with _plain_text(connection):
            self._check(connection, cursor)
            self._set_savepoint(cursor)
            try:
                reply = drive(script(), cursor, self._clock, lambda: self._check_still(turn))
                self._check_still(turn)
                cursor.execute(f"RELEASE {_SAVEPOINT}")
            except BaseException as error:
                # An abandoned command is the parent's to take back.
                left = self._take_back(connection, cursor) if self.lock is turn else ""
                if isinstance(error, sqlite3.Error):
                    raise translated_on_callers(error, self._path, left) from error
                raise
        return reply

    @property
    def _path(self) -> str:
        return self._opener.path

    # What is asked of the connection ------------------------------------------------------------

    def _cursor(self, connection: sqlite3.Connection) -> sqlite3.Cursor:
        """A cursor of this very thread, without the connection's factories."""
        if not isinstance(connection, sqlite3.Connection):
            self._refuse(
                f"expected a sqlite3.Connection, got {shown(connection)}. Give the driver's own"
                " connection, not a wrapper around it"
            )
        try:
            in_transaction = connection.in_transaction
        except sqlite3.ProgrammingError as error:
            self._refuse(f"expected an open connection, found a closed one ({error})", error)
        try:
            cursor = sqlite3.Cursor(connection)
        except sqlite3.ProgrammingError as error:
            self._refuse(
                "expected a connection that this thread may use. Use it in the thread that made it,"
                f" or make it with check_same_thread=False ({error})",
                error,
            )
        if not in_transaction:
            self._refuse(
                "expected an open transaction, found none. Begin one with BEGIN IMMEDIATE, and"
                " commit it after the command"
            )
        return cursor

    def _check(self, connection: sqlite3.Connection, cursor: sqlite3.Cursor) -> None:
        try:
            self._check_file(cursor)
            self._check_names(cursor)
            self._check_rows(cursor)
            self._check_lock(connection)
        except sqlite3.Error as error:
            raise translated_on_callers(error, self._path, _AS_IT_WAS) from error

    def _check_file(self, cursor: sqlite3.Cursor) -> None:
        file = self._opener.file
        if file is None:
            self._refuse(
                "expected a store on a file, found one in memory, which no other connection can"
                " reach. Open the store on a file"
            )
        self._opener.check_same()
        forks.check(file, self._path)
        # As bytes: the name need not be text that SQLite's driver could decode.
        main = cursor.execute(
            "SELECT CAST(file AS BLOB) FROM pragma_database_list WHERE name = 'main'"
        ).fetchall()
        found = os.fsdecode(main[0][0] or b"")
        if not files.is_same_name(found, self._path):
            self._refuse(
                "expected a connection whose main database is this file, under this name, found"
                f" {shown(found or 'a database without a file')}. Connect to {self._path}; an"
                " attached database does not count, nor does another hard link"
            )

    def _check_names(self, cursor: sqlite3.Cursor) -> None:
        """A temporary table hides one of the same name."""
        hiding = cursor.execute(
            "SELECT name FROM sqlite_temp_master WHERE type IN ('table', 'view')"
            " AND lower(substr(name, 1, ?)) = ?",
            (len(PREFIX), PREFIX),
        ).fetchall()
        if hiding:
            self._refuse(
                f"expected no temporary table or view named {PREFIX}..., found"
                f" {shown(hiding[0][0])}. Drop or rename it"
            )

    def _check_rows(self, cursor: sqlite3.Cursor) -> None:
        """What is stored must come back as it is."""
        rows = cursor.execute(f"SELECT number, name FROM {PREFIX}migrations").fetchall()
        if any(type(number) is not int or type(name) is not str for number, name in rows):
            self._refuse(
                "expected a connection that reads numbers as int and text as str, found that it"
                f" reads {shown(rows[0])}. Make it without detect_types, or register no converter"
                " for INTEGER or TEXT"
            )

    def _check_lock(self, connection: sqlite3.Connection) -> None:
        if not _holds_write_lock(connection):
            self._refuse(
                "expected a transaction that holds the file's write lock, found one that does not:"
                " another writer may come before its first write, and then it fails at once,"
                " whatever its timeout. Begin it with BEGIN IMMEDIATE, on a connection that may"
                " write"
            )

    def _refuse(self, what: str, cause: Exception | None = None) -> NoReturn:
        raise MisuseError(f"{self._path}: {what}") from cause

    # As a whole or not at all -------------------------------------------------------------------

    def _set_savepoint(self, cursor: sqlite3.Cursor) -> None:
        try:
            cursor.execute(f"SAVEPOINT {_SAVEPOINT}")
        except sqlite3.Error as error:
            if isinstance(error, sqlite3.OperationalError) and is_busy(error):
                self._refuse(
                    "expected no statement under way on the connection, found one that writes."
                    f" Fetch its rows to the end, or close its cursor ({error})",
                    error,
                )
            raise translated_on_callers(error, self._path, _AS_IT_WAS) from error

    def _check_still(self, turn: Turn) -> None:
        if self.lock is not turn:
            raise forks.carried_over(self._path)

    def _take_back(self, connection: sqlite3.Connection, cursor: sqlite3.Cursor) -> str:
        """Undo what was done of the command; says what that left of the caller's transaction."""
        with suppress(sqlite3.Error):
            cursor.execute(f"ROLLBACK TO {_SAVEPOINT}")
            cursor.execute(f"RELEASE {_SAVEPOINT}")
            return _AS_IT_WAS
        # After some errors SQLite has rolled everything back by itself. Where it has not, half of a
        # command must not stay either.
        with suppress(sqlite3.Error):
            if connection.in_transaction:
                cursor.execute("ROLLBACK")
            return "Your whole transaction was rolled back."
        return "Half of the command may stand in your transaction: do not commit it."


@contextmanager
def _plain_text(connection: sqlite3.Connection) -> Iterator[None]:
    """Text is read as str meanwhile, whatever the caller makes of it."""
    factory = connection.text_factory
    connection.text_factory = str
    try:
        yield
    finally:
        connection.text_factory = factory


class _EndOfBackupError(Exception):
    """Ends a backup after its first step."""


def _holds_write_lock(connection: sqlite3.Connection) -> bool:
    """Is the transaction that is open on the connection a writing one?

    `sqlite3` does not say, and to write would make it one. But a backup does: it takes its first
    page from a reader, and refuses a source on which a writing transaction is open. A connection
    that has read in its transaction has no other reason to be busy.
    """
    seen: list[int] = []

    def see(status: int, remaining: int, total: int) -> None:
        seen.append(status)
        raise _EndOfBackupError

    nowhere = sqlite3.connect(":memory:")
    try:
        connection.backup(nowhere, pages=1, progress=see)
    except _EndOfBackupError:
        pass
    finally:
        nowhere.close()
    return seen[0] in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
