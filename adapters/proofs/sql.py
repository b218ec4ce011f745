"""That the SQL is the core: for every row and parameters, guard and assignments do what the core's
function does to the same job, no more and no less.

A theorem draws one job and what a caller says; it runs the core's function, evaluates the guard and
the assignments on the job's row, and compares the rows that come out. A column that either side may
test is drawn with every value, NULL included. One that both only carry along stands as a mark of
its own: a comparison with a mark, or a sum, would fail the proof.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from inspect import Parameter, Signature
from types import FunctionType, SimpleNamespace
from typing import Any, Final

from attrs import evolve, fields, frozen

from unswept.adapters.proofs.fragments import compiled, is_true, parsed, tested_columns
from unswept.adapters.sql import rows
from unswept.adapters.sql import statements as sql
from unswept.adapters.sql.statements import Transition
from unswept.core import job as jobs
from unswept.core import lease as rules
from unswept.core.job import Job, Process, Terms, Transport
from unswept.core.lease import Status
from unswept.core.records import changed
from unswept.core.refusal import Refusal
from unswept.spec.theorems.drawn import lease_of, unchecked
from unswept.spec.theorems.theorem import Claim, Theorem, Variant

Said = SimpleNamespace
"""What a caller says, as the core's functions take it: what the transition's parameters say."""
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


def theorems(database: str) -> Iterator[Theorem]:
    """One for each transition, its SQL read as that database reads it."""
    for equal in EQUALS:
        transition = equal.transition
        was, becomes = equal.twin
        broken = evolve(transition, guard=transition.guard.replace(was, becomes))
        yield Theorem(
            f"{database}_{transition.name}_is_the_core",
            f"SQL {'/'.join(transition.laws)}",
            f"The guard of {transition.name} holds exactly where the core allows it, and its "
            "assignments make the row that the core makes.",
            _claims_equal(equal, transition, database),
            Variant(
                f"in the guard of {transition.name}, `{was}` becomes `{becomes}`",
                _claims_equal(equal, broken, database),
            ),
        )


def _claims_equal(equal: Equal, transition: Transition, database: str) -> Claim:
    guard = parsed(transition.guard, database)
    values = {column: parsed(value, database) for column, value in transition.sets}
    holds = compiled(guard)
    assigned = {column: compiled(value) for column, value in values.items()}
    tested = names_in(equal.core).union(*map(tested_columns, (guard, *values.values())))

    def claim(**drawn: Any) -> bool:
        job, said = _job(drawn), _said(drawn)
        row, params = row_of(job), _params(said)
        expected = equal.core(job, said)
        if not is_true(holds, row, params):
            return expected is None
        if expected is None:
            return False
        made = {**row, **{name: value(row, params) for name, value in assigned.items()}}
        wanted = row_of(expected)
        return all(made[name] is wanted[name] or made[name] == wanted[name] for name in wanted)

    claim.__name__ = f"{transition.name}_is_the_core"
    claim.__signature__ = _signature(tested, transition)  # type: ignore[attr-defined]
    return claim


def row_of(job: Job) -> dict[str, Any]:
    """The job's row, by column: the inverse of `rows.job_of`."""
    row: dict[str, Any] = {name: getattr(job.lease, name) for name in rows.LEASE_COLUMNS}
    row.update({name: getattr(job, name) for name in rows.JOB_COLUMNS if name in _OF_THE_JOB})
    return {**row, **rows.process_params(job.process)}


_OF_THE_JOB: Final = frozenset(field.name for field in fields(Job)) - {"lease", "process"}


# What is drawn ----------------------------------------------------------------------------------


def names_in(function: Callable[..., Any]) -> frozenset[str]:
    """Every name that a function and the core's functions under it use: the columns that they can
    test are among them."""
    seen: set[FunctionType] = set()
    waiting = [function]
    names: set[str] = set()
    while waiting:
        each = waiting.pop()
        if not isinstance(each, FunctionType) or each in seen:
            continue
        seen.add(each)
        names.update(each.__code__.co_names)
        homes = (each.__globals__, vars(jobs), vars(rules))
        waiting += [home[name] for name in each.__code__.co_names for home in homes if name in home]
    return frozenset(names)


