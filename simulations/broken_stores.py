"""Stores that lack one rule each, as functions like `decide`: the laws must catch them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import evolve

from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.job import Job
from unswept.core.lease import ACTIVE, Kind, Status
from unswept.core.records import changed
from unswept.core.units import StoreMs
from unswept.core.values import Event
from unswept.core.world import Change, Decision, Table, World, decide

_TOGETHER_MS = 20_000
"""Two claims that are this close do not see each other's jobs taken."""


def forgetful(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """An enqueue looks only at the jobs that are there: an evicted or spent id is new to it."""
    if isinstance(command, c.Enqueue) and command.job_id not in world.jobs:
        ids = {job_id: birth for job_id, birth in world.ids.items() if job_id != command.job_id}
        return decide(evolve(world, ids=ids), command, now)
    return decide(world, command, now)


def cancel_blind(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """A cancel of a queued job is noted on its row, and a claim does not look at it."""
    if isinstance(command, c.RequestCancel) and command.job_id in world.waiting:
        return _noted(world.jobs[command.job_id], now)
    if not isinstance(command, c.Claim):
        return decide(world, command, now)
    times = {job_id: world.jobs[job_id].lease.cancel_requested_at for job_id in world.waiting}
    unasked = {
        job_id: _with_lease(world.jobs[job_id], cancel_requested_at=None) for job_id in times
    }
    decision = decide(_with_jobs(world, unasked), command, now)
    return _edited(decision, lambda job: _with_lease(job, cancel_requested_at=times[job.id]))


def _noted(job: Job, now: StoreMs) -> Decision[Any]:
    lease = job.lease
    at = now if lease.cancel_requested_at is None else lease.cancel_requested_at
    asked = _with_lease(job, cancel_requested_at=at)
    reply = r.Accepted(now, r.Standing.of(asked), None if asked == job else Kind.REQUEST_CANCEL)
    if asked == job:
        return Decision(reply)
    event = Event(job.id, lease.epoch, Kind.REQUEST_CANCEL, now, lease.status, None)
    return Decision(reply, (Change(Table.JOBS, job.id, asked),), (event,))


def double_claim(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """A claim does not see what another has taken at about the same time, and takes it too."""
    if not isinstance(command, c.Claim):
        return decide(world, command, now)
    jobs = [world.jobs[job_id] for job_id in world.owned]
    taken = {job.id: _unclaimed(job) for job in jobs if _just_claimed(job, command.owner, now)}
    still = _with_jobs(world, taken)
    return decide(evolve(still, waiting=(*world.waiting, *taken)), command, now)


def _just_claimed(job: Job, by_other_than: str, now: StoreMs) -> bool:
    if job.claim_no is None or job.lease.owner == by_other_than or job.started_at is None:
        return False
    return now - job.started_at <= _TOGETHER_MS


def _unclaimed(job: Job) -> Job:
    """The row as it was before the claim."""
    lease = changed(
        job.lease,
        status=Status.QUEUED,
        owner=None,
        epoch=job.lease.epoch - 1,
        deadline=None,
        delayed_at=None,
        ttl_ms=None,
        confirm_ms=None,
    )
    return changed(job, lease=lease, claim_no=None, attempts=job.attempts - 1)


def epoch_blind(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """A completion ends the job whoever holds it by now, or nobody."""
    job = world.jobs.get(command.job_id) if isinstance(command, c.Complete) else None
    if job is None or job.lease.status not in ACTIVE:
        return decide(world, command, now)
    assert isinstance(command, c.Complete)
    held = _with_lease(
        job, owner=command.owner, epoch=command.epoch, deadline=now, ttl_ms=1, confirm_ms=1
    )
    return decide(_with_jobs(world, {job.id: held}), command, now)


def endless(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """A sweep requeues a job however often it has been begun."""
    if not isinstance(command, c.Sweep):
        return decide(world, command, now)
    bounds = {job_id: world.jobs[job_id].max_attempts for job_id in world.owned}
    unbound = {job_id: changed(world.jobs[job_id], max_attempts=None) for job_id in bounds}
    decision = decide(_with_jobs(world, unbound), command, now)
    return _edited(decision, lambda job: changed(job, max_attempts=bounds[job.id]))


def blanket_sweep(world: World, sweeper: str, now: StoreMs) -> tuple[c.Sweep, Decision[Any]]:
    """Every active job that has an owner is orphaned, whatever its lease says."""
    jobs = [world.jobs[job_id] for job_id in sorted(world.owned)]
    changes, events = [], []
    for job in jobs:
        lease = changed(job.lease, status=Status.ORPHANED, deadline=None)
        changes.append(Change(Table.JOBS, job.id, changed(job, lease=lease, orphaned_at=now)))
        event = Event(job.id, lease.epoch, Kind.ORPHAN, now, lease.status, lease.owner)
        events.append(changed(event, actor=sweeper, beats=lease.beats))
    targets = tuple(c.Target(job.id, job.lease.epoch, job.lease.beats, now) for job in jobs)
    reply = r.Swept(now, tuple(r.SweepAnswer(job.id, None) for job in jobs))
    return c.Sweep(sweeper, targets), Decision(reply, tuple(changes), tuple(events))


def _with_lease(job: Job, **fields: Any) -> Job:
    return changed(job, lease=changed(job.lease, **fields))


def _with_jobs(world: World, jobs: Mapping[str, Job]) -> World:
    return evolve(world, jobs={**world.jobs, **jobs}) if jobs else world


def _edited(decision: Decision[Any], edit: Callable[[Job], Job]) -> Decision[Any]:
    changes = tuple(
        change._replace(row=edit(change.row))
        if change.table is Table.JOBS and change.row
        else change
        for change in decision.changes
    )
    return changed(decision, changes=changes)
