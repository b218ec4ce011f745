"""Makes blocking connections, and drives sessions over them."""

from __future__ import annotations

from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from unswept.adapters.postgres.errors import not_connected, translating
from unswept.adapters.postgres.roundtrip import exchange
from unswept.adapters.postgres.session import Batch, Rows, Session
from unswept.adapters.postgres.settings import CONNECTION, Settings

T = TypeVar("T")


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
        with translating(connection, where, committing=batch.commits):
            answer = _sent(connection, batch)


def begin(connection: psycopg.Connection[Any], where: str) -> None:
    """A connection that begins a transaction with its first statement does so now: psycopg alone
    knows in which way."""
    if connection.info.transaction_status == TransactionStatus.IDLE:
        with translating(connection, where):
            connection.execute(b"SELECT")


def _sent(connection: psycopg.Connection[Any], batch: Batch) -> list[Rows]:
    try:
        with connection.lock:
            return connection.wait(exchange(connection, batch))
    finally:
        # Interrupted on its way: whoever used the connection next would get what was meant for
        # this batch.
        if connection.pgconn.pipeline_status:
            connection.close()
