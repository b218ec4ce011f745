"""Reads what is to be audited: a live database by its URL, or a file of exported events."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from attrs import frozen

from unswept.adapters.audit import history, sqlite_place
from unswept.adapters.audit.judge import Verdict, judge
from unswept.adapters.audit.tables import SOURCES
from unswept.adapters.sqlite import files


@frozen
class Audit:
    """What an audit found out."""

    place: str
    """For messages; no password is in it."""
    events: int
    """How many were read."""
    verdicts: tuple[Verdict, ...]


def audit(place: str, schema: str | None, limit: int) -> Audit:
    """Judge what is there; raises `MisuseError`, or `StoreError` where it cannot be read."""
    with TemporaryDirectory(prefix="unswept-audit-") as name:
        folder = Path(name)
        with closing(history.connect(folder)) as connection:
            path = files.path_of(place)
            history.load(connection, sqlite_place.copy_out(path, folder))
            tables: Collection[str] = SOURCES
            history.arrange(connection)
            counted = connection.execute("SELECT count(*) FROM events").fetchone()
            assert counted is not None
            return Audit(path, counted[0], judge(connection, tables, limit))
