"""The store on one Postgres schema, for programs that run an event loop."""

from __future__ import annotations

import asyncio
import os
from types import TracebackType
from typing import Any, TypeVar

import psycopg
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from unswept.adapters.postgres import borrowed, schema
from unswept.adapters.postgres.aiodrive import begin, drive
from unswept.adapters.postgres.dialect import DEFAULT_SCHEMA
from unswept.adapters.postgres.errors import (
    ConflictError,
    ConnectionLostError,
    NoConnectionError,
    not_connected,
)
from unswept.adapters.postgres.settings import (
    CONNECTION,
    DEFAULT_CONNECTIONS,
    DEFAULT_TIMEOUT_MS,
    Patience,
    Settings,
    settings,
)
from unswept.adapters.sql import poison
from unswept.adapters.sql.scripts import Entry, entry_of, entry_within
from unswept.core.commands import Command, Complete, Enqueue, Heartbeat, Outcome
from unswept.core.errors import MisuseError, StoreError, StoreUnavailableError

R = TypeVar("R")

_Pool = AsyncConnectionPool[psycopg.AsyncConnection[Any]]


class AsyncPostgresStore:
    """`PostgresStore` with `await store.execute(command)`, in one event loop.

    Used as `async with AsyncPostgresStore(url) as store`, or opened by its first command.
    """

    def __init__(
        self,
        url: str,
        *,
        schema: str = DEFAULT_SCHEMA,
        migrate: bool = True,
        operation_timeout_ms: int = DEFAULT_TIMEOUT_MS,
        max_connections: int = DEFAULT_CONNECTIONS,
    ) -> None:
        """As for `PostgresStore`; nothing is connected yet."""
        self._settings = settings(
            url,
            schema,
            migrate=migrate,
            operation_timeout_ms=operation_timeout_ms,
            max_connections=max_connections,
        )
        self.schema = schema
        self._opening = asyncio.Lock()
        self._pools: tuple[_Pool, _Pool] | None = None
        """For commands, and for heartbeats alone."""
        self._closed = False
        self._process = os.getpid()

    async def open(self) -> None:
        """Connect, and bring the schema to the newest version where that is wanted."""
        await self._opened()

    async def _opened(self) -> tuple[_Pool, _Pool]:
        if self._closed:
            raise MisuseError(f"{self!r} is closed; make a new one")
        if os.getpid() != self._process:
            raise MisuseError(f"{self!r} is its parent's; make one after the fork")
        async with self._opening:
            if self._pools is None:
                await _prepare(self._settings)
                commands = _pool(self._settings, self._settings.max_connections)
                beats = _pool(self._settings, 1)
                await commands.open()
                await beats.open()
                self._pools = commands, beats
        return self._pools

    async def execute(self, command: Command[R]) -> R:
        """Carry out one command and reply. Raises `StoreError` where the outside world fails."""
        try:
            return await self._execute(command)
        except StoreError as error:
            parts = poison.parts_of(command, error)
            if not parts:
                raise
        reply: Any = poison.together(command, [await self.execute(part) for part in parts])
        return reply  # type: ignore[no-any-return]

    async def _execute(self, command: Command[R]) -> R:
        entry = entry_of(command)
        commands, beats = await self._opened()
        pool = beats if isinstance(command, Heartbeat) else commands
        patience = Patience(self._settings.timeout_ms)
        while True:
            try:
                return await self._try(pool, entry, command, patience.ask_s)
            except (ConflictError, ConnectionLostError, NoConnectionError) as error:
                await asyncio.sleep(patience.pause_s(error))

    async def _try(self, pool: _Pool, entry: Entry, command: Command[R], wait_s: float) -> R:
        mine = self._settings
        try:
            async with pool.connection(timeout=wait_s) as connection:
                return await drive(connection, mine.session(entry, command), mine.where)
        except PoolTimeout:
            raise NoConnectionError(mine.no_connection) from None
        except PoolClosed:
            raise StoreUnavailableError(mine.no_connection) from None

    async def execute_within(
        self, connection: psycopg.AsyncConnection[Any], command: Enqueue | Complete
    ) -> Outcome:
        """As `PostgresStore.execute_within`, on an asynchronous connection."""
        entry = entry_within(command)
        mine = self._settings
        if not isinstance(connection, psycopg.AsyncConnection):
            raise MisuseError(
                f"connection must be a psycopg.AsyncConnection, got a {type(connection).__name__}"
            )
        borrowed.check_status(connection)
        session = mine.session_within(entry, command)
        try:
            await begin(connection, mine.where)
            await drive(connection, borrowed.check_transaction(mine.where), mine.where)
            async with connection.transaction():
                return await drive(
                    connection, borrowed.within(session, mine.schema, mine.where), mine.where
                )
        except ConflictError as error:
            raise borrowed.cause_of(error) from None

    async def close(self) -> None:
        """Close all connections; a closed store carries out nothing more."""
        self._closed = True
        async with self._opening:
            for pool in self._pools or ():
                await pool.close()

    async def __aenter__(self) -> AsyncPostgresStore:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncPostgresStore({self._settings.where!r})"


async def _prepare(mine: Settings) -> None:
    """Over a connection of its own, whose error says why there is none."""
    try:
        connection = await psycopg.AsyncConnection.connect(mine.conninfo, **CONNECTION)
    except psycopg.Error as error:
        raise not_connected(error, mine.where) from None
    async with connection:
        await drive(
            connection, schema.prepare(mine.schema, mine.where, migrate=mine.migrate), mine.where
        )


def _pool(mine: Settings, size: int) -> _Pool:
    return AsyncConnectionPool(mine.conninfo, open=False, **mine.pool(size))
