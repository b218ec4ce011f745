"""The schema of a SQLite store: which version stands in a file, and how it becomes the newest.

A file may be shared with an application's own tables: all that is ours begins with `unswept_`.
Nothing is changed in a file that turns out to be no database, damaged, or from a newer version.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from unswept.adapters.sql import migrations
from unswept.adapters.sql.migrations import Advice, Migration, load, printed
from unswept.adapters.sqlite.dialect import PREFIX
from unswept.core.checks import shown
from unswept.core.errors import NotAStoreError

MIGRATIONS: Final = load("unswept.adapters.sqlite")
VERSION: Final = MIGRATIONS[-1].number
"""The schema version that this library reads and writes."""

_TABLE = f"{PREFIX}migrations"
_CREATE = f"""\
CREATE TABLE {_TABLE} (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL
) STRICT;
"""


def schema_sql() -> str:
    """All migrations as SQL, with the table that records them."""
    recorded = "".join(
        f"INSERT INTO {_TABLE} (number, name) VALUES ({m.number}, '{m.name}');\n"
        for m in MIGRATIONS
    )
    return f"BEGIN IMMEDIATE;\n\n{_CREATE}\n{printed(MIGRATIONS)}\n{recorded}\nCOMMIT;\n"


def found_version(connection: sqlite3.Connection, path: str) -> int:
    """The version that stands in the file; 0 where it holds nothing of ours.

    Refuses what bears our names but was made by somebody else.
    """
    # One look for both questions: between two, another process may have made the store.
    ours = connection.execute(
        # SQLite takes names that differ in case for the same.
        "SELECT type, name FROM sqlite_master WHERE lower(substr(name, 1, ?)) = ? ORDER BY name",
        (len(PREFIX), PREFIX),
    ).fetchall()
    if ("table", _TABLE) in ours:
        return max(_recorded(connection, path))
    if ours:
        raise NotAStoreError(
            f"{path}: expected no tables named {PREFIX}... in a database without {_TABLE}, found"
            f" {', '.join(name for _, name in ours)}. Rename them, or name another path"
        )
    return 0


def _recorded(connection: sqlite3.Connection, path: str) -> list[int]:
    """The numbers of the migrations that were applied; there is at least one."""
    columns = connection.execute(f"SELECT name FROM pragma_table_info('{_TABLE}')").fetchall()
    numbers: list[object] = []
    if ("number",) in columns:
        rows = connection.execute(f"SELECT number FROM {_TABLE} ORDER BY number").fetchall()
        numbers = [number for (number,) in rows]
    known = [number for number in numbers if isinstance(number, int) and number >= 1]
    if not known or known != numbers:
        raise NotAStoreError(
            f"{path}: expected the numbers of migrations in {_TABLE}, found {shown(numbers)}: no"
            " unswept made that table. It was left as it was; name another path"
        )
    return known


def check_tables(connection: sqlite3.Connection, found: int, path: str) -> None:
    """Refuse a file in which tables, or columns of them, are missing that the version has which it
    claims to be."""
    made = sqlite3.connect(":memory:", isolation_level=None)
    try:
        for migration in MIGRATIONS[:found]:
            for statement in migration.statements:
                made.execute(statement)
        missing = _names(made) - _names(connection)
    finally:
        made.close()
    if missing:
        raise NotAStoreError(
            f"{path}: expected what schema version {found} has, found no {_listed(missing)}. It was"
            " left as it was; restore a backup, or name another path"
        )


def _names(connection: sqlite3.Connection) -> set[str]:
    """Of all our tables, as `table`, and of their columns, as `table.column`."""
    rows = connection.execute(
        "SELECT t.name, c.name FROM sqlite_master AS t, pragma_table_info(t.name) AS c"
        " WHERE t.type = 'table' AND substr(t.name, 1, ?) = ?",
        (len(PREFIX), PREFIX),
    ).fetchall()
    return {name for table, column in rows for name in (table, f"{table}.{column}")}


def _listed(names: set[str]) -> str:
    """For a message: not the columns of a table that is named itself."""
    return ", ".join(sorted(name for name in names if name.partition(".")[0] not in names - {name}))


_ADVICE: Final = Advice("path", "open the store with migrate=True")


def check_version(found: int, path: str, *, migrate: bool) -> None:
    """Refuse a newer version always, and an older one where it is not to be migrated."""
    migrations.check_version(found, VERSION, path, _ADVICE, migrate=migrate)


def migrate(connection: sqlite3.Connection, path: str) -> int:
    """Apply what is missing, all of it or nothing, under the write lock; gives the version before.

    Whoever waited for the lock finds the version that stands now, and has nothing left to do.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        found = found_version(connection, path)
        check_version(found, path, migrate=True)
        if found == 0:
            connection.execute(_CREATE)
        for migration in MIGRATIONS[found:]:
            _apply(connection, migration)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return found


def _apply(connection: sqlite3.Connection, migration: Migration) -> None:
    # Not `executescript`: it commits first, and the write lock would be lost.
    for statement in migration.statements:
        connection.execute(statement)
    connection.execute(
        f"INSERT INTO {_TABLE} (number, name) VALUES (?, ?)", (migration.number, migration.name)
    )
