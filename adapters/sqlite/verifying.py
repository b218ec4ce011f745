"""Looks at a store's file without opening the store: not even its journal's mode is changed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from unswept.adapters.sqlite import files, opening, schema
from unswept.adapters.sqlite.errors import translated


def verify(path: str, timeout_ms: int) -> int:
    """The schema version of the store at `path`, if it is the newest; raises `StoreError` where a
    store would have to be made, migrated, or left alone."""
    opening.check_library()
    files.check_or_make(path, make=False)
    try:
        # Not mode=ro: that would leave the files of a write-ahead log behind.
        with closing(
            sqlite3.connect(f"{Path(path).as_uri()}?mode=rw", timeout=timeout_ms / 1000, uri=True)
        ) as connection:
            found = schema.found_version(connection, path)
            schema.check_version(found, path, migrate=False)
            schema.check_tables(connection, found, path)
    except sqlite3.Error as error:
        raise translated(error, path) from error
    return found
