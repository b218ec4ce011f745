"""That every statement that writes a job is put together from the fragments that are proved.

A proof of a guard is worth nothing if the statement that is sent does not contain it, or applies it
to another row than the one that it changes. The statements are read as the database reads them and
compared as trees, so that neither spaces nor an operator's precedence can hide a difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attrs import frozen

from unswept.adapters.proofs.fragments import parsed
from unswept.adapters.sql.dialect import Dialect
from unswept.adapters.sql.queries import Queries, over_holds
from unswept.adapters.sql.statements import (
    BIRTHS,
    EVICT,
    OUTPUT,
    RENEW,
    TRANSITIONS,
    Assignment,
)
from unswept.spec.theorems.theorem import Reading, Theorem, Variant

if TYPE_CHECKING:
    from sqlglot.expressions import Expression


@frozen
class Database:
    """One database: its name, which is also how sqlglot calls its SQL, its dialect, its schema."""

    name: str
    dialect: Dialect
    schema: str


def theorems(database: Database) -> Iterator[Theorem]:
    """One for the statements that write, one for all the others."""
    queries = Queries(database.dialect)
    broken = Queries(database.dialect)
    broken.renew_holds = broken.renew_holds.replace(" AND (", " OR (")
    careless = Queries(database.dialect)
    careless.see_instance = f"DELETE FROM {database.dialect.table('jobs')}"
    count = f"{len(_texts(queries))} statements"
    yield Theorem(
        f"{database.name}_statements_contain_their_fragments",
        "SQL",
        "Every statement that writes a job has the transition's guard on the very row that it "
        "changes, and the transition's assignments.",
        Reading(lambda: next(_lacking(queries, database), None), count),
        Variant(
            "the renewal statement's guard is joined with OR",
            Reading(lambda: next(_lacking(broken, database), None), count),
        ),
    )
    yield Theorem(
        f"{database.name}_no_other_statement_writes_a_job",
        "SQL",
        "No other statement writes to the table of jobs.",
        Reading(lambda: next(_writing(queries, database), None), count),
        Variant(
            "the statement that sees an instance deletes jobs",
            Reading(lambda: next(_writing(careless, database), None), count),
        ),
    )


def _lacking(queries: Queries, database: Database) -> Iterator[str]:
    """What is wrong with the statements that are to be made of fragments."""
    for name, transition in TRANSITIONS.items():
        if transition.sets:
            sql = queries.update[name]
            yield from _compared(
                f"update {name}", sql, database, ":id", transition.guard, transition.sets
            )
    renew = over_holds(RENEW, database.dialect.holds_now)
    yield from _compared(
        "renew_holds",
        queries.renew_holds,
        database,
        "hold_id",
        renew.guard,
        renew.sets,
    )
    yield from _compared("evict", queries.evict, database, ":id", EVICT.guard, ())
    yield from _compared("append_chunk", queries.append_chunk, database, ":id", OUTPUT.guard, ())
    for name, birth in BIRTHS.items():
        yield from _compared_birth(name, queries.insert[name], database, birth.sets)


def _compared(
    name: str,
    sql: str,
    database: Database,
    key: str,
    guard: str,
    sets: tuple[Assignment, ...],
) -> Iterator[str]:
    from sqlglot import expressions as e

    tree = statement(sql, database)
    rows = tree.find(e.Select) if isinstance(tree, e.Insert) else tree
    where = None if rows is None else rows.args.get("where")
    if rows is None or where is None:
        yield f"{name} has no WHERE"
        return
    target = rows.args["from_"].this if isinstance(rows, e.Select) else rows.this
    if _said(target) != database.dialect.table("jobs"):
        yield f"{name} is not about the table of jobs but {_said(target)}"
    if _said(where.this) != _said(parsed(f"id = {key} AND ({guard})", database.name)):
        yield f"{name} says {_said(where.this)}, its guard is {guard}"
    found = [_said(each) for each in tree.expressions] if isinstance(tree, e.Update) else []
    wanted = [_said(parsed(f"{column} = {value}", database.name)) for column, value in sets]
    if found != wanted:
        yield f"{name} assigns {found}, its list is {wanted}"


def _compared_birth(
    name: str, sql: str, database: Database, sets: tuple[Assignment, ...]
) -> Iterator[str]:
    tree = statement(sql, database)
    table, values = tree.this, tree.args["expression"]
    if _said(table.this) != database.dialect.table("jobs"):
        yield f"{name} is not about the table of jobs but {_said(table.this)}"
    columns = [column.name for column in table.expressions]
    (row,) = values.expressions
    found = dict(zip(columns, map(_said, row.expressions), strict=True))
    wanted = {column: _said(parsed(value, database.name)) for column, value in sets}
    if found != wanted:
        yield f"{name} inserts {found}, its list is {wanted}"


def _writing(queries: Queries, database: Database) -> Iterator[str]:
    """The statements that write to the table of jobs and are not made of fragments."""
    from sqlglot import expressions as e

    made = {*queries.update.values(), *queries.insert.values(), queries.renew_holds, queries.evict}
    for sql in _texts(queries):
        for write in statement(sql, database).find_all(e.Insert, e.Update, e.Delete, e.Merge):
            target = write.this.this if isinstance(write.this, e.Schema) else write.this
            if sql not in made and _said(target) == database.dialect.table("jobs"):
                yield f"another statement writes to the table of jobs: {sql}"


def _texts(queries: Queries) -> list[str]:
    """Every statement of a dialect."""
    texts: list[str] = []
    for value in vars(queries).values():
        if isinstance(value, Mapping):
            texts += value.values()
        elif isinstance(value, str) and " " in value:
            texts.append(value)
    return texts


def statement(sql: str, database: Database) -> Expression:
    """The tree of a statement."""
    from sqlglot import parse_one

    tree: Any = parse_one(sql, read=database.name)
    return tree  # type: ignore[no-any-return]


def _said(tree: Expression) -> str:
    """A tree as text, in one style: a parameter is `:name` whatever the driver's style is."""
    from sqlglot import expressions as e

    def plain(node: Expression) -> Expression:
        return e.Placeholder(this=node.name) if isinstance(node, e.Placeholder) else node

    return tree.transform(plain).sql()
