"""A command in a caller's own transaction: what that must be like, and which errors are theirs."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from unswept.adapters.postgres.errors import ConflictError
from unswept.adapters.postgres.schema import VERSION
from unswept.adapters.postgres.session import Batch, Session
from unswept.core.checks import shown
from unswept.core.errors import MisuseError

T = TypeVar("T")

_Connection = psycopg.Connection[Any] | psycopg.AsyncConnection[Any]

_STATE: Final = (
    "SELECT current_setting('transaction_isolation'), current_setting('client_encoding')"
)


def check_status(connection: _Connection) -> None:
    """Refuse a connection that is in no transaction, or in one that cannot go on."""
    if connection.closed:
        raise MisuseError("connection must be open, got one that is closed")
    if connection.pgconn.pipeline_status:
        raise MisuseError("connection must not be in pipeline mode; leave its pipeline() first")
    status = connection.info.transaction_status
    begins = status == TransactionStatus.IDLE and not connection.autocommit
    if status != TransactionStatus.INTRANS and not begins:
        raise MisuseError(
            "connection must be in a transaction of yours, got one that is"
            f" {status.name.lower()}{' with autocommit' if connection.autocommit else ''}."
            " Begin one, with connection.transaction() for instance"
        )


def check_transaction(where: str) -> Session[None]:
    """Refuse a transaction in which no command can be carried out."""
    answer = yield Batch([(_STATE, None)])
    isolation, encoding = answer[0][0]
    if isolation != "read committed":
        raise MisuseError(
            f"{where}: expected a transaction at READ COMMITTED, found {isolation}: its snapshot"
            " would be older than the locks that the command waits for"
        )
    if encoding != "UTF8":
        raise MisuseError(f"{where}: expected a connection in UTF8, found {encoding}")


def within(work: Session[T], schema: str, where: str) -> Session[T]:
    """A session on the caller's connection, if that leads to the database of the store."""
    table = f"{schema}.migrations"
    answer = yield Batch([("SELECT to_regclass(%(table)s) IS NOT NULL", {"table": table})])
    if answer[0][0][0] is not True:
        raise MisuseError(
            f"{where}: the connection's database has no table {table}; connect to the database of"
            " the store"
        )
    answer = yield Batch([(f"SELECT max(number) FROM {table}", None)])
    if answer[0][0][0] != VERSION:
        raise MisuseError(
            f"{where}: expected schema version {VERSION} in the connection's database, found"
            f" {shown(answer[0][0][0])}; connect to the database of the store"
        )
    return (yield from work)


def cause_of(error: ConflictError) -> BaseException:
    """Psycopg's own error: what repeats the caller's transaction knows it."""
    return error.__cause__ or error
