"""The store on one SQLite file, as its users see it."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Final, TypeVar

from unswept.adapters.sql import poison
from unswept.adapters.sql.queries import Queries
from unswept.adapters.sql.scripts import entry_of, entry_within
from unswept.adapters.sql.steps import Mode, Script
from unswept.adapters.sqlite import files, forks, opening
from unswept.adapters.sqlite.borrowed import Borrowed
from unswept.adapters.sqlite.connection import Connection
from unswept.adapters.sqlite.dialect import SqliteDialect
from unswept.adapters.sqlite.files import FileId
from unswept.adapters.sqlite.opening import Durability, Opener
from unswept.adapters.sqlite.patience import Wait
from unswept.adapters.sqlite.turns import Turn
from unswept.core.checks import check_bool, check_whole, shown
from unswept.core.commands import Command, Complete, Enqueue, Heartbeat, Outcome
from unswept.core.errors import MisuseError, StoreUnavailableError
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
        """Open the store. `busy_timeout_ms` is how long a command waits in all: for other threads,
        and for other processes."""
        opening.check_library()
        check_whole("busy_timeout_ms", busy_timeout_ms, 0, 2**31 - 1)
        check_bool("migrate", migrate)
        if clock is not None and not callable(clock):
            raise MisuseError(f"clock must be a callable or None, got {shown(clock)}")
        self.path = files.path_of(path_or_url)
        self._busy_timeout_ms = busy_timeout_ms
        self._gone: str | None = None
        self._clock = system_clock if clock is None else clock
        self._opener = Opener(self.path, _durability(durability), migrate=migrate)
        self._main = self._connection()
        # Heartbeats and reads wait for no other command of their process: a heartbeat only for the
        # file's write lock, a read for nothing. What is in memory has one connection for all.
        self._beats = self._main if self._in_memory else self._connection()
        self._reads = self._main if self._in_memory else self._connection()
        self._borrowed = Borrowed(self._opener, self._clock)
        self._in_use_at_fork: tuple[Connection | Borrowed, ...] = ()
        forks.guard(self)  # before the file is open, so that no fork finds it so
        with self._main.lock:
            self._main.open()

    def execute(self, command: Command[R]) -> R:
        """Carry out one command and reply. Raises `StoreError` where the outside world fails: after
        an `OutcomeUnknownError` repeat the command, after the others it took no effect."""
        reply: R = poison.in_parts(self._execute, command)
        return reply

    def _execute(self, command: Command[R]) -> R:
        entry = entry_of(command)
        connection = self._for(command, entry.mode)
        script: Callable[[], Script[R]] = partial(entry.script, QUERIES, command)

        def work(wait: Wait) -> R:
            if entry.mode is Mode.READ:
                return connection.read(script, wait)
            [reply] = connection.write([script], wait)
            return reply

        return self._in_turn(connection.lock, work)

    def execute_all(self, commands: Sequence[Command[Any]]) -> Sequence[Any]:
        """Carry out several writes in one transaction, and so with one wait for the disk.

        It is as if each had been executed right after the one before it, but that all take effect
        or none does. Raises the first error.
        """
        entries = [(entry_of(command), command) for command in commands]
        for entry, command in entries:
            if entry.mode is Mode.READ:
                raise MisuseError(f"expected commands that write, got {shown(command)}")
        scripts = [partial(entry.script, QUERIES, command) for entry, command in entries]
        return self._in_turn(self._main.lock, lambda wait: self._main.write(scripts, wait))

    def execute_within(
        self, connection: sqlite3.Connection, command: Enqueue | Complete
    ) -> Outcome:
        """Carry out an `Enqueue` or a `Complete` in the transaction that is open on `connection`.

        It takes effect when the caller commits, and not at all when the caller rolls back. The
        connection is to this very file, and its transaction begun with BEGIN IMMEDIATE.
        """
        entry = entry_within(command)

        def work(wait: Wait) -> Outcome:
            reply: Outcome = self._borrowed.run(connection, lambda: entry.script(QUERIES, command))
            return reply

        return self._in_turn(self._borrowed.lock, work)

    def close(self) -> None:
        """Close the file; a closed store carries out nothing more."""
        for user in self._users:
            user.lock.check_free_here()
        self._gone = f"{self!r} is closed; open the store anew"
        for user in self._users:
            with user.lock:
                user.close()

    def _in_turn(self, lock: Turn, work: Callable[[Wait], R]) -> R:
        wait = Wait(self._busy_timeout_ms)
        # On any of them: a write beside one's own would wait for itself just the same.
        for user in self._users:
            user.lock.check_free_here()
        lock.take(wait)
        try:
            if self._gone is not None:
                raise MisuseError(self._gone)
            return work(wait)
        finally:
            lock.give_back()

    @property
    def _in_memory(self) -> bool:
        return self.path == files.MEMORY

    @property
    def _connections(self) -> tuple[Connection, ...]:
        return (self._main,) if self._in_memory else (self._main, self._beats, self._reads)

    @property
    def _users(self) -> tuple[Connection | Borrowed, ...]:
        """Whatever uses the file, each one thread at a time."""
        return (*self._connections, self._borrowed)

    def _connection(self) -> Connection:
        return Connection(self._opener, self._clock, self._busy_timeout_ms)

    def _for(self, command: Command[R], mode: Mode) -> Connection:
        if isinstance(command, Heartbeat):
            return self._beats
        return self._reads if mode is Mode.READ else self._main

    def before_fork(self) -> None:
        """Close the file, and let no thread open it until the fork is over."""
        wait = Wait(self._busy_timeout_ms)
        in_use = []
        for user in self._users:
            try:
                user.lock.take(wait)
            except (MisuseError, StoreUnavailableError):
                in_use.append(user)
                continue
            if not self._in_memory:
                user.close()
        self._in_use_at_fork = tuple(in_use)

    def after_fork(self, *, in_child: bool) -> FileId | None:
        """The next command connects; what is in memory stays with the parent."""
        if in_child and self._in_memory:
            self._gone = f"{self!r} is in its parent's memory; a fork cannot share it"
        in_use, self._in_use_at_fork = self._in_use_at_fork, ()
        for user in self._users:
            if user not in in_use:
                user.lock.give_back()
            elif in_child:
                user.abandon()
        return self._opener.file if in_use else None

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
