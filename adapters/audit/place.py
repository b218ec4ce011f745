"""Reads what is to be audited: a live database by its URL, or a file of exported events."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
from attrs import frozen

from unswept.adapters.audit import event_files, history, sqlite_place
from unswept.adapters.audit.judge import Verdict, judge
from unswept.adapters.audit.tables import EVENTS, SOURCES
from unswept.adapters.sqlite import files
from unswept.adapters.urls import is_postgres, need_psycopg
from unswept.core.errors import MisuseError


@frozen
class Audit:
    """What an audit found out."""

    place: str
    """For messages; no password is in it."""
    events: int
    """How many were read."""
    verdicts: tuple[Verdict, ...]


def audit(place: str, schema: str | None, limit: int, export: str | None = None) -> Audit:
    """Judge what is there; raises `MisuseError`, or `StoreError` where it cannot be read."""
    if export is not None:
        event_files.check_target(export)
    if schema is not None and not is_postgres(place):
        raise MisuseError("--schema is for Postgres; a file has none")
    with TemporaryDirectory(prefix="unswept-audit-") as name:
        folder = Path(name)
        with closing(history.connect(folder)) as connection:
            where, tables = _load(connection, place, schema, folder)
            if export is not None:
                event_files.export(connection, export)
            history.arrange(connection)
            counted = connection.execute("SELECT count(*) FROM events").fetchone()
            assert counted is not None
            return Audit(where, counted[0], judge(connection, tables, limit))


def _load(
    connection: duckdb.DuckDBPyConnection, place: str, schema: str | None, folder: Path
) -> tuple[str, Collection[str]]:
    """Its name, and which tables of a store there are now."""
    if is_postgres(place):
        need_psycopg()
        # The driver is an extra: only who names a Postgres store needs it.
        from unswept.adapters.audit import postgres_place

        where, copied = postgres_place.copy_out(place, schema, folder)
    elif event_files.is_file_of_events(place) and not place.startswith("sqlite:"):
        event_files.load(connection, place)
        return place, (EVENTS.name,)
    else:
        where = files.path_of(place)
        copied = sqlite_place.copy_out(where, folder)
    history.load(connection, copied)
    for file in copied.values():
        file.unlink()
    return where, SOURCES
