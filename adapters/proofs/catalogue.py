"""Every theorem there is: those about the core, and those that say that the SQL is the core."""

from __future__ import annotations

from unswept.adapters.proofs import sql
from unswept.spec.theorems import catalogue
from unswept.spec.theorems.theorem import Theorem


def theorems() -> tuple[Theorem, ...]:
    """All of them; reading the SQL needs sqlglot."""
    return (*catalogue.THEOREMS, *sql.theorems("sqlite"))
