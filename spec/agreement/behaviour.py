"""Judges what a store did with one command: is it a step of the specification?

The store's part of the relation is judged here: which row each command may leave. Whether an
instance may send a sweep at all (the window, its own beats) is law L12a, which the simulator checks
where it is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from unswept.core import commands as c
from unswept.core.job import Job, OnOrphan, Terms
from unswept.core.lease import RequeueRule, Status
from unswept.spec.agreement import rules
from unswept.spec.agreement.quint import UNIT
from unswept.spec.agreement.rules import Row, Write
from unswept.spec.observations import Step


def offence_of(step: Step) -> str | None:
    """Why a simulated step is none of the specification's; None: it is one."""
    touched = {job.id for pair in step.rows for job in pair if job is not None}
    after = {job_id: step.after(job_id) for job_id in touched}
    return offence(step.now, step.command, step.jobs, after)


def offence(
    now: int, command: c.Command[Any], before: Mapping[str, Job], after: Mapping[str, Job | None]
) -> str | None:
    """Why no step of the specification leads from `before` to `after`; None: one does.

    `before` are all jobs that there were; `after` names the rows that were looked at, None for one
    that is gone; a row that it does not name is taken to be as before.
    """
    for job_id in {*_named(command), *after}:
        was = before.get(job_id)
        becomes = after.get(job_id, was)
        reason = _wrong(now, command, job_id, was, becomes)
        if reason is not None:
            return f"{type(command).__name__} at {now}: {job_id} {reason}"
    return None


def _wrong(
    now: int, command: c.Command[Any], job_id: str, was: Job | None, becomes: Job | None
) -> str | None:
    row = None if was is None else rules.row(was.lease)
    found = None if becomes is None else rules.row(becomes.lease)
    if found is None:
        ended = was is not None and bool(rules.RULES["isTerminal"](rules.status(was.lease.status)))
        gone_rightly = isinstance(command, c.Evict) and ended
        return None if was is None or gone_rightly else f"is gone; it was {was.lease.status}"
    if isinstance(command, c.Claim) and found == row:
        return None  # it took others, or nothing
    expected = row
    for write in _writes(command, job_id, was):
        expected = rules.after(expected, write, now)
    return None if found == expected else _difference(row, expected, found)


def _difference(row: Row | None, expected: Row | None, found: Row) -> str:
    if row is None or expected is None:
        return f"was born as {dict(found)}, expected {expected and dict(expected)}"
    fields = [name for name in expected if expected[name] != found[name]]
    told = (f"{name} is {_said(found[name])}, not {_said(expected[name])}" for name in fields)
    return f"was {_said(row['status'])}, epoch {row['epoch']}; now its " + ", its ".join(told)


def _said(value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    tag, inner = value
    return inner if tag == "Some" else tag.lower()


def _named(command: c.Command[Any]) -> Iterator[str]:
    """The jobs that a command names."""
    if isinstance(command, c.Heartbeat):
        yield from (hold.job_id for hold in command.holds)
    elif isinstance(command, c.Sweep):
        yield from (target.job_id for target in command.targets)
    elif type(command) in _ONE:
        yield command.job_id  # type: ignore[attr-defined]


def _writes(command: c.Command[Any], job_id: str, job: Job | None) -> list[Write]:
    """What a command asks about this job, in the specification's words."""
    if isinstance(command, c.Claim):
        return [_claim(command)]
    if isinstance(command, c.Heartbeat):
        epochs = [hold.epoch for hold in command.holds if hold.job_id == job_id]
        return [_renew(command, epoch, job) for epoch in epochs]
    if isinstance(command, c.Sweep):
        targets = [target for target in command.targets if target.job_id == job_id]
        return [write for target in targets for write in _sweep(target, job)]
    translate = _ONE.get(type(command))
    named = getattr(command, "job_id", None) == job_id
    return [translate(command, job)] if translate is not None and named else []


def _stamping(owner: str, epoch: int, terms: Terms, job: Job | None) -> dict[str, Any]:
    ttl = terms.lease_ttl_ms if job is None else terms.ttl_ms(job.transport)
    return {"owner": owner, "epoch": epoch, "ttl": ttl, "confirm": terms.confirm_ms}


def _admit(command: c.Admit, job: Job | None) -> Write:
    terms = command.terms
    stamp = {"ttl": terms.ttl_ms(command.transport), "confirm": terms.confirm_ms}
    again = command.requeue is RequeueRule.ALLOWED
    return "Admit", {"owner": command.owner, **stamp, "requeueable": again}


def _enqueue(command: c.Enqueue, job: Job | None) -> Write:
    return "Enqueue", {"requeueable": command.requeue is RequeueRule.ALLOWED}


def _claim(command: c.Claim) -> Write:
    terms = command.terms
    stamp = {"ttl": terms.first_beat_ttl_ms, "confirm": terms.confirm_ms}
    return "Claim", {"owner": command.owner, **stamp}


def _start(command: c.Start, job: Job | None) -> Write:
    return "Start", _stamping(command.owner, command.epoch, command.terms, job)


def _renew(command: c.Heartbeat, epoch: int, job: Job | None) -> Write:
    return "Renew", _stamping(command.instance, epoch, command.terms, job)


def _delay(command: c.Delay, job: Job | None) -> Write:
    return "Delay", {"epoch": command.epoch, "beats": command.beats}


def _sweep(target: c.Target, job: Job | None) -> Iterator[Write]:
    """An orphan, and in the same write what the job's policy does with it."""
    yield "Orphan", {"epoch": target.epoch, "beats": target.beats}
    if job is None or job.on_orphan in (OnOrphan.MARK, OnOrphan.HOLD):
        return
    spent = job.max_attempts is not None and job.attempts >= job.max_attempts
    if job.on_orphan is OnOrphan.REQUEUE and not spent:
        yield "Requeue", {"epoch": target.epoch, "force": False}
    else:
        yield "Settle", {"epoch": target.epoch, "outcome": rules.status(Status.FAILED)}


def _complete(command: c.Complete, job: Job | None) -> Write:
    outcome = rules.status(command.outcome)
    return "Complete", {"owner": command.owner, "epoch": command.epoch, "outcome": outcome}


def _release(command: c.Release, job: Job | None) -> Write:
    return "Release", {"owner": command.owner, "epoch": command.epoch}


def _cancel(command: c.RequestCancel, job: Job | None) -> Write:
    return "Cancel", UNIT


def _requeue(command: c.Requeue, job: Job | None) -> Write:
    return "Requeue", {"epoch": command.epoch, "force": command.force}


def _settle(command: c.Settle, job: Job | None) -> Write:
    return "Settle", {"epoch": command.epoch, "outcome": rules.status(command.outcome)}


def _expire(command: c.ExpireQueued, job: Job | None) -> Write:
    deadline = None if job is None else job.queue_deadline
    return "Expire", {"queueDeadline": rules.option(deadline)}


def _withdraw(command: c.Withdraw, job: Job | None) -> Write:
    return "Withdraw", {"owner": command.owner}


_ONE: Final[Mapping[type, Callable[[Any, Job | None], Write]]] = MappingProxyType(
    {
        c.Admit: _admit,
        c.Enqueue: _enqueue,
        c.Start: _start,
        c.Delay: _delay,
        c.Complete: _complete,
        c.Release: _release,
        c.RequestCancel: _cancel,
        c.Requeue: _requeue,
        c.Settle: _settle,
        c.ExpireQueued: _expire,
        c.Withdraw: _withdraw,
    }
)
"""The commands that are about one job."""
