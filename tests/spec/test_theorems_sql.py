"""The SQL that the theorems evaluate means what a database says that it means."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from unswept.adapters.proofs import fragments
from unswept.adapters.proofs.assembled import statement
from unswept.adapters.proofs.catalogue import databases, theorems
from unswept.adapters.proofs.sql import EQUALS
from unswept.adapters.sql.queries import Queries
from unswept.adapters.sql.statements import TRANSITIONS
from unswept.core.errors import MisuseError
from unswept.spec.theorems.theorem import Reading, Variant, by_name

pytest.importorskip("sqlglot")

EXPRESSIONS = (
    "a = b",
    "a <> b",
    "a < b",
    "a <= b",
    "a > b",
    "a >= b",
    "a + b",
    "a - b",
    "a IS NULL",
    "a IS NOT NULL",
    "NOT a = b",
    "a = 1 AND b = 1",
    "a = 1 OR b = 1",
    "NOT (a = 1 OR b = 1)",
    "a IN (0, 1)",
    "a IN (0, b)",
    "a NOT IN (0, b)",
    "COALESCE(a, b, 7)",
    "CASE WHEN a = b THEN 1 WHEN a < b THEN 2 ELSE a END",
    "CASE WHEN a < b THEN a END",
    "(a IS NULL OR a <= :p) AND b = :p",
    "a = 1 OR b = 1 AND :p = 1",
)


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        yield connection


@pytest.mark.parametrize("sql", EXPRESSIONS)
def test_an_expression_has_the_value_that_the_database_gives(
    sql: str, database: sqlite3.Connection
) -> None:
    """For every choice of NULL, 0, 1 and 2 for two columns and a parameter."""
    term = fragments.compiled(fragments.parsed(sql, "sqlite"), ("a", "b"))
    for a, b, p in itertools.product((None, 0, 1, 2), repeat=3):
        values = {"a": a, "b": b, "p": p}
        (wanted,) = database.execute(
            f"SELECT {sql} FROM (SELECT :a AS a, :b AS b)", values
        ).fetchone()
        found = term((a, b), values)
        assert found == wanted, values
        assert (found is None) == (wanted is None), values


@pytest.mark.parametrize("sql", ["a % 2", "max(a, b)", "a IN (SELECT 1)", "a LIKE 'x'", "j.a"])
def test_what_cannot_be_read_is_refused(sql: str) -> None:
    """An operator that nobody has taught it is an error, never a guess."""
    with pytest.raises(MisuseError, match="no proof can read"):
        fragments.compiled(fragments.parsed(sql, "sqlite"), ("a", "b"))


def test_every_transition_has_its_theorem() -> None:
    """A new entry of the statement table is proved, or noticed."""
    assert [equal.transition.name for equal in EQUALS] == list(TRANSITIONS)


def test_every_twin_of_the_sql_is_another_text() -> None:
    """What a twin replaces stands in the guard or the statement."""
    for equal in EQUALS:
        was, becomes = equal.twin
        assert was in equal.transition.guard
        assert was != becomes


def test_every_name_is_its_own() -> None:
    """Also across databases."""
    assert len(by_name(theorems())) == len(theorems())


def test_a_statement_with_a_wrong_row_is_found() -> None:
    """A statement that lost its guard, or another that writes to the jobs, is an offence."""
    readings = [each for each in theorems() if isinstance(each.claim, Reading)]
    assert len(readings) == 2 * len(databases())
    for each in readings:
        assert isinstance(each.claim, Reading)
        assert isinstance(each.twin, Variant)
        assert isinstance(each.twin.claim, Reading)
        assert each.claim.offence() is None
        assert each.twin.claim.offence() is not None


def test_every_statement_can_be_read() -> None:
    """The search for statements that write to the jobs understands each of them."""
    for database in databases():
        for value in vars(Queries(database.dialect)).values():
            if isinstance(value, str) and " " in value:
                assert statement(value, database) is not None


@pytest.mark.parametrize("reads", ["sqlite", "postgres"])
def test_is_not_null_is_read_as_what_it_says(reads: str) -> None:
    """Each database's reader makes another tree of it; neither may lose the NOT."""
    tree = fragments.parsed("owner IS NOT NULL", reads)
    condition = fragments.compiled(tree, ("owner",))
    assert fragments.is_true(condition, (0,), {})
    assert not fragments.is_true(condition, (None,), {})
