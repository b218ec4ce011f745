"""The job: its lease, and the facts that the transitions stamp beside it.

Each function applies the rule of the same name in `unswept.core.lease` and keeps the facts. No rule
of the lease reads a fact, but `queue_deadline` and `finished_at` where its signature says so.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from attrs import frozen

from unswept.core import lease as rules
from unswept.core.checks import check_count, check_duration, check_id
from unswept.core.lease import Kind, Lease, RequeueRule, Status
from unswept.core.records import changed
from unswept.core.refusal import Refusal
from unswept.core.units import Ms, StoreMs


class Transport(StrEnum):
    """What carries the work: it decides which ttl a renewal stamps, and nothing else."""

    PROCESS = "process"
    HTTP = "http"


_HTTP: Final = Transport.HTTP
"""Every renewal asks for it, and a member is found more slowly in its enum."""


class OnOrphan(StrEnum):
    """A job's policy: what the sweep that orphans it does next, in the same step."""

    MARK = "mark"
    """Nothing: it may heal, until an authority requeues, settles or cancels it."""
    REQUEUE = "requeue"
    """It goes back to the queue, fencing its owner; after `max_attempts` it fails."""
    FAIL = "fail"
    """It fails, fencing its owner."""
    HOLD = "hold"
    """Nothing, and its event says that the outcome is unknown: a person decides."""


@frozen
class Terms:
    """What an owner's policy stamps on its jobs, in milliseconds; see `LeasePolicy.terms`."""

    lease_ttl_ms: Ms
    http_grace_ms: Ms
    first_beat_ttl_ms: Ms
    confirm_ms: Ms

    def __attrs_post_init__(self) -> None:
        """Four durations; how they must relate is the policy's business."""
        check_duration("lease_ttl_ms", self.lease_ttl_ms)
        check_duration("http_grace_ms", self.http_grace_ms)
        check_duration("first_beat_ttl_ms", self.first_beat_ttl_ms)
        check_duration("confirm_ms", self.confirm_ms)

    def ttl_ms(self, transport: Transport) -> Ms:
        """The ttl of an admit, start or renewal for a job of this transport."""
        return self.http_grace_ms if transport is _HTTP else self.lease_ttl_ms


@frozen
class Process:
    """A process as evidence: the number alone proves nothing, for numbers are used again."""

    pid: int
    start: int
    """The process's start time as its host counts it (on Linux, ticks since boot)."""
    boot_id: str
    """The boot (and pid namespace) in which `pid` and `start` mean anything."""

    def __attrs_post_init__(self) -> None:
        """Whole numbers and a printable boot id."""
        check_count("pid", self.pid)
        check_count("start", self.start)
        check_id("boot_id", self.boot_id)


@frozen(slots=False)
class Job:
    """One row of the store. All times are store clock milliseconds."""

    id: str
    lease: Lease
    transport: Transport
    admitted_at: StoreMs
    partition: str = ""
    labels: tuple[str, ...] = ()
    """What a claim must offer, sorted; a database keeps the number of the set."""
    priority: int = 0
    """Lower is claimed sooner."""
    attempts: int = 0
    max_attempts: int | None = None
    on_orphan: OnOrphan = OnOrphan.MARK
    queue_deadline: StoreMs | None = None
    not_before: StoreMs | None = None
    claim_no: int | None = None
    beat_at: StoreMs | None = None
    """When the last grant, start or renewal was accepted."""
    started_at: StoreMs | None = None
    finished_at: StoreMs | None = None
    orphaned_at: StoreMs | None = None
    process: Process | None = None


def admit(
    job_id: str,
    owner: str,
    transport: Transport,
    requeue_rule: RequeueRule,
    on_orphan: OnOrphan,
    max_attempts: int | None,
    terms: Terms,
    now: StoreMs,
) -> Job:
    """A new job, owned from birth by the instance that will run it."""
    lease = rules.admit(owner, terms.ttl_ms(transport), terms.confirm_ms, requeue_rule, now)
    return Job(
        job_id,
        lease,
        transport,
        admitted_at=now,
        attempts=1,
        max_attempts=max_attempts,
        on_orphan=on_orphan,
        beat_at=now,
    )


def enqueue(
    job_id: str,
    transport: Transport,
    requeue_rule: RequeueRule,
    on_orphan: OnOrphan,
    max_attempts: int | None,
    partition: str,
    priority: int,
    queue_deadline: StoreMs | None,
    not_before: StoreMs | None,
    labels: tuple[str, ...],
    now: StoreMs,
) -> Job:
    """A new job that is nobody's until a claim."""
    return Job(
        job_id,
        rules.enqueue(requeue_rule),
        transport,
        admitted_at=now,
        partition=partition,
        labels=labels,
        priority=priority,
        max_attempts=max_attempts,
        on_orphan=on_orphan,
        queue_deadline=queue_deadline,
        not_before=not_before,
    )


def claim(job: Job, owner: str, claim_no: int, terms: Terms, now: StoreMs) -> Job | Refusal:
    """A queued job starts to run for its claimer; its first deadline is the first beat's."""
    if job.not_before is not None and job.not_before > now:
        return Refusal.NOT_DUE
    lease = rules.claim(job.lease, owner, terms.first_beat_ttl_ms, terms.confirm_ms, now)
    if isinstance(lease, Refusal):
        return lease
    return changed(
        job,
        lease=lease,
        claim_no=claim_no,
        attempts=job.attempts + 1,
        queue_deadline=None,
        beat_at=now,
        started_at=now,
        process=None,
    )


