"""Stores that lack one rule of jobs, queues or events, as functions like `decide`: the laws must
catch them. Those that lack a rule of leases are in `broken_leases`."""

from __future__ import annotations

from typing import Any, Final
from zlib import crc32

from attrs import evolve

from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.job import Job
from unswept.core.lease import ACTIVE, Kind, Status
from unswept.core.records import changed
from unswept.core.units import StoreMs
from unswept.core.values import Event
from unswept.core.world import Change, Decision, Table, World, decide
from unswept.simulations.edits import edited, with_jobs, with_lease

_TOGETHER_MS: Final = 20_000
"""Two claims that are this close do not see each other's jobs taken."""
_EVENTS_LOST: Final = 20
"""The events of one job in so many are lost."""


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
    unasked = {job_id: with_lease(world.jobs[job_id], cancel_requested_at=None) for job_id in times}
    decision = decide(with_jobs(world, unasked), command, now)
    return edited(decision, lambda job: with_lease(job, cancel_requested_at=times[job.id]))


def _noted(job: Job, now: StoreMs) -> Decision[Any]:
    lease = job.lease
    at = now if lease.cancel_requested_at is None else lease.cancel_requested_at
    asked = with_lease(job, cancel_requested_at=at)
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
    still = with_jobs(world, taken)
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
    held = with_lease(
        job, owner=command.owner, epoch=command.epoch, deadline=now, ttl_ms=1, confirm_ms=1
    )
    return decide(with_jobs(world, {job.id: held}), command, now)


def endless(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """A sweep requeues a job however often it has been begun."""
    if not isinstance(command, c.Sweep):
        return decide(world, command, now)
    bounds = {job_id: world.jobs[job_id].max_attempts for job_id in world.owned}
    unbound = {job_id: changed(world.jobs[job_id], max_attempts=None) for job_id in bounds}
    decision = decide(with_jobs(world, unbound), command, now)
    return edited(decision, lambda job: changed(job, max_attempts=bounds[job.id]))


def expires_claimed(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """An expiry ends its job also when that has been claimed meanwhile."""
    job = world.jobs.get(command.job_id) if isinstance(command, c.ExpireQueued) else None
    if job is None or job.id not in world.owned:
        return decide(world, command, now)
    waits = with_lease(job, status=Status.QUEUED, owner=None, ttl_ms=None, confirm_ms=None)
    due = changed(waits, queue_deadline=StoreMs(now - 1))
    return decide(with_jobs(world, {job.id: due}), command, now)


def expires_early(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """An expiry does not look at the queue deadline: it was over when its sender looked."""
    job = world.jobs.get(command.job_id) if isinstance(command, c.ExpireQueued) else None
    if job is None or job.queue_deadline is None:
        return decide(world, command, now)
    due = changed(job, queue_deadline=StoreMs(min(job.queue_deadline, now - 1)))
    return decide(with_jobs(world, {job.id: due}), command, now)


def cancel_lost(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """A cancel of somebody's job is answered, and stays nowhere."""
    decision = decide(world, command, now)
    if isinstance(command, c.RequestCancel) and command.job_id in world.owned:
        return Decision(decision.reply)
    return decision


# Claims -----------------------------------------------------------------------------------------


def over_budget(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """A claim does not look at its owner's budget."""
    instance = world.instances.get(command.owner) if isinstance(command, c.Claim) else None
    if instance is None or instance.max_held is None:
        return decide(world, command, now)
    rich = {**world.instances, instance.id: changed(instance, max_held=None)}
    decision = decide(evolve(world, instances=rich), command, now)
    changes = tuple(
        change._replace(row=changed(change.row, max_held=instance.max_held))
        if change.table is Table.INSTANCES
        else change
        for change in decision.changes
    )
    return changed(decision, changes=changes)


def number_blind(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """A claim that is repeated takes more."""
    instance = world.instances.get(command.owner) if isinstance(command, c.Claim) else None
    if instance is None:
        return decide(world, command, now)
    assert isinstance(command, c.Claim)
    number = min(instance.claim_no, command.claim_no - 1)
    unasked = {**world.instances, instance.id: changed(instance, claim_no=number)}
    return decide(evolve(world, instances=unasked), command, now)


def label_blind(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """A claim takes jobs that its owner cannot run."""
    if not isinstance(command, c.Claim):
        return decide(world, command, now)
    required = {label for job_id in world.waiting for label in world.jobs[job_id].labels}
    return decide(world, evolve(command, labels=tuple(sorted(required))), now)


# Admits -----------------------------------------------------------------------------------------


def joins_corpses(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """An admit joins its twin whatever became of it."""
    twin = _twin(world, command) if isinstance(command, c.Admit) else None
    if twin is None or twin.lease.status in (*ACTIVE, Status.COMPLETED):
        return decide(world, command, now)
    ended = with_lease(twin, status=Status.COMPLETED, deadline=None)
    decision = decide(with_jobs(world, {twin.id: ended}), command, now)
    if not isinstance(decision.reply, r.Joined):
        return decision
    return changed(decision, reply=evolve(decision.reply, standing=r.Standing.of(twin)))


def _twin(world: World, command: c.Admit) -> Job | None:
    request = command.request
    if request.principal is None or request.request_key is None:
        return None
    key = world.keys.get((request.principal, request.request_key))
    return None if key is None else world.jobs.get(key.job_id)


# Events -----------------------------------------------------------------------------------------


def event_outside(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """An event is written after the commit, in a transaction of its own, which may fail."""
    decision = decide(world, command, now)
    failed = decision.events and crc32(decision.events[0].job_id.encode()) % _EVENTS_LOST == 0
    return changed(decision, events=()) if failed else decision


def events_go_too(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """An eviction takes the job's events with it, read or not."""
    decision = decide(world, command, now)
    if not isinstance(command, c.Evict):
        return decision
    gone = tuple(Change(Table.EVENTS, event.job_id, None) for event in decision.events)
    return changed(decision, changes=(*decision.changes, *gone))


def event_again(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """A repeated completion tells its event again."""
    decision = decide(world, command, now)
    repeated = isinstance(decision.reply, r.Accepted) and decision.reply.repeated
    if not isinstance(command, c.Complete) or not repeated:
        return decision
    job = world.jobs[command.job_id]
    told = Event(job.id, job.lease.epoch, Kind.COMPLETE, now, job.lease.status, job.lease.owner)
    return changed(decision, events=(told,))


def silent_fence(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """A late result is refused, and nobody hears of it."""
    decision = decide(world, command, now)
    return changed(decision, events=()) if isinstance(decision.reply, r.Refused) else decision
