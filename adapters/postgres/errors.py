"""SQLSTATEs as the typed errors of the core: what was found, and what to do next.

No message of psycopg's that could quote a connection string is passed on: it may hold a password.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final

import psycopg

from unswept.core.errors import (
    NotAStoreError,
    OutcomeUnknownError,
    RowRefusedError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)


class ConflictError(StoreUnavailableError):
    """The server undid the transaction in favour of another one (40001, 40P01)."""


class ConnectionLostError(StoreUnavailableError):
    """The connection broke before the COMMIT was sent: the server undoes what was begun."""


class NoConnectionError(StoreUnavailableError):
    """The pool had no connection to give: the server is down, or all are in use."""


_Family = tuple[type[StoreError], str]

_CONFLICT: Final[_Family] = (
    ConflictError,
    "other transactions got in the way each time; nothing was written. Repeat the command",
)
_OUT_OF_REACH: Final[_Family] = (
    StoreUnavailableError,
    "the server takes no commands now; nothing was written. Repeat the command once it does",
)
_ROW: Final[_Family] = (
    RowRefusedError,
    "the server refused a statement of unswept; nothing was written. Were its tables changed by"
    " hand?",
)
_NO_TABLES: Final[_Family] = (
    NotAStoreError,
    "the schema's tables are not as unswept made them. Run `unswept db check` to see what is wrong",
)

_STATES: Final[Mapping[str, _Family]] = MappingProxyType(
    {
        "40001": _CONFLICT,
        "40P01": _CONFLICT,
        "55P03": (
            StoreUnavailableError,
            "somebody had the row or the table locked for the whole operation timeout; nothing was"
            " written. Repeat the command",
        ),
        "57014": (
            StoreUnavailableError,
            "a statement took longer than the operation timeout; nothing was written. Repeat the"
            " command",
        ),
        "25006": (
            StoreReadOnlyError,
            "the server, or this role, accepts no writes. Name the primary server, or a role that"
            " may write",
        ),
        "42501": (
            StoreError,
            "the role lacks a privilege; nothing was written. Grant it USAGE on the schema, and"
            " SELECT, INSERT, UPDATE and DELETE on its tables; to make the schema it needs CREATE"
            " on the database, to migrate it it must own it",
        ),
        "3F000": _NO_TABLES,
        "42P01": _NO_TABLES,
        "42703": _NO_TABLES,
        "42883": _NO_TABLES,
        "53100": (
            StoreFullError,
            "the server's disk is full; nothing was written. Free some space and repeat the"
            " command",
        ),
    }
)
_CLASSES: Final[Mapping[str, _Family]] = MappingProxyType(
    {
        "22": _ROW,
        "23": _ROW,
        "08": _OUT_OF_REACH,
        "53": _OUT_OF_REACH,
        "57": _OUT_OF_REACH,
        "58": _OUT_OF_REACH,
    }
)


def translated(
    error: psycopg.Error, where: str, *, lost: bool = False, committing: bool = False
) -> StoreError:
    """The typed error for one of psycopg's, about the store at `where`.

    `lost`: the connection is gone. `committing`: the COMMIT had been sent.
    """
    found = _found(error)
    if lost and committing:
        return OutcomeUnknownError(
            f"{where}: the connection broke after the commit was sent, so that the command may have"
            f" taken effect. Repeat it ({found})"
        )
    state = error.sqlstate or ""
    if lost:
        return ConnectionLostError(
            f"{where}: the connection broke; nothing was written. Repeat the command ({found})"
        )
    family = _STATES.get(state) or _CLASSES.get(state[:2])
    if family is not None:
        kind, advice = family
        return kind(f"{where}: {advice} ({found})")
    if not state and isinstance(error, psycopg.OperationalError):
        kind, advice = _OUT_OF_REACH
        return kind(f"{where}: {advice} ({found})")
    return StoreError(
        f"{where}: the server refused a statement of unswept; nothing was written. Were its tables"
        f" changed by hand? ({found})"
    )


@contextmanager
def translating(
    connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any],
    where: str,
    *,
    committing: bool = False,
) -> Iterator[None]:
    """Psycopg's errors on the connection are raised as those of `unswept.core.errors`."""
    try:
        yield
    except psycopg.Error as error:
        raise translated(error, where, lost=connection.closed, committing=committing) from error


def not_connected(error: psycopg.Error, where: str) -> StoreError:
    """The typed error for a connection that could not be made. Libpq gives no SQLSTATE here."""
    return StoreUnavailableError(
        f"{where}: cannot connect. Is the server up, and does it know the database, the user and"
        f" the password? ({_found(error)})"
    )


def _found(error: psycopg.Error) -> str:
    """The server's own words. Not its DETAIL: that may quote a row."""
    words = error.diag.message_primary or str(error).strip().split("\n")[0]
    return f"{error.sqlstate or type(error).__name__}: {words}"
