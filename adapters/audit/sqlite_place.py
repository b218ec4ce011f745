"""Copies what an audit needs out of a SQLite store: read-only, in one snapshot, beside its writer.

SQLite itself writes each row as a line: a row that passes through Python takes twice as long.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from unswept.adapters.audit.tables import SOURCES, TEXT, Source, type_of
from unswept.adapters.sqlite import files, schema
from unswept.adapters.sqlite.dialect import PREFIX
from unswept.adapters.sqlite.errors import translated
from unswept.core.errors import MisuseError, StoreUnavailableError

_PATIENCE_S: Final = 60
"""How long is waited for whoever has the file locked; nobody is kept waiting by it."""
_LINES: Final = 2_000
"""Rows that are fetched at a time."""


def copy_out(path: str, folder: Path) -> dict[str, Path]:
    """Each table as a CSV file without a header in this folder; raises `StoreError`."""
    if path == files.MEMORY:
        raise MisuseError("an audit needs a store that outlives its process, got one in memory")
    if not os.path.isfile(path):
        raise StoreUnavailableError(f"{path}: expected a SQLite database, found no file")
    try:
        with _snapshot(path) as connection:
            found = schema.found_version(connection, path)
            schema.check_version(found, path, migrate=False)
            schema.check_tables(connection, found, path)
            connection.text_factory = bytes
            return {name: _copied(connection, source, folder) for name, source in SOURCES.items()}
    except sqlite3.Error as error:
        raise translated(error, path) from error


@contextmanager
def _snapshot(path: str) -> Iterator[sqlite3.Connection]:
    with closing(
        sqlite3.connect(
            f"{Path(path).as_uri()}?mode=ro", timeout=_PATIENCE_S, uri=True, isolation_level=None
        )
    ) as connection:
        connection.execute("PRAGMA query_only = 1")
        connection.execute("BEGIN")  # deferred: it takes no lock that a writer waits for
        yield connection


def _copied(connection: sqlite3.Connection, source: Source, folder: Path) -> Path:
    file = folder / f"{source.name}.csv"
    names = ", ".join(source.columns)
    # `%w` doubles what quotes, as CSV does. A text that is not there is an empty one here.
    form = ",".join('"%w"' if type_of(name) == TEXT else "%s" for name in source.columns)
    values = ", ".join(
        f"coalesce({name}, '')" if type_of(name) == TEXT else name for name in source.columns
    )
    rows = connection.execute(
        f"WITH found ({names}) AS ({source.select.format(PREFIX)})"
        f" SELECT printf('{form}\n', {values}) FROM found"
    )
    with file.open("wb") as out:
        while lines := rows.fetchmany(_LINES):
            out.write(b"".join([line for (line,) in lines]))
    return file
