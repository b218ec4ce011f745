"""The store on one SQLite file, as its users see it."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, TypeVar

from unswept.adapters.sql.queries import Queries
from unswept.adapters.sql.scripts import SCRIPTS
from unswept.adapters.sqlite import forks, opening
from unswept.adapters.sqlite.connection import Connection
from unswept.adapters.sqlite.dialect import SqliteDialect
from unswept.adapters.sqlite.opening import Durability
from unswept.core.checks import check_bool, check_whole, shown
from unswept.core.commands import Command, Heartbeat
from unswept.core.errors import MisuseError
from unswept.core.units import StoreMs

R = TypeVar("R")

QUERIES: Final = Queries(SqliteDialect())


def system_clock() -> StoreMs:
    """The store clock of a SQLite file: its host's. A write reads it with the write lock held."""
    return StoreMs(time.time_ns() // 1_000_000)


class SqliteStore:
    """A store on one SQLite file, for any number of threads and processes of one host.

    `SqliteStore("sqlite:jobs.db")`, `SqliteStore("sqlite::memory:")` or a path. The file is made
    where there is none, and its schema brought to the newest version unless `migrate` is False.

    A command is one transaction: it takes effect as a whole or not at all. What the outside world
    does is raised as a `StoreError`; a wrong file is refused when the store is opened.
    """

    def __init__(
        self,
        path_or_url: str | os.PathLike[str],
        *,
        clock: Callable[[], StoreMs] | None = None,
        durability: Durability | str = Durability.FULL,
        busy_timeout_ms: int = 5_000,
        migrate: bool = True,
    ) -> None:
        """Open the store. `busy_timeout_ms` is how long a command waits for another writer."""
        opening.check_library()
        check_whole("busy_timeout_ms", busy_timeout_ms, 0, 2**31 - 1)
        check_bool("migrate", migrate)
        self.path = opening.path_of(path_or_url)
        self._durability = _durability(durability)
        self._busy_timeout_ms = busy_timeout_ms
        self._migrate = migrate
        self._gone: str | None = None
        self._clock = system_clock if clock is None else clock
        self._main = self._connection()
        # A heartbeat waits for no other command of its process, only for the file's write lock.
        self._beats = self._main if self._in_memory else self._connection()
        with self._main.lock:
            self._main.open()
        forks.guard(self)

    def execute(self, command: Command[R]) -> R:
        """Carry out one command and reply. Raises `StoreError` where the outside world fails."""
        entry = SCRIPTS[type(command)]
        connection = self._beats if isinstance(command, Heartbeat) else self._main
        with connection.lock:
            if self._gone is not None:
                raise MisuseError(self._gone)
            reply: R = connection.run(entry.mode, lambda: entry.script(QUERIES, command))
            return reply

    def close(self) -> None:
        """Close the file; a closed store carries out nothing more."""
        self._gone = f"{self!r} is closed; open the store anew"
        for connection in self._connections:
            with connection.lock:
                connection.close()

    @property
    def _in_memory(self) -> bool:
        return self.path == opening.MEMORY

    @property
    def _connections(self) -> tuple[Connection, ...]:
        return (self._main,) if self._in_memory else (self._main, self._beats)

    def _connection(self) -> Connection:
        return Connection(self.path, self._connect, self._clock, self._busy_timeout_ms)

    def _connect(self) -> sqlite3.Connection:
        return opening.connect(
            self.path, self._durability, self._busy_timeout_ms, migrate=self._migrate
        )

    def before_fork(self) -> None:
        """Close the file, and let no thread open it until the fork is over."""
        for connection in self._connections:
            connection.lock.acquire()
            if not self._in_memory:
                connection.close()

    def after_fork(self, *, in_child: bool) -> None:
        """The next command connects; what is in memory stays with the parent."""
        if in_child and self._in_memory:
            self._gone = f"{self!r} is in its parent's memory; a fork cannot share it"
        for connection in self._connections:
            connection.lock.release()

    def __enter__(self) -> SqliteStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"SqliteStore({self.path!r})"


def _durability(value: Durability | str) -> Durability:
    try:
        return Durability(value)
    except ValueError:
        raise MisuseError(
            f"durability must be one of {', '.join(Durability)}, got {shown(value)}"
        ) from None
