"""That a job is born in SQL as in the core: what is inserted, with the schema's defaults for what
is not named, is the row of the job that the core makes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from attrs import frozen

from unswept.adapters.proofs.assembled import Database
from unswept.adapters.proofs.cases import Case, Said, born, values_of
from unswept.adapters.proofs.fragments import Term, compiled, parsed
from unswept.adapters.sql import rows
from unswept.adapters.sql import statements as sql
from unswept.adapters.sql.statements import Assignment, Birth
from unswept.core import job as jobs
from unswept.core.errors import MisuseError
from unswept.core.job import Job
from unswept.spec.theorems.theorem import Claim, Theorem, Variant


@frozen
class Born:
    """One birth of the statement table, and the core's."""

    birth: Birth
    core: Callable[[Said], Job]
    twin: Assignment
    """A value that a broken list gives instead."""


def _admitted(said: Said) -> Job:
    return jobs.admit(
        said.id,
        said.owner,
        said.transport,
        said.requeue,
        said.on_orphan,
        said.max_attempts,
        said.terms,
        said.now,
    )


def _enqueued(said: Said) -> Job:
    return jobs.enqueue(
        said.id,
        said.transport,
        said.requeue,
        said.on_orphan,
        said.max_attempts,
        said.partition,
        said.priority,
        said.queue_deadline,
        said.not_before,
        said.label_set,
        said.now,
    )


BORN: Final = (
    Born(sql.ADMIT, _admitted, ("deadline", ":now + :lease_ttl_ms")),
    Born(sql.ENQUEUE, _enqueued, ("not_before", ":queue_deadline")),
)


def theorems(database: Database) -> Iterator[Theorem]:
    """One for each birth."""
    for each in BORN:
        column, value = each.twin
        broken = tuple((name, value if name == column else old) for name, old in each.birth.sets)
        yield Theorem(
            f"{database.name}_{each.birth.name}_is_the_core",
            f"SQL {'/'.join(each.birth.laws)}",
            f"The row that {each.birth.name} inserts is the row of the job that the core makes.",
            _claims_equal(each, each.birth.sets, database),
            Variant(
                f"{each.birth.name} gives `{value}` as {column}",
                _claims_equal(each, broken, database),
            ),
        )


def _claims_equal(each: Born, sets: tuple[Assignment, ...], database: Database) -> Claim:
    given: dict[str, Term] = {
        column: compiled(parsed(value, database.name), ()) for column, value in sets
    }
    defaults = _defaults(database)
    made = [given.get(column, defaults[column]) for column in rows.JOB_COLUMNS]

    def claim(case: Case) -> bool:
        wanted = values_of(each.core(case.said))
        for place, value in enumerate(made):
            found = value((), case.params)
            if found is not wanted[place] and found != wanted[place]:
                return False
        return True

    claim.__name__ = f"{each.birth.name}_is_the_core"
    claim.__annotations__["case"] = born(each.birth.parameters)
    return claim


def _defaults(database: Database) -> Mapping[str, Term]:
    """What the schema gives a column that is not named; the labels of a set are in its place."""
    from sqlglot import expressions as e
    from sqlglot import parse_one

    table = database.dialect.table("jobs")
    created = re.search(rf"CREATE TABLE {re.escape(table)} \(.*?;", database.schema, re.DOTALL)
    if created is None:
        raise MisuseError(f"the schema of {database.name} makes no table {table}")
    columns = parse_one(created[0], read=database.name).find_all(e.ColumnDef)
    defaults = {column.name: _default(column) for column in columns}
    return defaults | {"label_set": _labels_of(defaults["label_set"])}


def _labels_of(number: Term) -> Term:
    """The labels of the set with this number, where that is the empty one."""

    def labels(where: Any, params: Any) -> Any:
        found = number(where, params)
        return () if found == rows.NO_LABELS else found

    return labels


def _default(column: Any) -> Term:
    from sqlglot import expressions as e

    for constraint in column.constraints:
        if isinstance(constraint.kind, e.DefaultColumnConstraint):
            return compiled(constraint.kind.this, ())
    return compiled(e.Null(), ())
