"""The schema of a Postgres store: which version a database holds, and how it becomes the newest.

All that is ours lives in one schema of its own; nothing is changed in one that bears its name but
was made by somebody else, or by a newer version.
"""

from __future__ import annotations

import re
from typing import Any, Final

from unswept.adapters.postgres.dialect import DEFAULT_SCHEMA
from unswept.adapters.postgres.session import Batch, Request, Session
from unswept.adapters.sql.migrations import Migration, load, printed
from unswept.core.checks import shown
from unswept.core.errors import NotAStoreError, StoreError, StoreVersionError

MIGRATIONS: Final = load("unswept.adapters.postgres")
VERSION: Final = MIGRATIONS[-1].number
"""The schema version that this library reads and writes."""

OLDEST_SERVER: Final = 140_000
"""The first with SQL-standard function bodies."""

_PATIENCE: Final = "60000"
"""How long a migration waits for locks, in milliseconds; several instances may start at once."""

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


def prepare(schema: str, where: str, *, migrate: bool) -> Session[None]:
    """Looks at the server and the schema, and brings it to the newest version where it may.

    Raises `StoreVersionError`, `NotAStoreError` or `StoreError`, having changed nothing.
    """
    yield from _check_server(where)
    found = yield from _found_version(schema, where)
    _check_version(found, where, migrate=migrate)
    if found < VERSION:
        yield Batch([("BEGIN ISOLATION LEVEL READ COMMITTED", None), *_turn(schema)])
        found = yield from _found_version(schema, where)
        _check_version(found, where, migrate=True)
        yield from _migrate(schema, found)
        yield Batch([("COMMIT", None)], commits=True)


def _check_server(where: str) -> Session[None]:
    answer = yield Batch(
        [
            (
                "SELECT current_setting('server_version_num')::bigint,"
                " current_setting('server_version'), current_setting('server_encoding')",
                None,
            )
        ]
    )
    number, version, encoding = _rows(answer)[0]
    if number < OLDEST_SERVER:
        raise StoreError(
            f"{where}: expected Postgres {OLDEST_SERVER // 10_000} or newer, found {version}"
        )
    if encoding != "UTF8":
        raise StoreError(
            f"{where}: expected a database whose encoding is UTF8, found {encoding}. Create one"
            " with ENCODING 'UTF8'"
        )


def _found_version(schema: str, where: str) -> Session[int]:
    """The version that stands in the schema; 0 where nothing of ours is in it."""
    answer = yield Batch([(_RELATIONS, {"schema": schema})])
    there = {name for (name,) in _rows(answer)}
    if "migrations" not in there:
        ours = there & _tables(MIGRATIONS)
        if ours:
            raise NotAStoreError(
                f"{where}: expected no tables of these names in a schema without a table of"
                f" migrations, found {', '.join(sorted(ours))}. Name another schema"
            )
        return 0
    answer = yield Batch([(f"SELECT to_jsonb(m) ->> 'number' FROM {schema}.migrations m", None)])
    numbers = sorted(int(text) if (text or "").isdigit() else 0 for (text,) in _rows(answer))
    if not numbers or numbers[0] < 1:
        raise NotAStoreError(
            f"{where}: expected the numbers of migrations in {schema}.migrations, found"
            f" {shown(numbers)}: no unswept made that table. It was left as it was; name another"
            " schema"
        )
    found = numbers[-1]
    missing = _tables(MIGRATIONS[:found]) - there
    if missing:
        raise NotAStoreError(
            f"{where}: expected the tables of schema version {found}, found none named"
            f" {', '.join(sorted(missing))}. It was left as it was; restore a backup, or name"
            " another schema"
        )
    return found


_RELATIONS: Final = (
    "SELECT relname FROM pg_catalog.pg_class AS c"
    " JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace"
    " WHERE n.nspname = %(schema)s AND relkind IN ('r', 'p', 'v', 'm', 'f')"
)


def _tables(migrations: tuple[Migration, ...]) -> set[str]:
    made = re.compile(r"CREATE TABLE \{schema\}\.(\w+)")
    return {name for migration in migrations for name in made.findall(migration.sql)}


def _check_version(found: int, where: str, *, migrate: bool) -> None:
    if found > VERSION:
        raise StoreVersionError(
            f"{where}: expected schema version {VERSION} or older, found {found}: a newer version"
            " of unswept made it. Upgrade unswept, or name another schema"
        )
    if found < VERSION and not migrate:
        what = "no unswept tables" if found == 0 else f"schema version {found}"
        raise StoreVersionError(
            f"{where}: expected schema version {VERSION}, found {what}, and migrating was not"
            " asked for. Run `unswept db init`, or apply what `unswept db sql` prints"
        )


def _turn(schema: str) -> list[Request]:
    """One migrates at a time: whoever waited finds the version that stands now."""
    return [
        ("SELECT set_config('lock_timeout', %(wait)s, true)", {"wait": _PATIENCE}),
        (
            "SELECT pg_advisory_xact_lock(hashtextextended(%(name)s, 0))",
            {"name": f"unswept migrations of {schema}"},
        ),
    ]


def _migrate(schema: str, found: int) -> Session[None]:
    answer = yield Batch(
        [("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %(name)s", {"name": schema})]
    )
    statements = [] if _rows(answer) else ["CREATE SCHEMA {schema}"]
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


def _rows(answer: list[list[Any]] | None) -> list[Any]:
    """The rows of a batch of one statement."""
    assert answer is not None
    return answer[-1]
