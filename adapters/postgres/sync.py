"""Makes blocking connections, and drives sessions over them."""

from __future__ import annotations

from typing import Any, TypeVar

import psycopg
from psycopg.adapt import AdaptersMap
from psycopg.rows import tuple_row

from unswept.adapters.postgres.errors import not_connected, translated
from unswept.adapters.postgres.session import ADAPTERS, Batch, Rows, Session
from unswept.adapters.postgres.settings import CONNECTION, Settings

T = TypeVar("T")


class _Cursor(psycopg.Cursor[Any]):
    """Unlike `connection.cursor()` it is the same on every connection."""

    __slots__ = ()

    @property
    def adapters(self) -> AdaptersMap:
        return ADAPTERS


def connected(mine: Settings) -> psycopg.Connection[Any]:
    """A connection of its own, beside the pools: its error says why there is none."""
    try:
        return psycopg.connect(mine.conninfo, **CONNECTION)
    except psycopg.Error as error:
        raise not_connected(error, mine.where) from None


def drive(connection: psycopg.Connection[Any], session: Session[T], where: str) -> T:
    """Carry a session out; psycopg's errors are raised as those of `unswept.core.errors`."""
    answer: Any = None
    while True:
        try:
            batch = session.send(answer)
        except StopIteration as end:
            reply: T = end.value
            return reply
        try:
            answer = _sent(connection, batch)
        except psycopg.Error as error:
            lost = connection.closed
            raise translated(error, where, lost=lost, committing=batch.commits) from error


def _sent(connection: psycopg.Connection[Any], batch: Batch) -> list[Rows]:
    if len(batch.requests) < 2:
        return [_rows(_execute(connection, *request)) for request in batch.requests]
    try:
        with connection.pipeline():
            cursors = [_execute(connection, *request) for request in batch.requests]
    except Exception:
        raise
    except BaseException:
        # Interrupted on its way into the pipeline, psycopg stays in it: from then on a statement
        # for itself would seem to have found no rows.
        if connection.pgconn.pipeline_status:
            connection.close()
        raise
    return [_rows(cursor) for cursor in cursors]


def _execute(connection: psycopg.Connection[Any], sql: str, params: Any) -> psycopg.Cursor[Any]:
    return _Cursor(connection, row_factory=tuple_row).execute(sql, params)


def _rows(cursor: psycopg.Cursor[Any]) -> Rows:
    # Not `description`, which makes an object for every column.
    has_rows = cursor.pgresult is not None and cursor.pgresult.nfields
    return cursor.fetchall() if has_rows else []