class Carried:
    """What stands in a column that is only carried along."""

    def __init__(self, column: str) -> None:
        self.column = column

    def __repr__(self) -> str:
        return "carried along"


_CARRIED: Final = {name: Carried(name) for name in rows.JOB_COLUMNS}
_WHOLE: Final = ("owner", "epoch", "beats", "deadline")
"""Drawn in any case, with the status: nothing that changes a lease could do without them."""
_SHAPE: Final = {
    "cancel_requested_at": "asked",
    "delayed_at": "delayed",
    "requeue": "requeueable",
    "ttl_ms": "",
    "confirm_ms": "",
}
"""The columns of a lease that may be carried, and what says whether they are NULL."""
_NUMBERS: Final = frozenset({"admitted_at", "attempts", "label_set", "priority"})


def _signature(tested: Collection[str], transition: Transition) -> Signature:
    """What is drawn: `of_` before a column of the row, and the bare name of a parameter."""
    drawn: dict[str, Any] = {"status": Status, "owned": bool}
    drawn.update({f"of_{name}": int for name in _WHOLE})
    for column, shape in _SHAPE.items():
        if column in tested:
            drawn.update({name: bool for name in (shape,) if name})
            drawn[f"of_{column}"] = int
    for column in sorted(_OF_THE_JOB & set(tested)):
        if column == "transport":
            drawn["of_transport"] = Transport
        else:
            drawn[f"of_{column}"] = int if column in _NUMBERS else int | None
    if not {"process", *rows.PROCESS_COLUMNS}.isdisjoint(tested):
        drawn["has_process"] = bool
    for name in sorted(transition.parameters):
        drawn[name] = bool if name == "force" else int
    if "pid" in drawn:
        drawn["names_process"] = bool
    return Signature(
        [Parameter(name, Parameter.KEYWORD_ONLY, annotation=of) for name, of in drawn.items()]
    )


def _job(drawn: dict[str, Any]) -> Job:
    def of(column: str) -> Any:
        return drawn.get(f"of_{column}", _CARRIED[column])

    lease = lease_of(
        drawn["status"],
        drawn["owned"],
        *(of(name) for name in _WHOLE),
        drawn.get("asked", True),
        of("cancel_requested_at"),
        drawn.get("delayed", True),
        of("delayed_at"),
        of("ttl_ms"),
        of("confirm_ms"),
        drawn.get("requeueable", True),
    )
    if "requeueable" not in drawn:
        lease = changed(lease, requeue=of("requeue"))
    pid, start, boot_id = (of(name) for name in rows.PROCESS_COLUMNS)
    process = unchecked(Process, pid=pid, start=start, boot_id=boot_id)
    return Job(
        lease=lease,
        process=process if drawn.get("has_process", True) else None,
        **{name: of(name) for name in _OF_THE_JOB},
    )


def _said(drawn: dict[str, Any]) -> Said:
    """The drawn parameters, and what the core takes in their place."""
    said = Said(**{name: value for name, value in drawn.items() if not name.startswith("of_")})
    said.terms = unchecked(Terms, **{name: drawn[name] for name in _TERMS if name in drawn})
    if "pid" in drawn:
        pid, start, boot_id = (drawn[name] for name in rows.PROCESS_COLUMNS)
        process = unchecked(Process, pid=pid, start=start, boot_id=boot_id)
        said.process = process if said.names_process else None
    if "outcome" in drawn:
        said.outcome = _OUTCOMES[0 if drawn["outcome"] == 0 else 1 if drawn["outcome"] > 0 else 2]
    return said


_TERMS: Final = tuple(field.name for field in fields(Terms))
_OUTCOMES: Final = (Status.FAILED, Status.CANCELED, Status.COMPLETED)


def _params(said: Said) -> dict[str, Any]:
    """A statement's parameters, made as the scripts make them."""
    params = dict(vars(said))
    if "pid" in params:
        params.update(rows.process_params(said.process))
    if "force" in params:
        params["force"] = int(said.force)
    return params
