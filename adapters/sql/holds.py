"""The scripts of what an owner says under its epoch, from start to complete or release."""

from __future__ import annotations

from collections.abc import Container

from unswept.adapters.sql.common import (
    absent,
    carry_out,
    locked_job,
    read_job,
    read_jobs,
    refused,
    repeated,
    why,
)
from unswept.adapters.sql.outsiders import moved_on
from unswept.adapters.sql.queries import Queries
from unswept.adapters.sql.rows import (
    params_of,
    process_params,
    standing_of,
    terms_params,
)
from unswept.adapters.sql.statements import (
    COMPLETE,
    HEAL,
    OUTPUT,
    RECORD_PROCESS,
    RELEASE,
    RENEW,
    START,
)
from unswept.adapters.sql.steps import Script, Statement, read_clock
from unswept.core import commands as c
from unswept.core import job as jobs
from unswept.core import lease as rules
from unswept.core import replies as r
from unswept.core.job import Job
from unswept.core.lease import Status
from unswept.core.refusal import Refusal
from unswept.core.units import StoreMs
from unswept.core.world import hold_answer, stale_result


def start(q: Queries, cmd: c.Start) -> Script[c.Outcome]:
    """The work begins; on a job that runs already its process is recorded, once."""
    before, now = yield from locked_job(q, cmd.job_id)
    if before is None:
        return (yield from absent(q, cmd.job_id, now))
    mine = {"owner": cmd.owner, "epoch": cmd.epoch, **process_params(cmd.process)}
    done = yield from carry_out(
        q, START, before, now, cmd.owner, {**mine, **terms_params(cmd.terms)}
    )
    if done is not None:
        return done
    job = yield from read_job(q, before.id)
    after = jobs.start(job, cmd.owner, cmd.epoch, cmd.process, cmd.terms, now)
    if isinstance(after, Refusal):
        return refused(after, job, now)
    if after.lease is not job.lease:
        why(after, START, job.id)
    if after == job:
        return repeated(job, now)
    rows = yield Statement(q.update[RECORD_PROCESS.name], {"id": job.id, **mine})
    if not rows:
        why(after, RECORD_PROCESS, job.id)
    return r.Accepted(now, standing_of(rows[0]), None)


def heartbeat(q: Queries, cmd: c.Heartbeat) -> Script[r.Beaten]:
    """One renewal statement for all holds, also for none; then why the others were not renewed."""
    pairs = q.dialect.bind_holds((hold.job_id, hold.epoch) for hold in cmd.holds)
    now = yield from read_clock()
    rows = yield Statement(
        q.renew_holds,
        {**pairs, "owner": cmd.instance, "now": now, **terms_params(cmd.terms)},
    )
    renewed = {job_id: (deadline, asked) for job_id, deadline, asked in rows}
    others = yield from _not_renewed(q, cmd, renewed, now)
    answers = tuple(
        r.HoldAnswer(hold.job_id, hold.epoch, r.Answer.RENEWED, *stamp)
        if (stamp := renewed.get(hold.job_id)) is not None
        else others[hold.job_id]
        for hold in cmd.holds
    )
    locked: tuple[str, ...] = ()
    if q.find_locked is not None and cmd.watched:
        rows = yield Statement(q.find_locked, q.dialect.bind_ids(cmd.watched))
        locked = tuple(row[0] for row in rows)
    rows = yield Statement(q.see_instance, {"id": cmd.instance, "now": now})
    return r.Beaten(now, answers, locked, bool(rows))


def _not_renewed(
    q: Queries, cmd: c.Heartbeat, renewed: Container[str], now: StoreMs
) -> Script[dict[str, r.HoldAnswer]]:
    """The answers to the holds whose rows the renewal statement did not change. (L8)"""
    left = [hold for hold in cmd.holds if hold.job_id not in renewed]
    found = yield from read_jobs(q, (hold.job_id for hold in left))
    return {hold.job_id: _answer(found.get(hold.job_id), hold, cmd, now) for hold in left}


