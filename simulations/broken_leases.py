"""Stores that lack one rule of leases, as functions like `decide`: the laws must catch them."""

from __future__ import annotations

from typing import Any, Final
from zlib import crc32

from attrs import evolve

from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.job import Job
from unswept.core.lease import Kind, Status
from unswept.core.records import changed
from unswept.core.units import StoreMs
from unswept.core.values import Event
from unswept.core.world import Change, Decision, Table, World, decide
from unswept.simulations.edits import edited, with_jobs, with_lease

_SKEW_MS: Final = 600_000
"""How far apart from the store clock the clocks of its clients are, at most."""


# Heartbeats and stamps --------------------------------------------------------------------------


def renews_all(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """A heartbeat renews all that its instance owns, not the holds that it names."""
    if not isinstance(command, c.Heartbeat):
        return decide(world, command, now)
    named = {hold.job_id for hold in command.holds}
    owned = ((job_id, world.jobs[job_id].lease) for job_id in sorted(world.owned))
    others = tuple(
        c.Hold(job_id, lease.epoch)
        for job_id, lease in owned
        if lease.owner == command.instance and job_id not in named
    )
    decision = decide(world, evolve(command, holds=(*command.holds, *others)), now)
    answers = decision.reply.answers[: len(command.holds)]
    return changed(decision, reply=evolve(decision.reply, answers=answers))


def all_or_nothing(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """One bad hold spoils the whole heartbeat."""
    decision = decide(world, command, now)
    if not isinstance(command, c.Heartbeat):
        return decision
    answers = decision.reply.answers
    bad = next((a.answer for a in answers if a.answer is not r.Answer.RENEWED), None)
    if bad is None:
        return decision
    spoilt = tuple(r.HoldAnswer(answer.job_id, answer.epoch, bad) for answer in answers)
    kept = tuple(change for change in decision.changes if change.table is not Table.JOBS)
    return changed(decision, reply=evolve(decision.reply, answers=spoilt), changes=kept)


def revives(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """A renewal makes an orphan run again."""
    if not isinstance(command, c.Heartbeat):
        return decide(world, command, now)
    orphans = {
        job.id: with_lease(job, status=Status.RUNNING, deadline=now)
        for hold in command.holds
        if (job := world.jobs.get(hold.job_id)) and job.lease.status is Status.ORPHANED
    }
    return decide(with_jobs(world, orphans), command, now)


def client_clock(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """A deadline is reckoned by the clock of the owner's host."""
    decision = decide(world, command, now)
    if getattr(command, "terms", None) is None:
        return decision
    owner = getattr(command, "instance", None) or getattr(command, "owner", None)
    ahead = crc32(str(owner).encode()) % (2 * _SKEW_MS) - _SKEW_MS
    return edited(decision, lambda job: _restamped(job, world.jobs.get(job.id), ahead))


def _restamped(job: Job, before: Job | None, ahead: int) -> Job:
    """A start that is repeated stamps nothing, by whatever clock."""
    same = before is not None and before.lease.beats == job.lease.beats
    return job if same else _shifted(job, ahead)


def _shifted(job: Job, ms: int) -> Job:
    deadline = job.lease.deadline
    return job if deadline is None else with_lease(job, deadline=StoreMs(deadline + ms))


def never_shortens(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """A stamp takes the greater of two deadlines."""
    decision = decide(world, command, now)
    if not isinstance(command, (c.Heartbeat, c.Start)):
        return decision
    return edited(decision, lambda job: _at_least(job, world.jobs[job.id]))


def _at_least(job: Job, before: Job) -> Job:
    old, new = before.lease.deadline, job.lease.deadline
    return job if old is None or new is None else with_lease(job, deadline=max(old, new))


def start_restamps(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """A repeated start stamps the deadline once more."""
    job = world.jobs.get(command.job_id) if isinstance(command, c.Start) else None
    if job is None or job.lease.status is not Status.RUNNING:
        return decide(world, command, now)
    return decide(with_jobs(world, {job.id: with_lease(job, status=Status.QUEUED)}), command, now)


def two_step_claim(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """A claim takes a job, and gives it a lease in a second write."""
    decision = decide(world, command, now)
    if not isinstance(command, c.Claim):
        return decision
    return edited(decision, lambda job: with_lease(job, deadline=None))


# Suspects, delays and sweeps --------------------------------------------------------------------


def inclusive(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """`<=` for `<`: a lease is over in the very millisecond of its deadline."""
    if not isinstance(command, (c.Suspects, c.Sweep)):
        return decide(world, command, now)
    owned = {job_id: _shifted(world.jobs[job_id], -1) for job_id in world.owned}
    return decide(with_jobs(world, owned), command, now)


def sweeps_by_id(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """A sweep writes by id alone: what was seen is not tested again."""
    if not isinstance(command, c.Sweep):
        return decide(world, command, now)
    held = {t.job_id: world.jobs[t.job_id] for t in command.targets if t.job_id in world.owned}
    past = {job_id: with_lease(job, deadline=now - 1) for job_id, job in held.items()}
    targets = tuple(
        evolve(target, epoch=job.lease.epoch, beats=job.lease.beats)
        if (job := held.get(target.job_id))
        else target
        for target in command.targets
    )
    return decide(with_jobs(world, past), evolve(command, targets=targets), now)


def by_deadline(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """A stamp is told by its deadline, not by epoch and beats."""
    if isinstance(command, c.Suspects):
        page = decide(world, command, now).reply
        seen = tuple(evolve(suspect, beats=suspect.deadline) for suspect in page.suspects)
        return Decision(evolve(page, suspects=seen))
    if isinstance(command, c.Delay):
        job = world.jobs.get(command.job_id)
        same = job is not None and job.lease.deadline == command.beats
        beats = job.lease.beats if job is not None and same else command.beats
        return decide(world, evolve(command, beats=beats), now)
    if not isinstance(command, c.Sweep):
        return decide(world, command, now)
    targets = tuple(
        evolve(target, beats=job.lease.beats)
        if (job := world.jobs.get(target.job_id)) and job.lease.deadline == target.beats
        else target
        for target in command.targets
    )
    return decide(world, evolve(command, targets=targets), now)


def first_page(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """A look at the suspects ends with its first page, of one."""
    if not isinstance(command, c.Suspects):
        return decide(world, command, now)
    decision = decide(world, evolve(command, after=None, limit=1), now)
    return changed(decision, reply=evolve(decision.reply, more=False))


def delays_for_ever(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """A living pid delays a sweep as often as it is seen."""
    if isinstance(command, c.Suspects):
        page = decide(world, command, now).reply
        return Decision(
            evolve(page, suspects=tuple(evolve(s, delayed=False) for s in page.suspects))
        )
    job = world.jobs.get(command.job_id) if isinstance(command, c.Delay) else None
    if job is None:
        return decide(world, command, now)
    return decide(with_jobs(world, {job.id: with_lease(job, delayed_at=None)}), command, now)


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


# The end of a hold ------------------------------------------------------------------------------


def output_unguarded(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """Output is stored whoever sends it, under whatever epoch."""
    job = world.jobs.get(command.job_id) if isinstance(command, c.Output) else None
    if job is None:
        return decide(world, command, now)
    assert isinstance(command, c.Output)
    held = with_lease(job, owner=command.owner, epoch=command.epoch)
    return decide(with_jobs(world, {job.id: held}), command, now)


def keeps_epoch(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """A job goes back to the queue under the epoch that it had."""
    decision = decide(world, command, now)
    if not isinstance(command, (c.Release, c.Requeue, c.Sweep)):
        return decision
    back = {
        change.key
        for change in decision.changes
        if change.table is Table.JOBS and _is_back(change.row)
    }
    events = tuple(
        changed(event, epoch=event.epoch - 1)
        if event.job_id in back and event.status is Status.QUEUED
        else event
        for event in decision.events
    )
    return changed(edited(decision, _with_old_epoch), events=events)


def _is_back(job: Job) -> bool:
    return job.lease.status is Status.QUEUED and job.lease.owner is None


def _with_old_epoch(job: Job) -> Job:
    return with_lease(job, epoch=job.lease.epoch - 1) if _is_back(job) else job


def evicts_by_birth(world: World, command: c.Command[Any], now: StoreMs) -> Decision[Any]:
    """The retention is reckoned from the time of admission, whatever became of the job."""
    if not isinstance(command, (c.LookOverdue, c.Evict)):
        return decide(world, command, now)
    jobs = {job_id: _ended_at_birth(world.jobs[job_id]) for job_id in (*world.owned, *world.ended)}
    return decide(evolve(with_jobs(world, jobs), ended=tuple(jobs)), command, now)


def _ended_at_birth(job: Job) -> Job:
    ended = with_lease(job, status=Status.COMPLETED, deadline=None)
    return changed(ended, finished_at=job.admitted_at)
