"""Opens a SQLite file so that it keeps what it acknowledges, and changes nothing in a wrong one."""

from __future__ import annotations

import sqlite3
from enum import StrEnum
from pathlib import Path
from typing import Final

from unswept.adapters.sqlite import files, forks, schema
from unswept.adapters.sqlite.errors import translated
from unswept.adapters.sqlite.files import MEMORY, FileId
from unswept.adapters.sqlite.patience import Wait, patiently
from unswept.core.errors import StoreError, StoreUnavailableError

OLDEST_SQLITE: Final = (3, 37, 0)
"""The first with STRICT tables."""

_WAL_LIMIT: Final = 64 * 1024 * 1024
"""To this size the log is cut after a checkpoint, so that one large output does not stay in it."""


class Durability(StrEnum):
    """What an acknowledged write survives."""

    FULL = "full"
    """A power cut: each commit is synced to the disk before it is acknowledged."""
    NORMAL = "normal"
    """The end of the process, however sudden; a power cut may lose the last acknowledged writes,
    and so let a lease look older than its owner was told. It never damages the file."""


def check_library(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> None:
    """Refuse a SQLite library that is too old."""
    if version < OLDEST_SQLITE:
        raise StoreError(
            f"expected the SQLite library {_dotted(OLDEST_SQLITE)} or newer (STRICT tables), found"
            f" {_dotted(version)}. Install a Python that is linked against a newer one"
        )


class Opener:
    """Opens one store's file: the first time it makes and migrates what is missing, if it may;
    afterwards it connects to that very file, as it is, or refuses."""

    def __init__(self, path: str, durability: Durability, *, migrate: bool) -> None:
        self.path: Final = path
        self._durability = durability
        self._migrate = migrate
        self._opened = False
        self.file: FileId | None = None
        """The file, once it was looked at; None in memory."""
        self.found: int | None = None
        """The schema version that it had before it was opened for the first time."""

    def check_same(self) -> None:
        """Refuse to go on where the file that was opened is gone, or another one."""
        if self._opened and self.file is not None:
            files.check_same(self.path, self.file)

    def connect(self, wait: Wait) -> sqlite3.Connection:
        """A connection to a store whose schema is the newest; raises a typed error, changing
        nothing, where that cannot be."""
        self._check_file()
        try:
            connection = _open(self.path, wait)
        except sqlite3.Error as error:
            raise translated(error, self.path) from error
        try:
            self._prepare(connection, wait)
        except sqlite3.Error as error:
            connection.close()
            raise translated(error, self.path) from error
        except BaseException:
            connection.close()
            raise
        self._opened = True
        return connection

    def _check_file(self) -> None:
        if self.path == MEMORY:
            return
        self.check_same()
        file = files.check_or_make(self.path, make=self._migrate and not self._opened)
        if not self._opened:
            self.file = file
        forks.check(file, self.path)

    def _prepare(self, connection: sqlite3.Connection, wait: Wait) -> None:
        if self.file is not None:
            files.check_same(self.path, self.file)  # nor did it change while it was opened
        migrate = self._migrate and not self._opened
        # Before anything that could write: all looks at what the file holds.
        found = schema.found_version(connection, self.path)
        schema.check_version(found, self.path, migrate=migrate)
        if not self._opened:
            schema.check_tables(connection, found, self.path)
        _settings(connection, self.path, self._durability, wait)
        if found < schema.VERSION:
            found = schema.migrate(connection, self.path)
        if not self._opened:
            self.found = found
        # From here on `patiently` waits instead.
        connection.execute("PRAGMA busy_timeout = 0")


def _open(path: str, wait: Wait) -> sqlite3.Connection:
    # mode=rw: a file that has vanished since is not silently made anew.
    name = path if path == MEMORY else f"{Path(path).as_uri()}?mode=rw"
    return sqlite3.connect(
        name,
        uri=path != MEMORY,
        timeout=wait.left_s,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )


def _settings(
    connection: sqlite3.Connection, path: str, durability: Durability, wait: Wait
) -> None:
    if path != MEMORY:
        _use_wal(connection, path, wait)
    connection.execute(f"PRAGMA synchronous = {durability.value}")
    # On macOS only this reaches the disk itself; elsewhere it does nothing.
    connection.execute(f"PRAGMA fullfsync = {int(durability is Durability.FULL)}")
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT}")


def _use_wal(connection: sqlite3.Connection, path: str, wait: Wait) -> None:
    """Write-ahead logging: readers and the writer do not wait for each other.

    The change of mode needs the file for itself, and of its own accord would not wait for it.
    """
    change = "PRAGMA journal_mode = WAL"
    rows = patiently(lambda: connection.execute(change).fetchall(), wait)
    if rows[0][0] != "wal":
        raise StoreUnavailableError(
            f"{path}: expected a file system on which SQLite can keep a write-ahead log, found that"
            f" it stays in mode {rows[0][0]!r}. Use a local disk"
        )


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
