"""Drives sessions over an asynchronous connection: `sync`, with await."""

from __future__ import annotations

from typing import Any, TypeVar

import psycopg
from psycopg.adapt import AdaptersMap
from psycopg.rows import tuple_row

from unswept.adapters.postgres.errors import translated
from unswept.adapters.postgres.session import ADAPTERS, Batch, Rows, Session

T = TypeVar("T")


class _Cursor(psycopg.AsyncCursor[Any]):
    """Unlike `connection.cursor()` it is the same on every connection."""

    __slots__ = ()

    @property
    def adapters(self) -> AdaptersMap:
        return ADAPTERS


async def drive(connection: psycopg.AsyncConnection[Any], session: Session[T], where: str) -> T:
    """Carry a session out; psycopg's errors are raised as those of `unswept.core.errors`."""
    answer: Any = None
    while True:
        try:
            batch = session.send(answer)
        except StopIteration as end:
            reply: T = end.value
            return reply
        try:
            answer = await _sent(connection, batch)
        except psycopg.Error as error:
            lost = connection.closed
            raise translated(error, where, lost=lost, committing=batch.commits) from error


async def _sent(connection: psycopg.AsyncConnection[Any], batch: Batch) -> list[Rows]:
    if len(batch.requests) < 2:
        return [await _rows(await _execute(connection, *request)) for request in batch.requests]
    try:
        async with connection.pipeline():
            cursors = [await _execute(connection, *request) for request in batch.requests]
    except Exception:
        raise
    except BaseException:
        # Interrupted on its way into the pipeline, psycopg stays in it: from then on a statement
        # for itself would seem to have found no rows.
        if connection.pgconn.pipeline_status:
            await connection.close()
        raise
    return [await _rows(cursor) for cursor in cursors]


async def _execute(
    connection: psycopg.AsyncConnection[Any], sql: str, params: Any
) -> psycopg.AsyncCursor[Any]:
    return await _Cursor(connection, row_factory=tuple_row).execute(sql, params)


async def _rows(cursor: psycopg.AsyncCursor[Any]) -> Rows:
    # Not `description`, which makes an object for every column.
    has_rows = cursor.pgresult is not None and cursor.pgresult.nfields
    return await cursor.fetchall() if has_rows else []