def start(
    job: Job, owner: str, epoch: int, process: Process | None, terms: Terms, now: StoreMs
) -> Job | Refusal:
    """The work begins. On a job that runs already this records its process, once."""
    ttl_ms = terms.ttl_ms(job.transport)
    lease = rules.start(job.lease, owner, epoch, ttl_ms, terms.confirm_ms, now)
    if isinstance(lease, Refusal):
        return lease
    if lease is job.lease:
        return changed(job, process=job.process or process)
    return changed(job, lease=lease, beat_at=now, started_at=now, process=process)


def renew(job: Job, owner: str, epoch: int, terms: Terms, now: StoreMs) -> Job | Refusal:
    """One hold's part of a heartbeat."""
    ttl_ms = terms.ttl_ms(job.transport)
    lease = rules.renew(job.lease, owner, epoch, ttl_ms, terms.confirm_ms, now)
    return lease if isinstance(lease, Refusal) else changed(job, lease=lease, beat_at=now)


def delay(job: Job, epoch: int, beats: int, now: StoreMs) -> Job | Refusal:
    """Process evidence delays a sweep. It is no beat of the owner's: `beat_at` stays."""
    return _with_lease(job, rules.delay(job.lease, epoch, beats, now))


def orphan(job: Job, epoch: int, beats: int, now: StoreMs) -> Job | Refusal:
    """The sweep of a confirmed suspect."""
    lease = rules.orphan(job.lease, epoch, beats, now)
    return lease if isinstance(lease, Refusal) else changed(job, lease=lease, orphaned_at=now)


def next_by_policy(on_orphan: OnOrphan, attempts: int, max_attempts: int | None) -> Kind | None:
    """What the sweep does with an orphan that it has just made; None: it leaves it."""
    if on_orphan is OnOrphan.REQUEUE:
        spent = max_attempts is not None and attempts >= max_attempts
        return Kind.SETTLE if spent else Kind.REQUEUE
    return Kind.SETTLE if on_orphan is OnOrphan.FAIL else None


def by_policy(job: Job, kind: Kind, now: StoreMs) -> Job | Refusal:
    """The orphan after that: back in the queue, or failed."""
    if kind is Kind.REQUEUE:
        return requeue(job, job.lease.epoch, force=False, not_before=None, now=now)
    return settle(job, job.lease.epoch, Status.FAILED, now)


def complete(job: Job, owner: str, epoch: int, outcome: Status, now: StoreMs) -> Job | Refusal:
    """The owner's terminal write; from orphaned it heals."""
    return _with_end(job, rules.complete(job.lease, owner, epoch, outcome), now)


def release(
    job: Job, owner: str, epoch: int, not_before: StoreMs | None, now: StoreMs
) -> Job | Refusal:
    """The owner gives the job back, to be claimed at `not_before` at the earliest."""
    lease = rules.release(job.lease, owner, epoch)
    return lease if isinstance(lease, Refusal) else _unowned(job, lease, not_before, now)


def request_cancel(job: Job, now: StoreMs) -> Job | Refusal:
    """Anybody's wish to end the job."""
    return _with_end(job, rules.request_cancel(job.lease, now), now)


def requeue(
    job: Job, epoch: int, force: bool, not_before: StoreMs | None, now: StoreMs
) -> Job | Refusal:
    """An orphan goes back to the queue, to be claimed at `not_before` at the earliest."""
    lease = rules.requeue(job.lease, epoch, force)
    return lease if isinstance(lease, Refusal) else _unowned(job, lease, not_before, now)


def settle(job: Job, epoch: int, outcome: Status, now: StoreMs) -> Job | Refusal:
    """An authority ends an orphan."""
    return _with_end(job, rules.settle(job.lease, epoch, outcome), now)


def expire(job: Job, now: StoreMs) -> Job | Refusal:
    """Nobody claimed the job in time."""
    return _with_end(job, rules.expire(job.lease, job.queue_deadline, now), now)


def withdraw(job: Job, owner: str, now: StoreMs) -> Job | Refusal:
    """Whoever gave up the admit or enqueue takes it back."""
    return _with_end(job, rules.withdraw(job.lease, owner, now), now)


def _with_lease(job: Job, lease: Lease | Refusal) -> Job | Refusal:
    return lease if isinstance(lease, Refusal) else changed(job, lease=lease)


def _with_end(job: Job, lease: Lease | Refusal, now: StoreMs) -> Job | Refusal:
    """The lease as it is now, with the time of its end where it has ended."""
    if isinstance(lease, Refusal):
        return lease
    return changed(
        job, lease=lease, finished_at=now if lease.status in rules.TERMINAL else job.finished_at
    )


def _unowned(job: Job, lease: Lease, not_before: StoreMs | None, now: StoreMs) -> Job:
    """Back in the queue, without the marks of the hold that was; or canceled, with its history."""
    if lease.status in rules.TERMINAL:
        return changed(job, lease=lease, finished_at=now)
    return changed(
        job,
        lease=lease,
        not_before=not_before,
        claim_no=None,
        beat_at=None,
        started_at=None,
        orphaned_at=None,
        process=None,
    )
