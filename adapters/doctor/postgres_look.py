"""Looks at a Postgres store over one connection, by the commands that only read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from time import perf_counter
from typing import Any, TypeVar

import psycopg

from unswept.adapters.postgres import schema
from unswept.adapters.postgres.dialect import DEFAULT_SCHEMA
from unswept.adapters.postgres.session import Batch, Session
from unswept.adapters.postgres.settings import Settings, settings
from unswept.adapters.postgres.sync import connected, drive
from unswept.adapters.sql.scripts import entry_of
from unswept.adapters.sql.steps import Mode, Row
from unswept.core.checks import shown
from unswept.core.commands import Command
from unswept.core.errors import MisuseError

R = TypeVar("R")


class PostgresLook:
    """One connection, which keeps nothing in its session."""

    def __init__(self, connection: psycopg.Connection[Any], mine: Settings) -> None:
        self._connection = connection
        self._mine = mine
        self.where = mine.where
        self.schema = mine.schema

    def version(self) -> int:
        """See `Look`."""
        session = schema.prepare(self.schema, self.where, migrate=False)
        try:
            return drive(self._connection, session, self.where)
        finally:
            if not self._connection.closed:
                self._connection.rollback()  # what it refuses, it leaves in the middle

    def execute(self, command: Command[R]) -> R:
        """See `Look`."""
        entry = entry_of(command)
        if entry.mode is not Mode.READ:
            raise MisuseError(f"expected a command that reads, got {shown(command)}")
        return drive(self._connection, self._mine.session(entry, command), self.where)

    def rows(self, sql: str) -> list[Row]:
        """See `Look`."""
        return self._asked("READ ONLY", sql.format(f"{self.schema}."), self._mine.timeout_ms)

    def write_lock_ms(self, most_ms: int) -> float:
        """See `Look`. What a renewal takes; a CREATE INDEX keeps it out, and no reader."""
        began = perf_counter()
        lock = f"LOCK TABLE {self.schema}.jobs IN ROW EXCLUSIVE MODE"
        self._asked("READ WRITE", lock, most_ms)
        return (perf_counter() - began) * 1000

    def _asked(self, mode: str, sql: str, most_ms: int) -> list[Row]:
        try:
            return drive(self._connection, _asking(mode, sql, most_ms), self.where)
        finally:
            if not self._connection.closed:
                self._connection.rollback()


def _asking(mode: str, sql: str, most_ms: int) -> Session[list[Row]]:
    """One statement in a transaction that is undone, and that waits for no lock for long."""
    answer = yield Batch(
        [
            (f"BEGIN ISOLATION LEVEL READ COMMITTED {mode}", None),
            (
                "SELECT set_config('lock_timeout', %(most)s, true),"
                " set_config('statement_timeout', %(longest)s, true)",
                {"most": str(most_ms), "longest": str(2 * most_ms)},
            ),
            (sql, None),
        ]
    )
    return answer[-1]


@contextmanager
def looked_at(url: str, schema_name: str | None) -> Iterator[PostgresLook]:
    """A look at the schema that is named, in the database that the URL names."""
    named = DEFAULT_SCHEMA if schema_name is None else schema_name
    mine = settings(url, named, migrate=False)
    with closing(connected(mine)) as connection:
        yield PostgresLook(connection, mine)
