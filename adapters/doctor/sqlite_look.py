"""Looks into a SQLite file beside its writers; its journal's mode and its log stay as they are."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import perf_counter
from typing import Final, TypeVar

from unswept.adapters.sql.scripts import entry_of
from unswept.adapters.sql.steps import Mode, Row
from unswept.adapters.sqlite import files, opening, schema
from unswept.adapters.sqlite.dialect import PREFIX
from unswept.adapters.sqlite.driving import drive
from unswept.adapters.sqlite.errors import translated
from unswept.adapters.sqlite.patience import Wait, patiently
from unswept.adapters.sqlite.store import QUERIES, system_clock
from unswept.core.checks import shown
from unswept.core.commands import Command
from unswept.core.errors import MisuseError, StoreUnavailableError

R = TypeVar("R")
T = TypeVar("T")

_PATIENCE_MS: Final = 5_000
"""How long a look waits for whoever has the whole file locked."""


class SqliteLook:
    """One read-only connection to a file."""

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection = connection
        self.where = path

    def version(self) -> int:
        """See `Look`."""

        def found() -> int:
            number = schema.found_version(self._connection, self.where)
            schema.check_version(number, self.where, migrate=False)
            schema.check_tables(self._connection, number, self.where)
            return number

        return self._asked(found)

    def execute(self, command: Command[R]) -> R:
        """See `Look`."""
        entry = entry_of(command)
        if entry.mode is not Mode.READ:
            raise MisuseError(f"expected a command that reads, got {shown(command)}")

        def reply() -> R:
            script = entry.script(QUERIES, command)
            answer: R = drive(script, self._connection.cursor(), system_clock, lambda: None)
            return answer

        return self._asked(reply)

    def rows(self, sql: str) -> list[Row]:
        """See `Look`."""
        return self._asked(lambda: self._connection.execute(sql.format(PREFIX)).fetchall())

    def write_lock_ms(self, most_ms: int) -> float:
        """See `Look`."""
        # On a file that it may not write SQLite takes this for a transaction that only reads.
        files.check_or_make(self.where, make=False)
        began = perf_counter()
        # This look stays open meanwhile: only who closes a file last would move its log into it.
        with closing(_connection(self.where, "rw")) as writer:
            try:
                patiently(lambda: writer.execute("BEGIN IMMEDIATE"), Wait(most_ms))
                writer.execute("ROLLBACK")
            except sqlite3.Error as error:
                raise translated(error, self.where) from error
        return (perf_counter() - began) * 1000

    def _asked(self, question: Callable[[], T]) -> T:
        try:
            return patiently(question, Wait(_PATIENCE_MS))
        except sqlite3.Error as error:
            raise translated(error, self.where) from error


def check_there(path: str) -> None:
    """Refuse a path at which there is no file; none is made."""
    if not os.path.isfile(path):
        raise StoreUnavailableError(f"{path}: expected a SQLite database, found no file")


@contextmanager
def looked_into(path: str) -> Iterator[SqliteLook]:
    """A look at the file of this absolute path."""
    opening.check_library()
    check_there(path)
    # A connection that may not write leaves a log that it has made, one that may moves what is in
    # a log that it has found into the file: so each where it does neither.
    mode = "ro" if os.path.exists(f"{path}-wal") else "rw"
    try:
        connection = _connection(path, mode)
    except sqlite3.Error as error:
        raise translated(error, path) from error
    with closing(connection):
        connection.execute("PRAGMA query_only = 1")
        yield SqliteLook(connection, path)


def _connection(path: str, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{Path(path).as_uri()}?mode={mode}", timeout=0, uri=True, isolation_level=None
    )
