"""The scripts of what a sweeper says: suspects, delay, sweep, and the housekeeping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unswept.adapters.sql.common import (
    absence,
    absent,
    carry_out,
    locked_job,
    read_job,
    read_jobs,
    refused,
    why,
    why_skipped,
)
from unswept.adapters.sql.outbox import past_events
from unswept.adapters.sql.queries import Queries
from unswept.adapters.sql.rows import Before, event_params, suspect_of
from unswept.adapters.sql.statements import DELAY, EVICT, ORPHAN, REQUEUE, SETTLE
from unswept.adapters.sql.steps import Each, Row, Script, Statement, Tell, Timed, read_clock
from unswept.core import commands as c
from unswept.core import job as jobs
from unswept.core import lease as rules
from unswept.core import replies as r
from unswept.core.job import Job
from unswept.core.lease import Kind, Status
from unswept.core.refusal import Refusal
from unswept.core.units import StoreMs
from unswept.core.values import Cause
from unswept.core.world import policy_cause, sweep_cause, swept_before


def suspects(q: Queries, cmd: c.Suspects) -> Script[r.SuspectsPage]:
    """One page of the suspects, in id order; ids are never empty, so that '' is before them all."""
    now = yield from read_clock()
    rows = yield Statement(
        q.suspects, {"now": now, "after": cmd.after or "", "rows": cmd.limit + 1}
    )
    page = tuple(suspect_of(row) for row in rows[: cmd.limit])
    held = None
    if cmd.counted:
        counted = yield Statement(q.count_owned, {})
        held = counted[0][0]
    return r.SuspectsPage(now, page, more=len(rows) > cmd.limit, held=held)


def delay(q: Queries, cmd: c.Delay) -> Script[c.Outcome]:
    """Process evidence stamps a suspect once more in its epoch. (L9)"""
    before, now = yield from locked_job(q, cmd.job_id)
    if isinstance(before, Refusal):
        return absent(before, now)
    seen = {"epoch": cmd.epoch, "beats": cmd.beats}
    done = yield from carry_out(q, DELAY, before, now, cmd.actor, seen)
    if done is not None:
        return done
    job = yield from read_job(q, before.id)
    return refused(why(jobs.delay(job, cmd.epoch, cmd.beats, now), DELAY, job.id), job, now)


def sweep(q: Queries, cmd: c.Sweep) -> Script[r.Swept]:
    """Orphans the targets that still bear the stamp that was seen: the whole guard stands in the
    write of each row, and never beside it. (L1, L2)"""
    found, now = yield from _locked(q, q.lock_to_sweep, cmd.targets)
    found = yield from _free_to_move(q, found)
    targets = {target.job_id: target for target in cmd.targets}
    seen = (targets[job_id] for job_id in found)
    rows = yield Each(
        q.update[ORPHAN.name],
        [{"id": t.job_id, "epoch": t.epoch, "beats": t.beats, "now": now} for t in seen],
    )
    swept = {row[0]: row for row in rows}
    causes = yield from _causes(q, [found[job_id] for job_id in swept])
    events = [
        event_params(
            Kind.ORPHAN,
            found[target.job_id],
            swept[target.job_id],
            now,
            cmd.sweeper,
            first_seen_at=target.first_seen_at,
            cause=causes[target.job_id],
        )
        for target in cmd.targets
        if target.job_id in swept
    ]
    yield Tell(q.put_event, events)
    orphans = [found[target.job_id] for target in cmd.targets if target.job_id in swept]
    yield from _by_policy(q, cmd, orphans, causes, now)
    others = yield from read_jobs(q, (job_id for job_id in targets if job_id not in swept))
    answers = []
    for target in cmd.targets:
        if target.job_id in swept:
            answers.append(r.SweepAnswer(target.job_id, None))
        elif (job := others.get(target.job_id)) is not None:
            answers.append(_not_swept(job, target, now, tried=target.job_id in found))
        else:
            reason = yield from absence(q, target.job_id)
            answers.append(r.SweepAnswer(target.job_id, reason))
    return r.Swept(now, tuple(answers))


def _free_to_move(q: Queries, found: dict[str, Before]) -> Script[dict[str, Before]]:
    """Without those that their policies would move to another epoch while an output is appended
    under this one: the move would wait for it, and all other targets with it."""
    moving = [job_id for job_id, job in found.items() if _next(job) is not None]
    if not moving:
        return found
    rows = yield Statement(q.lock_to_move, q.dialect.bind_ids(moving))
    held_up = {*moving} - {row[0] for row in rows}
    return {job_id: job for job_id, job in found.items() if job_id not in held_up}


def _next(job: Before) -> Kind | None:
    return jobs.next_by_policy(job.policy, job.attempts, job.max_attempts)


def _causes(q: Queries, swept: Sequence[Before]) -> Script[dict[str, Cause]]:
    """Why each was swept, as its event says it."""
    owners = {job.owner for job in swept if job.owner is not None}
    known: set[str] = set()
    if owners:
        rows = yield Statement(q.read_instances, q.dialect.bind_ids(sorted(owners)))
        known = {row[0] for row in rows}
    return {
        job.id: sweep_cause(job.policy, job.cancel_requested_at, job.owner in known)
        for job in swept
    }


def _by_policy(
    q: Queries, cmd: c.Sweep, swept: Sequence[Before], causes: Mapping[str, Cause], now: StoreMs
) -> Script[None]:
    """What the policies of the orphans say is done to them at once."""
    say: dict[Kind, dict[str, Any]] = {
        Kind.REQUEUE: {"now": now, "force": 0, "not_before": None},
        Kind.SETTLE: {"now": now, "outcome": Status.FAILED.value},
    }
    kinds = {job.id: _next(job) for job in swept}
    after: dict[str, Row] = {}
    for transition in (REQUEUE, SETTLE):
        rows = yield Each(
            q.update[transition.name],
            [
                {"id": job.id, "epoch": job.epoch, **say[transition.kind]}
                for job in swept
                if kinds[job.id] is transition.kind
            ],
        )
        after |= {row[0]: row for row in rows}
    events = []
    for job in swept:
        kind = kinds[job.id]
        if kind is not None:
            orphan = job._replace(status=Status.ORPHANED.value, deadline=None)
            cause = policy_cause(job.policy, kind, causes[job.id])
            row = after[job.id]
            events.append(event_params(kind, orphan, row, now, cmd.sweeper, cause=cause))
    yield Tell(q.put_event, events)


def _not_swept(job: Job, target: c.Target, now: StoreMs, *, tried: bool) -> r.SweepAnswer:
    if swept_before(job, target):
        return r.SweepAnswer(job.id, None, repeated=True)
    core_says = jobs.orphan(job, target.epoch, target.beats, now)
    reason = why(core_says, ORPHAN, job.id) if tried else why_skipped(core_says)
    return r.SweepAnswer(job.id, reason)


def look_overdue(q: Queries, cmd: c.LookOverdue) -> Script[r.Overdue]:
    """What housekeeping may look at a second time."""
    now = yield from read_clock()
    params = {
        "now": now,
        "rows": cmd.limit,
        "retention_ms": cmd.retention_ms,
        "instance_gc_ms": cmd.instance_gc_ms,
        "dedup_window_ms": cmd.dedup_window_ms,
    }
    evictable = yield Statement(q.evictable, params)
    expirable = yield Statement(q.expirable, params)
    silent = yield Statement(q.silent, params)
    keys = yield Statement(q.aged_keys, params)
    events = yield from past_events(q, cmd, now)
    return r.Overdue(
        now,
        tuple((job_id, epoch) for job_id, epoch in evictable),
        tuple((job_id, epoch) for job_id, epoch in expirable),
        tuple((instance, seen_at) for instance, seen_at in silent),
        tuple((principal, request_key, job_id) for principal, request_key, job_id in keys),
        events,
    )


def evict(q: Queries, cmd: c.Evict) -> Script[r.Evicted]:
    """Removes terminal jobs past their retention, with all that rides along. (L14)"""
    found, now = yield from _locked(q, q.lock_to_move, cmd.targets)
    epochs = {target.job_id: target.epoch for target in cmd.targets}
    say = {"retention_ms": cmd.retention_ms, "now": now}
    rows = yield Each(q.evict, [{"id": job_id, "epoch": epochs[job_id], **say} for job_id in found])
    gone = {row[0]: row for row in rows}
    for drop in (q.drop_request, q.drop_result, q.drop_output):
        yield Tell(drop, [{"id": job_id} for job_id in gone])
    yield Tell(
        q.put_event,
        [
            event_params(Kind.EVICT, found[target.job_id], gone[target.job_id], now, None)
            for target in cmd.targets
            if target.job_id in gone
        ],
    )
    others = yield from read_jobs(q, (job_id for job_id in epochs if job_id not in gone))
    answers = []
    for target in cmd.targets:
        if target.job_id in gone:
            answers.append(r.SweepAnswer(target.job_id, None))
        elif (job := others.get(target.job_id)) is not None:
            tried = target.job_id in found
            answers.append(_not_evicted(job, target, cmd, now, tried=tried))
        else:
            reason = yield from absence(q, target.job_id)
            went = reason is Refusal.SPENT
            answers.append(r.SweepAnswer(target.job_id, None if went else reason, went))
    return r.Evicted(now, tuple(answers))


def _not_evicted(
    job: Job, target: c.Hold, cmd: c.Evict, now: StoreMs, *, tried: bool
) -> r.SweepAnswer:
    core_says = rules.may_evict(job.lease, target.epoch, job.finished_at, cmd.retention_ms, now)
    reason = why(core_says, EVICT, job.id) if tried else why_skipped(core_says)
    return r.SweepAnswer(job.id, reason)


def forget_instances(q: Queries, cmd: c.ForgetInstances) -> Script[r.Forgotten]:
    """Takes instances for gone that are silent since the very beat that was seen."""
    now = yield from read_clock()
    say = {"instance_gc_ms": cmd.instance_gc_ms, "now": now}
    seen = [{"id": name, "seen_at": seen_at, **say} for name, seen_at in sorted(cmd.seen)]
    dropped = yield Each(q.drop_silent, seen)
    parted = yield Each(q.part_from_silent, seen)
    return r.Forgotten(now, len(dropped) + len(parted))


def forget_keys(q: Queries, cmd: c.ForgetKeys) -> Script[r.Forgotten]:
    """Removes dedup keys that still name the job that was seen and are older than the window."""
    now = yield from read_clock()
    rows = yield Each(
        q.forget_key,
        [
            {
                "principal": principal,
                "request_key": request_key,
                "id": job_id,
                "dedup_window_ms": cmd.dedup_window_ms,
                "now": now,
            }
            for principal, request_key, job_id in sorted(cmd.seen)
        ],
    )
    return r.Forgotten(now, len(rows))


def _locked(
    q: Queries, lock: str, targets: Sequence[c.Target | c.Hold]
) -> Script[tuple[dict[str, Before], StoreMs]]:
    """Those of the targets whose rows nobody has locked, with their rows locked, and the store
    time, read once they all are. No row is waited for, while others are held up."""
    rows = yield Timed(lock, q.dialect.bind_ids(target.job_id for target in targets))
    now = yield from read_clock()
    return {row[0]: Before(*row) for row in rows}, now
