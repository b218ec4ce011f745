"""Drives sessions over an asynchronous connection: `sync`, with await."""

from __future__ import annotations

from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from unswept.adapters.postgres.errors import translating
from unswept.adapters.postgres.roundtrip import exchange
from unswept.adapters.postgres.session import Batch, Rows, Session

T = TypeVar("T")


async def drive(connection: psycopg.AsyncConnection[Any], session: Session[T], where: str) -> T:
    """Carry a session out; psycopg's errors are raised as those of `unswept.core.errors`."""
    answer: Any = None
    while True:
        try:
            batch = session.send(answer)
        except StopIteration as end:
            reply: T = end.value
            return reply
        with translating(connection, where, committing=batch.commits):
            answer = await _sent(connection, batch)


async def begin(connection: psycopg.AsyncConnection[Any], where: str) -> None:
    """A connection that begins a transaction with its first statement does so now: psycopg alone
    knows in which way."""
    if connection.info.transaction_status == TransactionStatus.IDLE:
        with translating(connection, where):
            await connection.execute(b"SELECT")


async def _sent(connection: psycopg.AsyncConnection[Any], batch: Batch) -> list[Rows]:
    try:
        async with connection.lock:
            return await connection.wait(exchange(connection, batch))
    finally:
        # Cancelled on its way: whoever used the connection next would get what was meant for this
        # batch.
        if connection.pgconn.pipeline_status:
            await connection.close()
