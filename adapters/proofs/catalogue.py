"""Every theorem there is: those about the core, and those that say that the SQL is the core."""

from __future__ import annotations

from typing import Final

from unswept.adapters.proofs import assembled, sql
from unswept.adapters.proofs.assembled import Database
from unswept.adapters.sqlite.dialect import SqliteDialect
from unswept.spec.theorems import catalogue
from unswept.spec.theorems.theorem import Theorem

DATABASES: Final = (Database("sqlite", SqliteDialect()),)


def theorems() -> tuple[Theorem, ...]:
    """All of them; to read the SQL takes sqlglot."""
    return (
        *catalogue.THEOREMS,
        *(each for database in DATABASES for each in sql.theorems(database.name)),
        *(each for database in DATABASES for each in assembled.theorems(database)),
    )
