"""A store of either kind, as a command names it and as its owners use it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from typer.testing import CliRunner, Result

from unswept.adapters.cli.main import app
from unswept.adapters.postgres import PostgresStore
from unswept.adapters.sqlite import SqliteStore
from unswept.core.commands import Store

PATIENT_MS = 60_000


class Place:
    """A store at the newest version, in a file or in a schema of its own; one that is `made` is not
    opened."""

    def __init__(self, url: str, schema: str | None, *, made: bool = False) -> None:
        self.url = url
        self.schema = schema
        self.words = ["--store", url, *([] if schema is None else ["--schema", schema])]
        if not made:
            with self.opened():
                pass

    def run(self, verb: str, *more: str, **variables: str) -> Result:
        runner = CliRunner(env={"COLUMNS": "250", **variables})
        return runner.invoke(app, [verb, *self.words, *more])

    @contextmanager
    def opened(self) -> Iterator[Store]:
        if self.schema is None:
            with SqliteStore(self.url) as file:
                yield file
        else:
            with PostgresStore(
                self.url, schema=self.schema, operation_timeout_ms=PATIENT_MS
            ) as server:
                yield server

    def do(self, sql: str) -> list[tuple[Any, ...]]:
        """A statement; `{}` is what the name of a table begins with."""
        if self.schema is None:
            with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
                return connection.execute(sql.format("unswept_")).fetchall()
        with psycopg.connect(self.url, autocommit=True) as server:
            cursor = server.execute(sql.format(f"{self.schema}.").encode())
            return cursor.fetchall() if cursor.description else []

    def state(self) -> object:
        """All that a look could be seen to change: a file and what lies beside it, or each row of
        each table as it stands on the server."""
        if self.schema is None:
            return {each.name: each.read_bytes() for each in self.path.parent.iterdir()}
        tables = self.do(
            f"SELECT relname FROM pg_class WHERE relnamespace = '{self.schema}'::regnamespace"
            " AND relkind = 'r' ORDER BY relname"
        )
        rows = "SELECT ctid::text, xmin::text, t.*::text FROM {{}}{} AS t ORDER BY ctid"
        return {name: self.do(rows.format(name)) for (name,) in tables}

    @property
    def path(self) -> Path:
        return Path(self.url.removeprefix("sqlite:"))
