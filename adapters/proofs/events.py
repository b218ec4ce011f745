"""That the SQL removes, and looks for, the events of exactly the jobs whose events may go by the
core: read from the very statements, over the event of an eviction and whatever is compared with it.

Whether one of the job's events is a dead letter is a subselect, and not part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from unswept.adapters.proofs.assembled import Database, statement
from unswept.adapters.proofs.fragments import Term, compiled, is_true
from unswept.adapters.sql.queries import Queries
from unswept.core import outbox
from unswept.core.lease import Kind
from unswept.core.units import Ms, StoreMs
from unswept.spec.theorems.theorem import Claim, Theorem, Variant

if TYPE_CHECKING:
    from sqlglot.expressions import Expression

_COLUMNS: Final = ("job_id", "kind", "seq", "at")


def theorems(database: Database) -> Iterator[Theorem]:
    """One for the look, one for the removal."""
    queries = Queries(database.dialect)
    for name, where, was, becomes in (
        ("past_events", _looked_at, "seq <= ", "seq < "),
        ("forget_events", _removed_after, "< :now", "<= :now"),
    ):
        sql: str = getattr(queries, name)
        # Parameters are written in the driver's own style.
        driver_was, driver_becomes = (database.dialect.text(text) for text in (was, becomes))
        yield Theorem(
            f"{database.name}_{name}_is_the_core",
            "SQL F5",
            f"The statement `{name}` takes the event of an eviction exactly where the core lets "
            "the job's events go.",
            _claims_equal(name, where, sql, database),
            Variant(
                f"in the statement, `{was}` becomes `{becomes}`",
                _claims_equal(name, where, sql.replace(driver_was, driver_becomes), database),
            ),
        )


def _looked_at(tree: Expression) -> Iterator[Expression]:
    """The conditions of the look, but for its subselect."""
    from sqlglot import expressions as e

    where: Any = tree.args["where"].this
    return (each for each in where.flatten() if not each.find(e.Select))


def _removed_after(tree: Expression) -> Iterator[Expression]:
    """The conditions on the event after which the job's events are removed."""
    from sqlglot import expressions as e

    exists = next(each for each in tree.args["where"].this.flatten() if isinstance(each, e.Exists))
    conditions: Iterator[Expression] = exists.this.args["where"].this.flatten()
    return conditions


def _claims_equal(
    name: str,
    where: Callable[[Expression], Iterator[Expression]],
    sql: str,
    database: Database,
) -> Claim:
    conditions: list[Term] = [compiled(each, _COLUMNS) for each in where(statement(sql, database))]

    def claim(
        kind: Kind,
        number: int,
        at: StoreMs,
        newest: int,
        behind: int,
        event_retention_ms: Ms,
        now: StoreMs,
    ) -> bool:
        params = {
            "id": 0,
            "newest": newest,
            "behind": behind,
            "event_retention_ms": event_retention_ms,
            "now": now,
        }
        row = (0, kind, number, at)
        taken = all(is_true(condition, row, params) for condition in conditions)
        may = outbox.may_forget(number, at, newest, behind, False, event_retention_ms, now)
        return taken == (kind is Kind.EVICT and may)

    claim.__name__ = f"{name}_is_the_core"
    return claim
