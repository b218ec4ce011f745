"""That the SQL is the core: for every row and parameters, guard and assignments do what the core's
function does to the same job, no more and no less.

A theorem draws one job and what a caller says; it runs the core's function, evaluates the guard and
the assignments on the job's row, and compares the rows that come out, column by column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from attrs import evolve, frozen

from unswept.adapters.proofs.assembled import Database
from unswept.adapters.proofs.cases import Case, Said, cases, names_in, values_of
from unswept.adapters.proofs.fragments import compiled, is_true, parsed, tested_columns
from unswept.adapters.sql import rows
from unswept.adapters.sql import statements as sql
from unswept.adapters.sql.statements import Transition
from unswept.core import job as jobs
from unswept.core import lease as rules
from unswept.core.job import Job
from unswept.core.lease import Status
from unswept.core.refusal import Refusal
from unswept.spec.theorems.theorem import Claim, Theorem, Variant

Expected = Job | None
"""What the row becomes; None: it must stay as it is."""


@frozen
class Equal:
    """One transition of the statement table, and what the core makes of the same."""

    transition: Transition
    core: Callable[[Job, Said], Expected]
    twin: tuple[str, str]
    """A piece of the guard or of the assignments, and what a broken one says instead."""


def _done(after: Job | Refusal) -> Expected:
    return None if isinstance(after, Refusal) else after


def _claim(job: Job, said: Said) -> Expected:
    return _done(jobs.claim(job, said.owner, said.claim_no, said.terms, said.now))


def _start(job: Job, said: Said) -> Expected:
    after = _started(job, said)
    return None if after is None or after.lease is job.lease else after


def _record_process(job: Job, said: Said) -> Expected:
    after = _started(job, said)
    recorded = after is not None and after.lease is job.lease and job.process is None
    return after if recorded else None


def _started(job: Job, said: Said) -> Expected:
    return _done(jobs.start(job, said.owner, said.epoch, said.process, said.terms, said.now))


def _renew(job: Job, said: Said) -> Expected:
    return _done(jobs.renew(job, said.owner, said.epoch, said.terms, said.now))


def _delay(job: Job, said: Said) -> Expected:
    return _done(jobs.delay(job, said.epoch, said.beats, said.now))


def _orphan(job: Job, said: Said) -> Expected:
    return _done(jobs.orphan(job, said.epoch, said.beats, said.now))


def _complete(job: Job, said: Said) -> Expected:
    return None if job.lease.status is Status.ORPHANED else _completed(job, said)


def _heal(job: Job, said: Said) -> Expected:
    return _completed(job, said) if job.lease.status is Status.ORPHANED else None


def _completed(job: Job, said: Said) -> Expected:
    return _done(jobs.complete(job, said.owner, said.epoch, said.outcome, said.now))


def _release(job: Job, said: Said) -> Expected:
    return _done(jobs.release(job, said.owner, said.epoch, said.not_before, said.now))


def _request_cancel(job: Job, said: Said) -> Expected:
    after = _done(jobs.request_cancel(job, said.now))
    ended = after is not None and after.lease.status is Status.CANCELED
    asked = job.lease.cancel_requested_at is not None
    return None if ended or asked else after


def _cancel(job: Job, said: Said) -> Expected:
    after = _done(jobs.request_cancel(job, said.now))
    ended = after is not None and after.lease.status is Status.CANCELED
    return after if ended else None


def _requeue(job: Job, said: Said) -> Expected:
    return _done(jobs.requeue(job, said.epoch, said.force, said.not_before, said.now))


def _settle(job: Job, said: Said) -> Expected:
    return _done(jobs.settle(job, said.epoch, said.outcome, said.now))


def _expire(job: Job, said: Said) -> Expected:
    return _done(jobs.expire(job, said.now))


def _withdraw(job: Job, said: Said) -> Expected:
    """Where it is not the caller's own queued job, the scripts ask for a cancel instead."""
    after = _done(jobs.withdraw(job, said.owner, said.now))
    failed = after is not None and after.lease.status is Status.FAILED
    return after if failed else None