def _answer(job: Job | None, hold: c.Hold, cmd: c.Heartbeat, now: StoreMs) -> r.HoldAnswer:
    if job is None:
        return r.HoldAnswer(hold.job_id, hold.epoch, r.Answer.ABSENT)
    reason = why(jobs.renew(job, cmd.instance, hold.epoch, cmd.terms, now), RENEW, job.id)
    return hold_answer(job, hold.epoch, reason)


def output(q: Queries, cmd: c.Output) -> Script[c.Outcome]:
    """Appends one chunk, unless it is there; the fence is part of the statement that inserts."""
    rows = yield Statement(q.share_job, {"id": cmd.job_id})
    now = yield from read_clock()
    if not rows:
        return (yield from absent(q, cmd.job_id, now))
    stands = standing_of(rows[0])
    number = {"id": stands.job_id, "epoch": cmd.epoch, "chunk": cmd.chunk.chunk}
    rows = yield Statement(
        q.append_chunk,
        {
            **number,
            "owner": cmd.owner,
            "stream": cmd.chunk.stream.value,
            "data": cmd.chunk.data,
            "late_output_ms": cmd.late_output_ms,
            "now": now,
        },
    )
    if rows:
        return r.Accepted(now, stands, OUTPUT.kind)
    job = yield from read_job(q, stands.job_id)
    if fenced := rules.fence(job.lease, cmd.owner, cmd.epoch):
        return refused(fenced, job, now)
    rows = yield Statement(q.read_chunk, number)
    if rows:
        return repeated(job, now)
    late = rules.may_append(
        job.lease, cmd.owner, cmd.epoch, job.finished_at, cmd.late_output_ms, now
    )
    return refused(why(late, OUTPUT, job.id), job, now)


def complete(q: Queries, cmd: c.Complete) -> Script[c.Outcome]:
    """The owner's terminal write with its result; late under an old epoch it leaves one event."""
    before, now = yield from locked_job(q, cmd.job_id)
    if before is None:
        return (yield from absent(q, cmd.job_id, now))
    transition = HEAL if before.status == Status.ORPHANED else COMPLETE
    mine = {"owner": cmd.owner, "epoch": cmd.epoch, "outcome": cmd.outcome.value}
    done = yield from carry_out(q, transition, before, now, cmd.owner, mine)
    if done is not None:
        result = cmd.result
        yield Statement(
            q.put_result,
            {
                "job_id": before.id,
                "exit_code": result.exit_code,
                "http_status": result.http_status,
                "error": result.error,
                "body": result.body,
            },
        )
        return done
    job = yield from read_job(q, before.id)
    core_says = jobs.complete(job, cmd.owner, cmd.epoch, cmd.outcome, now)
    reason = why(core_says, transition, job.id)
    if reason is Refusal.ALREADY_TERMINAL and job.lease.status is cmd.outcome:
        for done_by in (COMPLETE, HEAL):  # a withdrawal ends a job too, and stores no result
            params = {"id": job.id, "epoch": cmd.epoch, "kind": done_by.kind.value}
            rows = yield Statement(q.find_event, params)
            if rows:
                return repeated(job, now)
    if 1 <= cmd.epoch < job.lease.epoch:
        stale = stale_result(job, cmd.epoch, cmd.owner, now)
        params = {"id": job.id, "epoch": cmd.epoch, "kind": stale.kind.value}
        rows = yield Statement(q.find_event, params)
        if not rows:
            yield Statement(q.put_event, params_of(stale))
    return refused(reason, job, now)


def release(q: Queries, cmd: c.Release) -> Script[c.Outcome]:
    """Gives a requeueable job back."""
    before, now = yield from locked_job(q, cmd.job_id)
    if before is None:
        return (yield from absent(q, cmd.job_id, now))
    mine = {"owner": cmd.owner, "epoch": cmd.epoch, "not_before": cmd.not_before}
    done = yield from carry_out(q, RELEASE, before, now, cmd.owner, mine)
    if done is not None:
        return done
    job = yield from read_job(q, before.id)
    after = jobs.release(job, cmd.owner, cmd.epoch, cmd.not_before, now)
    return (yield from moved_on(q, RELEASE, cmd.epoch, job, after, now, cmd.owner))
