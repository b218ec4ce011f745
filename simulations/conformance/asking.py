"""How each command is drawn, and how often."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from unswept.core import commands as c
from unswept.core.job import Job, OnOrphan, Process, Transport
from unswept.core.lease import (
    OUTCOMES,
    SETTLEMENTS,
    RequeueRule,
)
from unswept.core.units import Ms, StoreMs
from unswept.core.values import Chunk, Result, Stream
from unswept.core.world import World
from unswept.simulations.conformance.sights import (
    CONSUMERS,
    INSTANCES,
    JOB_IDS,
    PARTITIONS,
    POLICIES,
    Ask,
    Draw,
    Fits,
    Sight,
    a_hold,
    a_job,
    a_request,
    any_job,
    claimable,
    evictable,
    expirable,
    mostly,
    near,
    orphaned,
    owned,
    pick,
    printed,
    queued,
    some_jobs,
    soon,
    suspect,
    unfinished,
    unstarted,
    unused_id,
    writable,
)
from unswept.simulations.conformance.tours import (
    INSTANCE_GC_MS,
    LABELS,
    LATE_OUTPUT_MS,
    ON_ORPHAN,
    RETENTION_MS,
    WINDOW_MS,
)


def _register(draw: Draw, sight: Sight, fits: Fits) -> c.Register:
    claim_no = mostly(draw, 0, 3)
    facts = ("runner", "host", pick(draw, None, 7), claim_no, pick(draw, None, 1))
    return c.Register(pick(draw, *INSTANCES), *facts)


def _deregister(draw: Draw, sight: Sight, fits: Fits) -> c.Deregister:
    return c.Deregister(pick(draw, *INSTANCES))


def _list_instances(draw: Draw, sight: Sight, fits: Fits) -> c.ListInstances:
    return c.ListInstances()


def _admit(draw: Draw, sight: Sight, fits: Fits) -> c.Admit:
    rule = pick(draw, *RequeueRule)
    return c.Admit(
        unused_id(draw, sight),
        pick(draw, *INSTANCES),
        pick(draw, *POLICIES),
        pick(draw, *Transport),
        rule,
        a_request(draw, keyed=pick(draw, True, True, False)),
        mostly(draw, WINDOW_MS, Ms(0)),
        mostly(draw, False, True),
        *_policy(draw, rule),
    )


def _policy(draw: Draw, rule: RequeueRule) -> tuple[OnOrphan, int | None]:
    mark = (OnOrphan.MARK, None)
    others = [(policy, most) for _, policy, most in ON_ORPHAN]
    allowed = others if rule is RequeueRule.ALLOWED else others[2:]
    policy: tuple[OnOrphan, int | None] = mostly(draw, mark, *allowed)
    return policy


def _enqueue(draw: Draw, sight: Sight, fits: Fits) -> c.Enqueue:
    rule = pick(draw, *RequeueRule)
    policy, most = _policy(draw, rule)
    return c.Enqueue(
        unused_id(draw, sight),
        pick(draw, *Transport),
        rule,
        a_request(draw, keyed=pick(draw, False, True)),
        mostly(draw, *PARTITIONS),
        mostly(draw, 0, -1, 1),
        queue_deadline=soon(draw, sight),
        not_before=soon(draw, sight),
        labels=mostly(draw, *LABELS),
        on_orphan=policy,
        max_attempts=most,
    )


def _withdraw(draw: Draw, sight: Sight, fits: Fits) -> c.Withdraw:
    job_id, owner, _ = a_hold(draw, sight, fits)
    return c.Withdraw(job_id, owner)


def _claim(draw: Draw, sight: Sight, fits: Fits) -> c.Claim:
    owner = pick(draw, *(mostly(draw, [*sight.world.instances], INSTANCES) or INSTANCES))
    row = sight.world.instances.get(owner)
    last = 0 if row is None else row.claim_no
    number = mostly(draw, last + 1, max(last, 1), max(last - 1, 1), last + 3)
    terms = pick(draw, *POLICIES)
    limit, offered = pick(draw, 1, 2, 5), mostly(draw, LABELS[3], *LABELS)
    return c.Claim(owner, number, terms, mostly(draw, *PARTITIONS), limit, offered)


def _start(draw: Draw, sight: Sight, fits: Fits) -> c.Start:
    process = pick(draw, None, Process(7, 5_000, "boot"), Process(8, 6_000, "boot"))
    return c.Start(*a_hold(draw, sight, fits), pick(draw, *POLICIES), process)


def _heartbeat(draw: Draw, sight: Sight, fits: Fits) -> c.Heartbeat:
    owners = [job.lease.owner for job in sight.world.jobs.values() if fits(sight, job)]
    instance = pick(draw, *(mostly(draw, owners, INSTANCES) or INSTANCES))
    holds = (
        c.Hold(job, 1) if isinstance(job, str) else c.Hold(job.id, near(draw, job.lease.epoch))
        for job in some_jobs(draw, sight, lambda sight, job: job.lease.owner == instance)
    )
    watched = mostly(draw, (), JOB_IDS[:2])
    return c.Heartbeat(instance, pick(draw, *POLICIES), tuple(holds), watched)


def _output(draw: Draw, sight: Sight, fits: Fits) -> c.Output:
    data = pick(draw, b"text", b"\0\xff", b"")
    chunk = Chunk(pick(draw, 0, 1, 2, 3), pick(draw, *Stream), data)
    return c.Output(*a_hold(draw, sight, fits), chunk, LATE_OUTPUT_MS)


def _complete(draw: Draw, sight: Sight, fits: Fits) -> c.Complete:
    result = pick(draw, Result(), Result(-9, 500, "went\0wrong", b"\0\xff"), Result(exit_code=0))
    return c.Complete(*a_hold(draw, sight, fits), pick(draw, *sorted(OUTCOMES)), result)


def _release(draw: Draw, sight: Sight, fits: Fits) -> c.Release:
    return c.Release(*a_hold(draw, sight, fits), soon(draw, sight))


def _request_cancel(draw: Draw, sight: Sight, fits: Fits) -> c.RequestCancel:
    return c.RequestCancel(a_hold(draw, sight, fits)[0])


def _requeue(draw: Draw, sight: Sight, fits: Fits) -> c.Requeue:
    job_id, _, epoch = a_hold(draw, sight, fits)
    force = pick(draw, False, True)
    return c.Requeue(job_id, epoch, force, soon(draw, sight), pick(draw, None, "ops"))


def _settle(draw: Draw, sight: Sight, fits: Fits) -> c.Settle:
    job_id, _, epoch = a_hold(draw, sight, fits)
    return c.Settle(job_id, epoch, pick(draw, *sorted(SETTLEMENTS)), pick(draw, None, "ops"))


def _expire(draw: Draw, sight: Sight, fits: Fits) -> c.ExpireQueued:
    return c.ExpireQueued(a_hold(draw, sight, fits)[0])


def _suspects(draw: Draw, sight: Sight, fits: Fits) -> c.Suspects:
    after, limit = pick(draw, None, *JOB_IDS), pick(draw, 1, 2, 1_000)
    return c.Suspects(after, limit, counted=limit == 2)


def _delay(draw: Draw, sight: Sight, fits: Fits) -> c.Delay:
    job_id, epoch, beats = _stamp(draw, a_job(draw, sight, fits))
    return c.Delay(job_id, epoch, beats, pick(draw, *INSTANCES))


def _sweep(draw: Draw, sight: Sight, fits: Fits) -> c.Sweep:
    seen_at = StoreMs(sight.now - pick(draw, 0, 7))
    stamps = [_stamp(draw, job) for job in some_jobs(draw, sight, fits)]
    targets = tuple(c.Target(*stamp, seen_at) for stamp in stamps)
    return c.Sweep(pick(draw, *INSTANCES), targets)


def _stamp(draw: Draw, job: Job | str) -> tuple[str, int, int]:
    """(job id, epoch, beats) as a sweeper has seen them, or a near miss."""
    if isinstance(job, str):
        return (job, 1, 1)
    return (job.id, near(draw, job.lease.epoch), near(draw, job.lease.beats))


def _look_overdue(draw: Draw, sight: Sight, fits: Fits) -> c.LookOverdue:
    return c.LookOverdue(RETENTION_MS, INSTANCE_GC_MS, WINDOW_MS, pick(draw, 1, 100))


def _evict(draw: Draw, sight: Sight, fits: Fits) -> c.Evict:
    jobs = some_jobs(draw, sight, fits)
    targets = (
        c.Hold(job, 1) if isinstance(job, str) else c.Hold(job.id, near(draw, job.lease.epoch))
        for job in jobs
    )
    return c.Evict(tuple(targets), mostly(draw, RETENTION_MS, Ms(1)))


def _forget_instances(draw: Draw, sight: Sight, fits: Fits) -> c.ForgetInstances:
    rows = sight.world.instances
    names = {pick(draw, *rows, *INSTANCES): None for _ in range(2)}
    seen = (
        (name, StoreMs(rows[name].seen_at - mostly(draw, 0, 1)) if name in rows else sight.now)
        for name in names
    )
    return c.ForgetInstances(tuple(seen), INSTANCE_GC_MS)


def _forget_keys(draw: Draw, sight: Sight, fits: Fits) -> c.ForgetKeys:
    rows = sight.world.keys
    keys = {pick(draw, *rows, ("p", "none")): None for _ in range(2)}
    seen = ((*key, mostly(draw, rows[key].job_id if key in rows else "a", "other")) for key in keys)
    return c.ForgetKeys(tuple(seen), mostly(draw, WINDOW_MS, Ms(0)))


def _forget_events(draw: Draw, sight: Sight, fits: Fits) -> c.ForgetEvents:
    return c.ForgetEvents((*sight.world.ids,), mostly(draw, Ms(1), RETENTION_MS))


def _forget_consumer(draw: Draw, sight: Sight, fits: Fits) -> c.ForgetConsumer:
    return c.ForgetConsumer(mostly(draw, *CONSUMERS))


def _find(draw: Draw, sight: Sight, fits: Fits) -> c.Find:
    return c.Find(a_hold(draw, sight, fits)[0])


def _read_request(draw: Draw, sight: Sight, fits: Fits) -> c.ReadRequest:
    return c.ReadRequest(a_hold(draw, sight, fits)[0])


def _read_output(draw: Draw, sight: Sight, fits: Fits) -> c.ReadOutput:
    job_id = a_hold(draw, sight, fits)[0]
    return c.ReadOutput(job_id, pick(draw, None, 1, 2), pick(draw, 0, 1), pick(draw, 1, 2, 100))


def _lease_events(draw: Draw, sight: Sight, fits: Fits) -> c.LeaseEvents:
    name = mostly(draw, *CONSUMERS)
    row = sight.world.consumers.get(name)
    known = INSTANCES[0] if row is None or row.holder is None else row.holder
    return c.LeaseEvents(name, pick(draw, known, *INSTANCES), Ms(pick(draw, 1, 200, 1_000)))


def _acknowledge(draw: Draw, sight: Sight, fits: Fits) -> c.Acknowledge:
    name = mostly(draw, *CONSUMERS)
    row = sight.world.consumers.get(name)
    token, position = (1, 0) if row is None else (row.token, row.position)
    newest = sight.world.events.newest
    after = min(position + 1, newest)
    upto = pick(draw, after, after, position, newest + 1)
    error = pick(draw, None, "went\0wrong")
    return c.Acknowledge(name, max(1, near(draw, token)), upto, mostly(draw, False, True), error)


def _list_consumers(draw: Draw, sight: Sight, fits: Fits) -> c.ListConsumers:
    return c.ListConsumers()


def _read_dead_letters(draw: Draw, sight: Sight, fits: Fits) -> c.ReadDeadLetters:
    return c.ReadDeadLetters(mostly(draw, *CONSUMERS), pick(draw, 0, 0, 3), pick(draw, 1, 100))


def _count(draw: Draw, sight: Sight, fits: Fits) -> c.Count:
    return c.Count(pick(draw, None, PARTITIONS, ("gpu",), ("none", "gpu")))


def _read_events(draw: Draw, sight: Sight, fits: Fits) -> c.ReadEvents:
    return c.ReadEvents(pick(draw, 0, 1, 5, 200), pick(draw, 1, 3, 1_000))


ASKS: Final[Mapping[type, tuple[int, Fits, Ask]]] = MappingProxyType(
    {
        c.Register: (3, any_job, _register),
        c.Deregister: (1, any_job, _deregister),
        c.ListInstances: (1, any_job, _list_instances),
        c.Admit: (10, any_job, _admit),
        c.Enqueue: (6, any_job, _enqueue),
        c.Withdraw: (2, queued, _withdraw),
        c.Claim: (10, claimable, _claim),
        c.Start: (8, unstarted, _start),
        c.Heartbeat: (6, owned, _heartbeat),
        c.Output: (4, writable, _output),
        c.Complete: (6, writable, _complete),
        c.Release: (4, owned, _release),
        c.RequestCancel: (5, unfinished, _request_cancel),
        c.Requeue: (8, orphaned, _requeue),
        c.Settle: (5, orphaned, _settle),
        c.ExpireQueued: (6, expirable, _expire),
        c.Suspects: (3, suspect, _suspects),
        c.Delay: (10, suspect, _delay),
        c.Sweep: (16, suspect, _sweep),
        c.LookOverdue: (1, any_job, _look_overdue),
        c.Evict: (5, evictable, _evict),
        c.ForgetInstances: (1, any_job, _forget_instances),
        c.ForgetKeys: (1, any_job, _forget_keys),
        c.ForgetEvents: (1, any_job, _forget_events),
        c.ForgetConsumer: (1, any_job, _forget_consumer),
        c.Find: (2, any_job, _find),
        c.ReadRequest: (2, any_job, _read_request),
        c.ReadOutput: (3, printed, _read_output),
        c.LeaseEvents: (5, any_job, _lease_events),
        c.Acknowledge: (5, any_job, _acknowledge),
        c.ListConsumers: (2, any_job, _list_consumers),
        c.ReadDeadLetters: (4, any_job, _read_dead_letters),
        c.Count: (1, any_job, _count),
        c.ReadEvents: (1, any_job, _read_events),
    }
)
"""How often each command is asked, about which jobs, and how it is drawn."""


def a_command(draw: Draw, sight: Sight) -> c.Command[Any]:
    """Mostly a command that suits some job; any one otherwise."""
    jobs = sight.world.jobs.values()
    suits = {
        fits: fits is any_job or any(fits(sight, job) for job in jobs)
        for _, fits, _ in ASKS.values()
    }
    suited = [kind for kind, (often, fits, _) in ASKS.items() if suits[fits] for _ in range(often)]
    kind = pick(draw, *mostly(draw, suited, [*ASKS]))
    _, fits, ask = ASKS[kind]
    return ask(draw, sight, fits)


def instants(world: World) -> Iterator[int]:
    """The store times at which something falls due."""
    for job in world.jobs.values():
        yield from (
            due
            for due in (job.lease.deadline, job.queue_deadline, job.not_before)
            if due is not None
        )
        if job.finished_at is not None:
            yield from (job.finished_at + RETENTION_MS, job.finished_at + LATE_OUTPUT_MS)
    yield from (row.admitted_at + WINDOW_MS for row in world.keys.values())
    yield from (row.seen_at + INSTANCE_GC_MS for row in world.instances.values())
    yield from (row.expires_at for row in world.consumers.values())