def _output(job: Job, said: Said) -> Expected:
    why_not = rules.may_append(
        job.lease, said.owner, said.epoch, job.finished_at, said.late_output_ms, said.now
    )
    return job if why_not is None else None


def _evict(job: Job, said: Said) -> Expected:
    why_not = rules.may_evict(job.lease, said.epoch, job.finished_at, said.retention_ms, said.now)
    return job if why_not is None else None


EQUALS: Final = (
    Equal(sql.CLAIM, _claim, ("not_before IS NULL OR ", "")),
    Equal(sql.START, _start, ("cancel_requested_at IS NULL", "1 = 1")),
    Equal(sql.RECORD_PROCESS, _record_process, ("pid IS NULL", "1 = 1")),
    Equal(sql.RENEW, _renew, ("epoch = :epoch", "epoch <= :epoch")),
    Equal(sql.DELAY, _delay, (" AND delayed_at IS NULL", "")),
    Equal(sql.ORPHAN, _orphan, ("deadline < :now", "deadline <= :now")),
    Equal(sql.COMPLETE, _complete, ("'queued', 'running'", "'queued', 'running', 'expired'")),
    Equal(sql.HEAL, _heal, ("owner = :owner", "owner IS NOT NULL")),
    Equal(sql.RELEASE, _release, ("requeue = 'allowed'", "requeue <> 'never' OR 1 = 1")),
    Equal(sql.REQUEST_CANCEL, _request_cancel, (" AND cancel_requested_at IS NULL", "")),
    Equal(sql.CANCEL, _cancel, (" AND owner IS NULL", "")),
    Equal(sql.REQUEUE, _requeue, (" OR :force = 1", "")),
    Equal(sql.SETTLE, _settle, ("'orphaned'", "'failed'")),
    Equal(sql.EXPIRE, _expire, ("queue_deadline < :now", "queue_deadline <= :now")),
    Equal(sql.WITHDRAW, _withdraw, (" AND owner = :owner", "")),
    Equal(sql.OUTPUT, _output, ("finished_at IS NULL OR ", "")),
    Equal(sql.EVICT, _evict, ("< :now", "<= :now")),
)


def theorems(database: Database) -> Iterator[Theorem]:
    """One for each transition, its SQL read as that database reads it."""
    for equal in EQUALS:
        transition = equal.transition
        was, becomes = equal.twin
        broken = evolve(transition, guard=transition.guard.replace(was, becomes))
        yield Theorem(
            f"{database.name}_{transition.name}_is_the_core",
            f"SQL {'/'.join(transition.laws)}",
            f"The guard of {transition.name} holds exactly where the core allows it, and its "
            "assignments make the row that the core makes.",
            _claims_equal(equal, transition, database),
            Variant(
                f"in the guard of {transition.name}, `{was}` becomes `{becomes}`",
                _claims_equal(equal, broken, database),
            ),
        )


def _claims_equal(equal: Equal, transition: Transition, database: Database) -> Claim:
    guard = parsed(transition.guard, database.name)
    values = {column: parsed(value, database.name) for column, value in transition.sets}
    holds = compiled(guard, rows.JOB_COLUMNS)
    made = [
        (place, compiled(values[column], rows.JOB_COLUMNS) if column in values else None)
        for place, column in enumerate(rows.JOB_COLUMNS)
    ]
    tested = names_in(equal.core).union(*map(tested_columns, (guard, *values.values())))

    def claim(case: Case) -> bool:
        row, params = case.row, case.params
        expected = equal.core(case.job, case.said)
        if not is_true(holds, row, params):
            return expected is None
        if expected is None:
            return False
        wanted = values_of(expected)
        for place, assigned in made:
            value = row[place] if assigned is None else assigned(row, params)
            if value is not wanted[place] and value != wanted[place]:
                return False
        return True

    claim.__name__ = f"{transition.name}_is_the_core"
    claim.__annotations__["case"] = cases(tested, transition.parameters)
    return claim
