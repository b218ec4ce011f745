"""Copies what an audit needs out of a Postgres store, in one READ ONLY transaction."""

from __future__ import annotations

from pathlib import Path

from attrs import evolve

from unswept.adapters.audit.tables import SOURCES
from unswept.adapters.postgres.dialect import DEFAULT_SCHEMA
from unswept.adapters.postgres.errors import translating
from unswept.adapters.postgres.settings import settings
from unswept.adapters.postgres.store import prepare
from unswept.adapters.postgres.sync import connected


def copy_out(url: str, schema: str | None, folder: Path) -> tuple[str, dict[str, Path]]:
    """The store's name, without a password, and each table as a CSV file without a header; raises
    `MisuseError` or `StoreError`."""
    mine = settings(url, DEFAULT_SCHEMA if schema is None else schema)
    prepare(evolve(mine, migrate=False))
    copied = {}
    with connected(mine) as connection, translating(connection, mine.where, committing=False):
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        for name, source in SOURCES.items():
            copied[name] = folder / f"{name}.csv"
            select = source.select.format(f"{mine.schema}.")
            with (
                copied[name].open("wb") as out,
                connection.cursor() as cursor,
                cursor.copy(f"COPY ({select}) TO STDOUT (FORMAT csv)".encode()) as rows,
            ):
                for lines in rows:
                    out.write(lines)
        connection.execute("ROLLBACK")
    return mine.where, copied
