"""The scripts of what an owner says under its epoch, from start to complete or release."""

from __future__ import annotations

from collections.abc import Sequence

from unswept.adapters.sql.common import (
    absent,
    carry_out,
    found_job,
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
from unswept.adapters.sql.steps import (
    MOMENT,
    Glance,
    Script,
    Statement,
    Tell,
    Timed,
    read_clock,
)
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
    if isinstance(before, Refusal):
        return absent(before, now)
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
    """One renewal statement for all holds, also for none; then why the others were not renewed.
    Those that somebody had locked are tried again for a while. (L8)"""
    now = yield from read_clock()
    # First, while no row is locked here: two beats that watch each other's jobs must not wait for
    # each other.
    locked = yield from _locked(q, cmd.watched)
    answers: _Answers = {}
    left: Sequence[c.Hold] = cmd.holds
    while True:
        renewed = yield from _renewed(q, cmd, left, now)
        rest = [hold for hold in left if hold.job_id not in renewed]
        others = yield from _not_renewed(q, cmd, rest, now)
        answers |= renewed
        answers |= others
        left = [hold for hold in rest if others[hold.job_id].answer is r.Answer.BUSY]
        if not left or not (yield MOMENT):
            break
    yield Tell(q.see_instance, [{"id": cmd.instance, "now": now}])
    known = yield Timed(q.read_instance, {"id": cmd.instance})
    now = yield from read_clock()
    return r.Beaten(now, tuple(answers[hold.job_id] for hold in cmd.holds), locked, bool(known))


_Answers = dict[str, r.HoldAnswer]
"""By the job's id, which a heartbeat names once."""


def _renewed(
    q: Queries, cmd: c.Heartbeat, holds: Sequence[c.Hold], now: StoreMs
) -> Script[_Answers]:
    """The answers to the holds that the renewal statement renews."""
    epochs = {hold.job_id: hold.epoch for hold in holds}
    say = {"owner": cmd.instance, "now": now, **terms_params(cmd.terms)}
    rows = yield Statement(q.renew_holds, {**q.dialect.bind_holds(epochs), **say})
    renewed = r.Answer.RENEWED
    return {
        job_id: r.HoldAnswer(job_id, epochs[job_id], renewed, deadline, asked)
        for job_id, deadline, asked in rows
    }


def _not_renewed(
    q: Queries, cmd: c.Heartbeat, holds: Sequence[c.Hold], now: StoreMs
) -> Script[_Answers]:
    """The answers to holds that it did not renew."""
    found = yield from read_jobs(q, (hold.job_id for hold in holds))
    return {hold.job_id: _answer(q, found.get(hold.job_id), hold, cmd, now) for hold in holds}


def _answer(
    q: Queries, job: Job | None, hold: c.Hold, cmd: c.Heartbeat, now: StoreMs
) -> r.HoldAnswer:
    if job is None:
        return r.HoldAnswer(hold.job_id, hold.epoch, r.Answer.ABSENT)
    core_says = jobs.renew(job, cmd.instance, hold.epoch, cmd.terms, now)
    if q.find_locked is not None and isinstance(core_says, Job):
        return r.HoldAnswer(hold.job_id, hold.epoch, r.Answer.BUSY)
    return hold_answer(job, hold.epoch, why(core_says, RENEW, job.id))


def _locked(q: Queries, watched: tuple[str, ...]) -> Script[tuple[str, ...]]:
    """The watched jobs that somebody keeps locked against renewal. One that is only being written
    or looked at just now is not: its owner gets its turn."""
    if q.find_locked is None:
        return ()
    left = watched
    while left:
        rows = yield Glance(q.find_locked, q.dialect.bind_ids(left))
        found = {row[0] for row in rows}
        left = tuple(job_id for job_id in left if job_id in found)
        if left and not (yield MOMENT):
            break
    return left


def output(q: Queries, cmd: c.Output) -> Script[c.Outcome]:
    """Appends one chunk, unless it is there; the fence is part of the statement that inserts."""
    row, now = yield from found_job(q, q.share_job, cmd.job_id)
    if isinstance(row, Refusal):
        return absent(row, now)
    stands = standing_of(row)
    number = {"id": stands.job_id, "epoch": cmd.epoch, "chunk": cmd.chunk.chunk}
    rows = yield Timed(
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
    # The append may have waited for another delivery of the same chunk.
    now = yield from read_clock()
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
    if isinstance(before, Refusal):
        return absent(before, now)
    transition = HEAL if before.status == Status.ORPHANED else COMPLETE
    mine = {"owner": cmd.owner, "epoch": cmd.epoch, "outcome": cmd.outcome.value}
    done = yield from carry_out(q, transition, before, now, cmd.owner, mine)
    if done is not None:
        result = {
            "job_id": before.id,
            "exit_code": cmd.result.exit_code,
            "http_status": cmd.result.http_status,
            "error": cmd.result.error,
            "body": cmd.result.body,
        }
        yield Tell(q.put_result, [result])
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
            yield Tell(q.put_event, [params_of(stale)])
    return refused(reason, job, now)


def release(q: Queries, cmd: c.Release) -> Script[c.Outcome]:
    """Gives a requeueable job back."""
    before, now = yield from locked_job(q, cmd.job_id)
    if isinstance(before, Refusal):
        return absent(before, now)
    mine = {"owner": cmd.owner, "epoch": cmd.epoch, "not_before": cmd.not_before}
    done = yield from carry_out(q, RELEASE, before, now, cmd.owner, mine)
    if done is not None:
        return done
    job = yield from read_job(q, before.id)
    after = jobs.release(job, cmd.owner, cmd.epoch, cmd.not_before, now)
    return (yield from moved_on(q, RELEASE, cmd.epoch, job, after, now, cmd.owner))
