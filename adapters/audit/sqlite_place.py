"""Copies what an audit needs out of a SQLite store: read-only, of one moment, beside its writer.

SQLite itself writes rows as lines, many at a time: a row that passes through Python takes twice as
long, and keeps a second thread from reading.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Final

from unswept.adapters.audit.tables import EVENTS, SOURCES, TEXT, Source, type_of
from unswept.adapters.sqlite import files, schema
from unswept.adapters.sqlite.dialect import PREFIX
from unswept.adapters.sqlite.errors import translated
from unswept.core.errors import MisuseError, StoreUnavailableError

_PATIENCE_S: Final = 60
"""How long is waited for whoever has the file locked; nobody is kept waiting by it."""
_LINES: Final = 500
"""Rows that are fetched at a time."""
_TRIES: Final = 3
"""How often two connections are opened in the hope that nobody writes in between."""


def copy_out(path: str, folder: Path) -> dict[str, Path]:
    """Each table as a CSV file without a header in this folder; raises `StoreError`."""
    if path == files.MEMORY:
        raise MisuseError("an audit needs a store that outlives its process, got one in memory")
    if not os.path.isfile(path):
        raise StoreUnavailableError(f"{path}: expected a SQLite database, found no file")
    try:
        with _moment(path) as connections:
            first = connections[0]
            found = schema.found_version(first, path)
            schema.check_version(found, path, migrate=False)
            schema.check_tables(first, found, path)
            for connection in connections:
                connection.text_factory = bytes
            copied = {EVENTS.name: _copied_events(connections, folder)}
            others = (source for source in SOURCES.values() if source is not EVENTS)
            return {**copied, **{source.name: _copied(first, source, folder) for source in others}}
    except sqlite3.Error as error:
        raise translated(error, path) from error


@contextmanager
def _moment(path: str) -> Iterator[tuple[sqlite3.Connection, ...]]:
    """Two connections in transactions that see the same, or one where others write all the time."""
    with closing(_connect(path)) as first, closing(_connect(path)) as second:
        _begin(first)
        for _ in range(_TRIES):
            version = _version(first)
            _begin(second)
            first.execute("ROLLBACK")
            _begin(first)
            # Nobody has committed since before the second began: it sees what the first does.
            if _version(first) == version:
                yield first, second
                return
            second.execute("ROLLBACK")
        yield (first,)


def _connect(path: str) -> sqlite3.Connection:
    """Read-only; each is used by one thread at a time."""
    connection = sqlite3.connect(
        f"{Path(path).as_uri()}?mode=ro",
        timeout=_PATIENCE_S,
        uri=True,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.execute("PRAGMA query_only = 1")
    return connection


def _begin(connection: sqlite3.Connection) -> None:
    """What is seen is settled by the first read; it takes no lock that a writer waits for."""
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()


def _version(connection: sqlite3.Connection) -> int:
    """It changes when somebody else commits."""
    (version,) = connection.execute("PRAGMA data_version").fetchone()
    return int(version)


def _copied_events(connections: Sequence[sqlite3.Connection], folder: Path) -> Path:
    """Each connection copies its share of the numbers; the order of the lines says nothing."""
    file = folder / f"{EVENTS.name}.csv"
    bounds = connections[0].execute(f"SELECT min(seq), max(seq) FROM {PREFIX}events").fetchone()
    first, last = (0 if bound is None else bound for bound in bounds)
    share = (last - first) // len(connections) + 1
    with file.open("wb") as out, ThreadPoolExecutor(len(connections)) as pool:
        shares = [
            pool.submit(_copy_between, connection, at - 1, at + share - 1, out)
            for connection, at in zip(connections, range(first, last + 1, share), strict=False)
        ]
        for each in shares:
            each.result()
    return file


def _copy_between(connection: sqlite3.Connection, after: int, upto: int, out: IO[bytes]) -> None:
    """The events with numbers above `after`, up to `upto`."""
    some = (
        f"SELECT seq, {_line(EVENTS)} AS line FROM {PREFIX}events"
        f" WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT {_LINES}"
    )
    while True:
        reached, lines = connection.execute(
            f"SELECT max(seq), group_concat(line, '') FROM ({some})", (after, upto)
        ).fetchone()
        if reached is None:
            return
        after = reached
        out.write(lines)


def _copied(connection: sqlite3.Connection, source: Source, folder: Path) -> Path:
    file = folder / f"{source.name}.csv"
    rows = connection.execute(
        f"WITH found ({', '.join(source.columns)}) AS ({source.select.format(PREFIX)})"
        f" SELECT {_line(source)} FROM found"
    )
    with file.open("wb") as out:
        while lines := rows.fetchmany(_LINES):
            out.write(b"".join([line for (line,) in lines]))
    return file


def _line(source: Source) -> str:
    """A row as a line of CSV."""
    # `%w` doubles what quotes, as CSV does. A text that is not there is an empty one here.
    form = ",".join('"%w"' if type_of(name) == TEXT else "%s" for name in source.columns)
    values = ", ".join(
        f"coalesce({name}, '')" if type_of(name) == TEXT else name for name in source.columns
    )
    return f"printf('{form}\n', {values})"
