"""Opens a SQLite file so that it keeps what it acknowledges, and changes nothing in a wrong one."""

from __future__ import annotations

import os
import sqlite3
import threading
from enum import StrEnum
from pathlib import Path
from typing import Final

from unswept.adapters.sqlite import schema
from unswept.adapters.sqlite.errors import translated, translated_os
from unswept.adapters.sqlite.patience import patiently
from unswept.core.errors import (
    MisuseError,
    NotAStoreError,
    StoreError,
    StoreReadOnlyError,
    StoreUnavailableError,
    StoreVersionError,
)

MEMORY: Final = ":memory:"
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


_making = threading.Lock()


def path_of(path_or_url: str | os.PathLike[str]) -> str:
    """The path of `sqlite:PATH`, `sqlite::memory:` or a plain path, made absolute."""
    path = os.fspath(path_or_url)
    if not isinstance(path, str):
        raise MisuseError(f"a SQLite store's path must be text, got {path!r}")
    path = path.removeprefix("sqlite:")
    if not path or "\0" in path:
        raise MisuseError(
            f"expected sqlite:PATH, sqlite::memory: or a path, got {os.fspath(path_or_url)!r}"
        )
    return path if path == MEMORY else os.path.abspath(path)


def check_library(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> None:
    """Refuse a SQLite library that is too old."""
    if version < OLDEST_SQLITE:
        raise StoreError(
            f"expected the SQLite library {_dotted(OLDEST_SQLITE)} or newer (STRICT tables), found"
            f" {_dotted(version)}. Install a Python that is linked against a newer one"
        )


def connect(
    path: str, durability: Durability, busy_timeout_ms: int, *, migrate: bool
) -> sqlite3.Connection:
    """A connection to a store whose schema is the newest; raises a typed error, changing nothing,
    where that cannot be."""
    if path != MEMORY:
        _check_file(path, migrate=migrate)
    try:
        connection = _open(path, busy_timeout_ms)
    except sqlite3.Error as error:
        raise translated(error, path) from error
    try:
        # Before anything else that could write: the first look at the file.
        found = schema.found_version(connection)
        schema.check_version(found, path, migrate=migrate)
        _settings(connection, path, durability, busy_timeout_ms)
        if found < schema.VERSION:
            schema.migrate(connection, path)
        # From here on `patiently` waits instead.
        connection.execute("PRAGMA busy_timeout = 0")
    except sqlite3.Error as error:
        connection.close()
        raise translated(error, path) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _open(path: str, busy_timeout_ms: int) -> sqlite3.Connection:
    # mode=rw: a file that has vanished since is not silently made anew.
    name = path if path == MEMORY else f"{Path(path).as_uri()}?mode=rw"
    return sqlite3.connect(
        name,
        uri=path != MEMORY,
        timeout=busy_timeout_ms / 1000,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )


def _check_file(path: str, *, migrate: bool) -> None:
    """Make the file where there is none, readable by its owner only; refuse a read-only one.

    The mode is given when the file is made, so that there is no moment with another one; SQLite
    gives its log the same. An existing file is never opened here: closing it again would drop the
    locks that this process's connections have on it.
    """
    if os.path.exists(path):
        _check_writable(path)
        if os.path.getsize(path) == 1:
            # SQLite takes a file of one byte for an empty one, and would write over it.
            raise NotAStoreError(
                f"{path}: expected a SQLite database, found a file of one byte; it was left as it"
                " was. Name another path"
            )
        return
    if not migrate:
        raise StoreVersionError(
            f"{path}: expected a store, found no file, and making one was not asked for. Run"
            " `unswept db init`, or open the store with migrate=True"
        )
    # One thread at a time: none may connect between the making and the closing of the file.
    with _making:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            return  # another process was faster
        except OSError as error:
            raise translated_os(error, path) from error


def _check_writable(path: str) -> None:
    # SQLite would open a write-protected file for reading, and fail at the first write.
    for place in (path, os.path.dirname(path)):
        if not os.access(place, os.W_OK):
            raise StoreReadOnlyError(
                f"{path}: expected a writable file in a writable directory, found that {place} is"
                " not writable. Change its mode or mount, or name another path"
            )


def _settings(
    connection: sqlite3.Connection, path: str, durability: Durability, busy_timeout_ms: int
) -> None:
    if path != MEMORY:
        _use_wal(connection, path, busy_timeout_ms)
    connection.execute(f"PRAGMA synchronous = {durability.value}")
    # On macOS only this reaches the disk itself; elsewhere it does nothing.
    connection.execute(f"PRAGMA fullfsync = {int(durability is Durability.FULL)}")
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT}")


def _use_wal(connection: sqlite3.Connection, path: str, busy_timeout_ms: int) -> None:
    """Write-ahead logging: readers and the writer do not wait for each other.

    The change of mode needs the file for itself, and of its own accord would not wait for it.
    """
    change = "PRAGMA journal_mode = WAL"
    rows = patiently(lambda: connection.execute(change).fetchall(), busy_timeout_ms)
    if rows[0][0] != "wal":
        raise StoreUnavailableError(
            f"{path}: expected a file system on which SQLite can keep a write-ahead log, found that"
            f" it stays in mode {rows[0][0]!r}. Use a local disk"
        )


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
