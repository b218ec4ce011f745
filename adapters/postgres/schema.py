"""The schema of a Postgres store: which version a database holds, and how it becomes the newest.

All that is ours lives in one schema of its own; nothing is changed in one that bears its name but
was made by somebody else, or by a newer version.
"""

from __future__ import annotations

import re
from typing import Final

from unswept.adapters.postgres.dialect import DEFAULT_SCHEMA
from unswept.adapters.postgres.session import Batch, Request, Session
from unswept.adapters.sql.migrations import Advice, Migration, check_version, load, printed
from unswept.core.checks import shown
from unswept.core.errors import MisuseError, NotAStoreError, StoreError

MIGRATIONS: Final = load("unswept.adapters.postgres")
VERSION: Final = MIGRATIONS[-1].number
"""The schema version that this library reads and writes."""

OLDEST_SERVER: Final = 140_000
"""The first with SQL-standard function bodies."""

PATIENCE_MS: Final = 60_000
"""How long is waited for a lock, in milliseconds; several instances may start at once."""

_CREATE: Final = """\
CREATE TABLE {schema}.migrations (
    number bigint PRIMARY KEY,
    name text NOT NULL
);
"""


def schema_sql(schema: str = DEFAULT_SCHEMA) -> str:
    """All migrations as SQL, with the schema and the table that records them."""
    recorded = "".join(f"{_recorded(migration)};\n" for migration in MIGRATIONS)
    text = (
        "BEGIN;\n\nCREATE SCHEMA IF NOT EXISTS {schema};\n\n"
        f"{_CREATE}\n{printed(MIGRATIONS)}\n{recorded}\nCOMMIT;\n"
    )
    return text.replace("{schema}", schema)


def prepare(schema: str, where: str, *, migrate: bool) -> Session[int]:
    """Looks at the server and the schema, and brings it to the newest version where it may; gives
    the version that it found.

    Raises `MisuseError` or `StoreError`, having changed nothing.
    """
    yield Batch(
        [
            ("BEGIN ISOLATION LEVEL READ COMMITTED", None),
            ("SELECT set_config('lock_timeout', %(wait)s, true)", {"wait": str(PATIENCE_MS)}),
        ]
    )
    yield from _check_server(schema, where)
    found = yield from _found_version(schema, where)
    check_version(found, VERSION, where, _ADVICE, migrate=migrate)
    migrates = found < VERSION
    if migrates:
        yield Batch([_turn(schema)])
        found = yield from _found_version(schema, where)
        check_version(found, VERSION, where, _ADVICE, migrate=True)
        yield from _migrate(schema, found)
    yield Batch([("COMMIT", None)], commits=migrates)
    return found


def _check_server(schema: str, where: str) -> Session[None]:
    answer = yield Batch(
        [
            (
                "SELECT current_setting('server_version_num')::bigint,"
                " current_setting('server_version'), current_setting('server_encoding'),"
                " quote_ident(%(schema)s) = %(schema)s",
                {"schema": schema},
            )
        ]
    )
    number, version, encoding, is_name = answer[-1][0]
    if number < OLDEST_SERVER:
        raise StoreError(
            f"{where}: expected Postgres {OLDEST_SERVER // 10_000} or newer, found {version}"
        )
    if encoding != "UTF8":
        raise StoreError(
            f"{where}: expected a database whose encoding is UTF8, found {encoding}. Create one"
            " with ENCODING 'UTF8'"
        )
    if not is_name:
        raise MisuseError(f"{where}: schema must be no word of SQL, got {shown(schema)}")


def _found_version(schema: str, where: str) -> Session[int]:
    """The version that stands in the schema; 0 where nothing of ours is in it."""
    answer = yield Batch([(_THERE, {"schema": schema})])
    there = {name for (name,) in answer[-1]}
    if "migrations" not in there:
        ours = there & _made_by(MIGRATIONS)
        if ours:
            raise NotAStoreError(
                f"{where}: expected nothing of these names in a schema without a table of"
                f" migrations, found {_listed(ours)}. Name another schema"
            )
        return 0
    answer = yield Batch([(f"SELECT to_jsonb(m) ->> 'number' FROM {schema}.migrations m", None)])
    numbers = sorted(_number(text) for (text,) in answer[-1])
    if not numbers or numbers[0] < 1:
        raise NotAStoreError(
            f"{where}: expected the numbers of migrations in {schema}.migrations, found"
            f" {shown(numbers)}: no unswept made that table. It was left as it was; name another"
            " schema"
        )
    found = numbers[-1]
    missing = _made_by(MIGRATIONS[:found]) - there
    if missing:
        raise NotAStoreError(
            f"{where}: expected what schema version {found} has, found no {_listed(missing)}. It"
            " was left as it was; restore a backup, or name another schema"
        )
    return found


def _number(text: str | None) -> int:
    """A migration's; 0 where it is none."""
    return int(text) if text is not None and re.fullmatch("[0-9]{1,9}", text) else 0


_THERE: Final = """
    WITH mine AS (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = %(schema)s),
    tables AS (
        SELECT c.oid, relname FROM pg_catalog.pg_class AS c JOIN mine ON mine.oid = relnamespace
        WHERE relkind IN ('r', 'p', 'v', 'm', 'f')
    )
    SELECT relname::text FROM tables
    UNION ALL SELECT relname || '.' || attname FROM tables
        JOIN pg_catalog.pg_attribute ON attrelid = tables.oid AND attnum > 0 AND NOT attisdropped
    UNION ALL SELECT proname || '()' FROM pg_catalog.pg_proc JOIN mine ON mine.oid = pronamespace
"""
"""The names of what a schema holds: `table`, `table.column`, `function()`."""


_TABLE: Final = re.compile(r"^CREATE TABLE \{schema\}\.(\w+) \((.*?)^\)", re.M | re.S)
_COLUMN: Final = re.compile(r"^    ([a-z]\w*)", re.M)
_FUNCTION: Final = re.compile(r"^CREATE FUNCTION \{schema\}\.(\w+)", re.M)


def _made_by(migrations: tuple[Migration, ...]) -> set[str]:
    """The same of what migrations make, in which each column has a line of its own."""
    names = set()
    for migration in migrations:
        for table, columns in _TABLE.findall(migration.sql):
            names |= {table, *(f"{table}.{column}" for column in _COLUMN.findall(columns))}
        names |= {f"{function}()" for function in _FUNCTION.findall(migration.sql)}
    return names


def _listed(names: set[str]) -> str:
    """For a message: not the columns of a table that is named itself."""
    return ", ".join(sorted(name for name in names if name.partition(".")[0] not in names - {name}))


_ADVICE: Final = Advice("schema", "apply what `unswept db sql` prints")


def _turn(schema: str) -> Request:
    """One migrates at a time: whoever waited finds the version that stands now."""
    return (
        "SELECT pg_advisory_xact_lock(hashtextextended(%(name)s, 0))",
        {"name": f"unswept migrations of {schema}"},
    )


def _migrate(schema: str, found: int) -> Session[None]:
    answer = yield Batch(
        [("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %(name)s", {"name": schema})]
    )
    statements = [] if answer[-1] else ["CREATE SCHEMA {schema}"]
    if found == 0:
        statements.append(_CREATE)
    for migration in MIGRATIONS[found:]:
        statements += [*migration.statements, _recorded(migration)]
    yield Batch([(text.replace("{schema}", schema), None) for text in statements])


def _recorded(migration: Migration) -> str:
    return (
        "INSERT INTO {schema}.migrations (number, name)"
        f" VALUES ({migration.number}, '{migration.name}')"
    )
