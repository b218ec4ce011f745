"""Every theorem there is: those about the core, and those that say that the SQL is the core."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from unswept.adapters.proofs import assembled, births, reads, sql
from unswept.adapters.proofs.assembled import Database
from unswept.adapters.sqlite.dialect import SqliteDialect
from unswept.adapters.sqlite.schema import schema_sql
from unswept.spec.theorems import catalogue
from unswept.spec.theorems.theorem import Theorem

DATABASES: Final = (Database("sqlite", SqliteDialect(), schema_sql()),)


def theorems() -> tuple[Theorem, ...]:
    """All of them; to read the SQL takes sqlglot."""
    return (
        *catalogue.THEOREMS,
        *(each for database in DATABASES for each in _about(database)),
    )


def _about(database: Database) -> Iterator[Theorem]:
    yield from births.theorems(database)
    yield from sql.theorems(database)
    yield from reads.theorems(database)
    yield from assembled.theorems(database)
