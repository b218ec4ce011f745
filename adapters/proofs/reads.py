"""That the SQL looks where the core looks: for every row, a statement that names suspects, or jobs
to claim, to evict or to expire, takes the row exactly where the core would name the job.

The order, the limit and the locks of these statements are not part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from attrs import frozen

from unswept.adapters.proofs.assembled import Database, statement
from unswept.adapters.proofs.cases import Case, Said, cases, names_in
from unswept.adapters.proofs.fragments import compiled, is_true, parameters_of, tested_columns
from unswept.adapters.sql import rows
from unswept.adapters.sql.queries import Queries
from unswept.core import lease as rules
from unswept.core.job import Job
from unswept.core.lease import Status
from unswept.core.world import may_claim
from unswept.spec.theorems.theorem import Claim, Theorem, Variant


@frozen
class Look:
    """One statement, and which jobs the core would name."""

    name: str
    law: str
    core: Callable[[Job, Said], bool]
    twin: tuple[str, str]
    """A piece of the statement, and what a broken one says instead."""
    given: Callable[[Job], bool] = lambda job: True
    """What the schema's CHECKs say of every row, where the statement relies on it."""


def _suspected(job: Job, said: Said) -> bool:
    return rules.is_suspect(job.lease, said.now) and bool(job.id > said.after)


def _claimable(job: Job, said: Said) -> bool:
    waits = _waits(job) and job.labels == said.label_set
    return waits and may_claim(job, said.partition, said.now)


def _evictable(job: Job, said: Said) -> bool:
    epoch, retention_ms = job.lease.epoch, said.retention_ms
    return rules.may_evict(job.lease, epoch, job.finished_at, retention_ms, said.now) is None


def _finished_if_over(job: Job) -> bool:
    return (job.finished_at is not None) == (job.lease.status in rules.TERMINAL)


def _expirable(job: Job, said: Said) -> bool:
    return _waits(job) and job.queue_deadline is not None and job.queue_deadline < said.now


def _waits(job: Job) -> bool:
    return job.lease.status is Status.QUEUED and job.lease.owner is None


LOOKS: Final = (
    Look("suspects", "L2", _suspected, ("deadline <", "deadline <=")),
    Look("candidates", "L7", _claimable, (" OR not_before", " AND not_before")),
    Look("heads", "L7", _claimable, ("not_before <=", "not_before <")),
    Look("evictable", "L14", _evictable, ("finished_at <", "finished_at <="), _finished_if_over),
    Look("expirable", "L4", _expirable, ("queue_deadline <", "queue_deadline <=")),
)


def theorems(database: Database) -> Iterator[Theorem]:
    """One for each look."""
    queries = Queries(database.dialect)
    for look in LOOKS:
        sql: str = getattr(queries, look.name)
        was, becomes = look.twin
        yield Theorem(
            f"{database.name}_{look.name}_are_the_cores",
            f"SQL {look.law}",
            f"The statement `{look.name}` takes a row exactly where the core would name its job.",
            _claims_equal(look, sql, database),
            Variant(
                f"in the statement, `{was}` becomes `{becomes}`",
                _claims_equal(look, sql.replace(was, becomes, 1), database),
            ),
        )


def _claims_equal(look: Look, sql: str, database: Database) -> Claim:
    where = statement(sql, database).args["where"].this
    takes = compiled(where, rows.JOB_COLUMNS)
    tested = names_in(look.core).union(tested_columns(where))

    def claim(case: Case) -> bool | None:
        if not look.given(case.job):
            return None
        return is_true(takes, case.row, case.params) == look.core(case.job, case.said)

    claim.__name__ = f"{look.name}_are_the_cores"
    claim.__annotations__["case"] = cases(tested, parameters_of(where))
    return claim
