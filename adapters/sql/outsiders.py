"""The scripts of what anybody may say about a job: cancel, requeue, settle, expire."""

from __future__ import annotations

from unswept.adapters.sql.common import (
    absent,
    bear,
    carry_out,
    locked_job,
    read_job,
    refused,
    repeated,
    why,
)
from unswept.adapters.sql.queries import Queries
from unswept.adapters.sql.rows import Before
from unswept.adapters.sql.statements import (
    CANCEL,
    EXPIRE,
    REQUEST_CANCEL,
    REQUEUE,
    SETTLE,
    Transition,
)
from unswept.adapters.sql.steps import Script, Statement
from unswept.core import commands as c
from unswept.core import job as jobs
from unswept.core import replies as r
from unswept.core.job import Job
from unswept.core.lease import RequeueRule, Status
from unswept.core.refusal import Refusal
from unswept.core.units import StoreMs


def request_cancel(
    q: Queries, cmd: c.RequestCancel
) -> Script[r.Accepted | r.Withdrawn | r.Refused]:
    """Asks the owner to stop; cancels nobody's job at once; where the job has not come yet, its id
    is spent. (L6, L7)"""
    yield from bear(q, cmd.job_id, None)
    before, now = yield from locked_job(q, cmd.job_id)
    if isinstance(before, Refusal):
        return r.Withdrawn(now, cmd.job_id)
    if before.status == Status.CANCELED:
        return repeated((yield from read_job(q, before.id)), now)
    return (yield from asked_to_end(q, before, now, None))


def asked_to_end(q: Queries, before: Before, now: StoreMs, actor: str | None) -> Script[c.Outcome]:
    """A cancel request by whoever: it ends the job, or asks its owner, or asked before. (L7)"""
    transition = CANCEL if before.nobodys else REQUEST_CANCEL
    done = yield from carry_out(q, transition, before, now, actor, {})
    if done is not None:
        return done
    job = yield from read_job(q, before.id)
    after = jobs.request_cancel(job, now)
    if after == job:
        return repeated(job, now)
    return refused(why(after, transition, job.id), job, now)


def requeue(q: Queries, cmd: c.Requeue) -> Script[c.Outcome]:
    """Puts an orphan back into the queue; its event says where `never` was overridden."""
    before, now = yield from locked_job(q, cmd.job_id)
    if isinstance(before, Refusal):
        return absent(before, now)
    done = yield from carry_out(
        q,
        REQUEUE,
        before,
        now,
        cmd.actor,
        {"epoch": cmd.epoch, "force": int(cmd.force), "not_before": cmd.not_before},
        forced=before.requeue == RequeueRule.NEVER,
    )
    if done is not None:
        return done
    job = yield from read_job(q, before.id)
    after = jobs.requeue(job, cmd.epoch, cmd.force, cmd.not_before, now)
    return (yield from moved_on(q, REQUEUE, cmd.epoch, job, after, now))


def settle(q: Queries, cmd: c.Settle) -> Script[c.Outcome]:
    """Ends an orphan by authority."""
    before, now = yield from locked_job(q, cmd.job_id)
    if isinstance(before, Refusal):
        return absent(before, now)
    seen = {"epoch": cmd.epoch, "outcome": cmd.outcome.value}
    done = yield from carry_out(q, SETTLE, before, now, cmd.actor, seen)
    if done is not None:
        return done
    job = yield from read_job(q, before.id)
    after = jobs.settle(job, cmd.epoch, cmd.outcome, now)
    if job.lease.status is not cmd.outcome:
        return refused(why(after, SETTLE, job.id), job, now)
    return (yield from moved_on(q, SETTLE, cmd.epoch, job, after, now))


def expire(q: Queries, cmd: c.ExpireQueued) -> Script[c.Outcome]:
    """Ends a queued job that nobody claimed in time."""
    before, now = yield from locked_job(q, cmd.job_id)
    if isinstance(before, Refusal):
        return absent(before, now)
    if before.status == Status.EXPIRED:
        return repeated((yield from read_job(q, before.id)), now)
    done = yield from carry_out(q, EXPIRE, before, now, None, {})
    if done is not None:
        return done
    job = yield from read_job(q, before.id)
    return refused(why(jobs.expire(job, now), EXPIRE, job.id), job, now)


def moved_on(
    q: Queries,
    transition: Transition,
    epoch: int,
    job: Job,
    core_says: Job | Refusal,
    now: StoreMs,
    owner: str | None = None,
) -> Script[c.Outcome]:
    """A release, requeue or settlement that changed no row: its event shows that it came before.
    Of a release also whose it was: a stranger's is no repeat. (L3)"""
    reason = why(core_says, transition, job.id)
    if job.lease.epoch == epoch + 1:
        params = {"id": job.id, "epoch": epoch + 1, "kind": transition.kind.value}
        rows = yield Statement(q.find_event, params)
        if rows and owner in (None, rows[0][0]):
            return repeated(job, now)
    return refused(reason, job, now)
