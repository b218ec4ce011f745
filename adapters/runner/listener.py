"""Hears by LISTEN that there is new work; needs a connection of its own, and no pooler between.

A pooler that hands each transaction to another connection takes a LISTEN and delivers nothing. So
the connection is asked again and again what it listens to, which also finds one that is dead.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

import psycopg
from psycopg import sql

from unswept.adapters.postgres.announce import channel_of
from unswept.adapters.postgres.dialect import DEFAULT_SCHEMA
from unswept.adapters.postgres.settings import CONNECTION, settings
from unswept.core.checks import check_duration
from unswept.core.units import Ms

CHECK_MS: Final = Ms(30_000)
_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 30.0

log: Final = logging.getLogger(__name__)

_Connection = psycopg.AsyncConnection[Any]


class Listener:
    """A `Waker` for the queue of one schema."""

    def __init__(self, url: str, *, schema: str = DEFAULT_SCHEMA, check_ms: Ms = CHECK_MS) -> None:
        """Nothing is connected yet. `url` leads to the server itself, and not to a pooler."""
        check_duration("check_ms", check_ms)
        mine = settings(url, schema)
        self._conninfo = mine.conninfo
        self._where = mine.where
        self._channel = channel_of(schema)
        self._check_s = check_ms / 1000
        self.listening = False
        """By the last check."""

    async def listen(self, wake: Callable[[], None]) -> None:
        """Call `wake` for each notification, and whenever one may have been missed."""
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(
                    self._conninfo, **CONNECTION
                ) as connection:
                    await connection.execute(
                        sql.SQL("LISTEN {}").format(sql.Identifier(self._channel))
                    )
                    while await self._listens(connection):
                        pause_s = _FIRST_PAUSE_S
                        wake()
                        await self._hear(connection, wake)
                log.warning("%s: not listening: there is a pooler between", self._where)
                pause_s = _LONGEST_PAUSE_S
            except (psycopg.Error, OSError) as error:
                # No message of psycopg's is passed on: it may quote a password.
                log.warning("%s: not listening: %s", self._where, type(error).__name__)
            finally:
                self.listening = False
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _listens(self, connection: _Connection) -> bool:
        async with asyncio.timeout(self._check_s):
            asked = await connection.execute("SELECT pg_listening_channels()")
            channels = await asked.fetchall()
        self.listening = (self._channel,) in channels
        return self.listening

    async def _hear(self, connection: _Connection, wake: Callable[[], None]) -> None:
        """Until the next check is due."""
        async for _ in connection.notifies(timeout=self._check_s):
            wake()
