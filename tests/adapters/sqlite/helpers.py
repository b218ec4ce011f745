"""What the SQLite tests share: short terms, a clock that a test owns, and a look at all tables."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.adapters.tables import COLUMNS, selected, tables_from
from unswept.core.job import Terms
from unswept.core.units import Ms, StoreMs

TERMS = Terms(Ms(100), Ms(160), Ms(80), Ms(60))
"""Lease ttl 100, http grace 160, first beat 80, window 60."""


class Clock:
    """A store clock that stands until it is told to move, in either direction."""

    def __init__(self, now: int = 1_000_000) -> None:
        self.now = now

    def __call__(self) -> StoreMs:
        return StoreMs(self.now)


def tables_of(path: str | Path) -> Mapping[str, Any]:
    """All rows of a store's file, under the names and in the shape that a `World` has."""
    with closing(sqlite3.connect(path)) as database:
        return tables_from(
            {
                table: database.execute(
                    f"SELECT {selected(table, 'unswept_label_sets')} FROM unswept_{table}"
                    f" ORDER BY {_ORDER.get(table, 1)}"
                )
                for table in COLUMNS
            }
        )


_ORDER = {"events": "seq"}


def environment() -> dict[str, str]:
    """For another Python that imports what this one does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
