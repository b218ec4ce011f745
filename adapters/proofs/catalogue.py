"""Every theorem there is: those about the core, and those that say that the SQL is the core."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from unswept.adapters.proofs import assembled, births, events, reads, sql
from unswept.adapters.proofs.assembled import Database
from unswept.adapters.sqlite import schema as sqlite
from unswept.adapters.sqlite.dialect import SqliteDialect
from unswept.spec.theorems import catalogue
from unswept.spec.theorems.theorem import Theorem


@cache
def databases() -> tuple[Database, ...]:
    """Those whose SQL is proved; to know Postgres takes its driver."""
    from unswept.adapters.postgres import schema as postgres
    from unswept.adapters.postgres.dialect import PostgresDialect

    return (
        Database("sqlite", SqliteDialect(), sqlite.schema_sql()),
        Database("postgres", PostgresDialect(), postgres.schema_sql()),
    )


@cache
def theorems() -> tuple[Theorem, ...]:
    """All of them; to read the SQL takes sqlglot."""
    return (
        *catalogue.THEOREMS,
        *(each for database in databases() for each in _about(database)),
    )


def _about(database: Database) -> Iterator[Theorem]:
    yield from births.theorems(database)
    yield from sql.theorems(database)
    yield from reads.theorems(database)
    yield from events.theorems(database)
    yield from assembled.theorems(database)
