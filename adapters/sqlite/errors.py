"""SQLite's error codes as the typed errors of the core: what was found, and what to do next."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from unswept.core.errors import (
    NotAStoreError,
    OutcomeUnknownError,
    RowRefusedError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)

_FAMILIES: Final[Mapping[int, tuple[type[StoreError], str]]] = MappingProxyType(
    {
        sqlite3.SQLITE_NOTADB: (
            NotAStoreError,
            "expected a SQLite database, found another kind of file; it was left as it was. Name"
            " another path",
        ),
        sqlite3.SQLITE_CORRUPT: (
            NotAStoreError,
            "the database is damaged. Restore a backup, or name another path",
        ),
        sqlite3.SQLITE_READONLY: (
            StoreReadOnlyError,
            "the database accepts no writes. Make the file and its directory writable, or name"
            " another path",
        ),
        sqlite3.SQLITE_PERM: (
            StoreReadOnlyError,
            "access is denied. Make the file and its directory readable and writable",
        ),
        sqlite3.SQLITE_CONSTRAINT: (
            RowRefusedError,
            "SQLite refused a statement of unswept; nothing was written. Were its tables changed by"
            " hand?",
        ),
        sqlite3.SQLITE_FULL: (
            StoreFullError,
            "the disk, or the database's greatest size, is full; nothing was written. Free some"
            " space and repeat the command",
        ),
        sqlite3.SQLITE_BUSY: (
            StoreUnavailableError,
            "another writer held the database for the whole busy timeout; nothing was written."
            " Repeat the command",
        ),
        sqlite3.SQLITE_LOCKED: (
            StoreUnavailableError,
            "a table is locked; nothing was written. Repeat the command",
        ),
        sqlite3.SQLITE_PROTOCOL: (
            StoreUnavailableError,
            "the database's locks could not be taken; nothing was written. Repeat the command",
        ),
        sqlite3.SQLITE_CANTOPEN: (
            StoreUnavailableError,
            "the database cannot be opened. Is the path a file in a directory that exists, and is"
            " the directory writable?",
        ),
        sqlite3.SQLITE_IOERR: (
            StoreUnavailableError,
            "the disk failed; nothing was written. Repeat the command once it works again",
        ),
    }
)


_ON_A_CALLERS: Final[Mapping[int, str]] = MappingProxyType(
    {
        sqlite3.SQLITE_READONLY: "the connection accepts no writes. Was it opened read-only, or set"
        " so by PRAGMA query_only?",
        sqlite3.SQLITE_FULL: "the disk, or the greatest size that the connection allows, is full."
        " Free some space and begin the transaction anew",
        sqlite3.SQLITE_INTERRUPT: "the statement was interrupted. Begin the transaction anew",
    }
)
"""What differs where the connection, with all its settings, is the caller's."""


def translated(error: sqlite3.Error, path: str, *, committing: bool = False) -> StoreError:
    """The typed error for one of SQLite's, about the database at `path`."""
    family, found = _family(error), _found(error)
    if family == sqlite3.SQLITE_IOERR:
        if committing:
            # The commit may have reached the disk before something else failed.
            return OutcomeUnknownError(
                f"{path}: the disk failed while the commit was written, so that it may have taken"
                f" effect. Repeat the command ({found})"
            )
        if _is_full(path):
            family = sqlite3.SQLITE_FULL
    if family in _FAMILIES:
        kind, advice = _FAMILIES[family]
        return kind(f"{path}: {advice} ({found})")
    return StoreError(
        f"{path}: SQLite refused a statement of unswept; nothing was written. Were its tables"
        f" changed by hand? ({found})"
    )


def translated_on_callers(error: sqlite3.Error, path: str, left: str) -> StoreError:
    """The same for a caller's own connection; `left` says what was left of its transaction."""
    family = _family(error)
    kind, _ = _FAMILIES.get(family, (StoreError, ""))
    advice = _ON_A_CALLERS.get(
        family,
        "SQLite refused a statement of unswept. Is something of the connection's in the way, such"
        " as an authorizer, or a trigger on a table of unswept?",
    )
    return kind(f"{path}: {advice} {left} ({_found(error)})")


def translated_os(error: OSError, path: str) -> StoreError:
    """The typed error for a file that could not be made at `path`."""
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return StoreReadOnlyError(
            f"{path}: the file cannot be made. Make its directory writable, or name another path"
            f" ({error.strerror})"
        )
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return StoreFullError(f"{path}: the disk is full; free some space ({error.strerror})")
    return StoreUnavailableError(
        f"{path}: the file cannot be made; does its directory exist? ({error.strerror})"
    )


def _family(error: sqlite3.Error) -> int:
    """The error's primary code; 0 where the error is not of the library itself."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def _found(error: sqlite3.Error) -> str:
    return f"{getattr(error, 'sqlite_errorname', type(error).__name__)}: {error}"


def _is_full(path: str) -> bool:
    """Has the disk no space left? SQLite says no more than that a write failed."""
    try:
        disk = os.statvfs(os.path.dirname(path) or ".")
    except (AttributeError, OSError):  # no such call on this system, or no such disk any more
        return False
    return disk.f_bavail == 0
