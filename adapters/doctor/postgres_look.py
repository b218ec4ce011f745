"""Looks at a Postgres store over one connection, by the commands that only read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, TypeVar

import psycopg
from attrs import evolve

from unswept.adapters.postgres import schema
from unswept.adapters.postgres.dialect import DEFAULT_SCHEMA
from unswept.adapters.postgres.errors import translating
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
        with translating(self._connection, self.where):
            return self._connection.execute(sql.format(f"{self.schema}.").encode()).fetchall()


@contextmanager
def looked_at(url: str, schema_name: str | None) -> Iterator[PostgresLook]:
    """A look at the schema that is named, in the database that the URL names."""
    mine = settings(url, DEFAULT_SCHEMA if schema_name is None else schema_name)
    with closing(connected(evolve(mine, migrate=False))) as connection:
        yield PostgresLook(connection, mine)
