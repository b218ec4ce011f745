"""What a store answers: always a value that says what happened, never None for "maybe"."""

from __future__ import annotations

from enum import StrEnum

from attrs import frozen

from unswept.core.job import Job, Process, Transport
from unswept.core.lease import Kind, RequeueRule, Status
from unswept.core.outbox import Consumer, DeadLetter
from unswept.core.refusal import Refusal
from unswept.core.units import Ms, StoreMs
from unswept.core.values import Chunk, Event, Instance, Request, Result


@frozen
class Standing:
    """What stands in the store for one job, at the time of the reply."""

    job_id: str
    status: Status
    owner: str | None
    epoch: int
    beats: int
    deadline: StoreMs | None
    cancel_requested_at: StoreMs | None

    @classmethod
    def of(cls, job: Job) -> Standing:
        """The standing of a job."""
        lease = job.lease
        return cls(
            job.id,
            lease.status,
            lease.owner,
            lease.epoch,
            lease.beats,
            lease.deadline,
            lease.cancel_requested_at,
        )


@frozen
class Accepted:
    """The command took effect, now or when it came before."""

    at: StoreMs
    """Store time of this execution."""
    standing: Standing
    transition: Kind | None
    """What was done; None where this is a repeat, which at most recorded the job's process."""

    @property
    def repeated(self) -> bool:
        """The command had taken effect before."""
        return self.transition is None


@frozen
class Refused:
    """Nothing changed; `standing` is what stands, None where there is no row."""

    at: StoreMs
    reason: Refusal
    standing: Standing | None


@frozen
class Joined:
    """An admit that found its twin: the caller gets that job instead of a new one. (L15)"""

    at: StoreMs
    standing: Standing


@frozen
class Withdrawn:
    """There was no row: the id is spent, and an admit or enqueue that comes late does nothing."""

    at: StoreMs
    job_id: str


@frozen
class Registered:
    """The instance is known; `claim_no` is the last claim number that the store knows of it."""

    at: StoreMs
    claim_no: int


@frozen
class Deregistered:
    """The instance is not known, whether it was before or not."""

    at: StoreMs


class Answer(StrEnum):
    """What a heartbeat says to one hold: the first of these that applies. (L8)"""

    ABSENT = "absent"
    """No such row: evicted, or never there."""
    BUSY = "busy"
    """The row is locked by somebody: ask again after a quarter of a heartbeat."""
    FENCED = "fenced"
    """Another epoch or owner: the hold has ended, nothing more that it writes lands."""
    TERMINAL = "terminal"
    """The job is over under this very epoch."""
    ORPHANED = "orphaned"
    """Swept, and not renewed; completing under this epoch still heals it."""
    RENEWED = "renewed"
    """The deadline was stamped anew."""


@frozen
class HoldAnswer:
    """The one answer to one hold of a heartbeat."""

    job_id: str
    epoch: int
    answer: Answer
    deadline: StoreMs | None = None
    """Of a renewed hold."""
    cancel_requested_at: StoreMs | None = None
    """Of a renewed or orphaned hold. (L7)"""


@frozen
class Beaten:
    """A beat that was accepted: the renewal statement ran, also if there was nothing to renew."""

    at: StoreMs
    answers: tuple[HoldAnswer, ...]
    """One per hold, in the order in which the heartbeat named them."""
    locked: tuple[str, ...]
    """Watched jobs whose rows somebody has locked, so that their owner cannot renew them either."""
    registered: bool
    """False: the store does not know this instance (any more); it should register."""


@frozen
class Suspect:
    """An active, owned job past its deadline, as one look at the store shows it."""

    job_id: str
    owner: str
    epoch: int
    beats: int
    deadline: StoreMs
    ttl_ms: Ms
    confirm_ms: Ms
    requeue: RequeueRule
    delayed: bool
    """Process evidence has been used in this epoch."""
    process: Process | None


@frozen
class SuspectsPage:
    """Suspects in the order of their ids; `more` says that the page ended before they did."""

    at: StoreMs
    suspects: tuple[Suspect, ...]
    more: bool
    held: int | None = None
    """How many active jobs have an owner; None where it was not asked."""


@frozen
class SweepAnswer:
    """What became of one target of a sweep, an eviction or a clean-up."""

    job_id: str
    refusal: Refusal | None
    """None: done, by this execution or by an earlier one of the same command."""
    repeated: bool = False


@frozen
class Swept:
    """One answer per target, in the order in which the sweep named them."""

    at: StoreMs
    answers: tuple[SweepAnswer, ...]


@frozen
class Evicted:
    """One answer per target, in the order in which the eviction named them."""

    at: StoreMs
    answers: tuple[SweepAnswer, ...]


@frozen
class Forgotten:
    """How many of the named rows went."""

    at: StoreMs
    count: int


@frozen
class Overdue:
    """What housekeeping may look at a second time, each list in a bounded batch."""

    at: StoreMs
    evictable: tuple[tuple[str, int], ...]
    """(job id, epoch) of terminal jobs past their retention."""
    expirable: tuple[tuple[str, int], ...]
    """(job id, epoch) of queued jobs that are nobody's and past their queue deadline."""
    silent: tuple[tuple[str, StoreMs], ...]
    """(instance, last seen) of instances that have been silent for too long."""
    keys: tuple[tuple[str, str, str], ...]
    """(principal, request key, job id) of dedup keys older than the window."""
    events: tuple[str, ...] = ()
    """Evicted jobs whose events are past their retention, and are nobody's dead letters."""


@frozen
class Grant:
    """One job that a claim took, with what it needs to run."""

    standing: Standing
    transport: Transport
    requeue: RequeueRule
    """Decides whether work may go on after its local deadline. (L11)"""
    attempts: int
    request: Request


@frozen
class Claimed:
    """The jobs that this claim number took and that are still held; none: nothing was to be had."""

    at: StoreMs
    grants: tuple[Grant, ...]
    repeated: bool


@frozen
class OutputPage:
    """Chunks in the order of their numbers; `more` says that the page ended before they did."""

    at: StoreMs
    epoch: int
    chunks: tuple[Chunk, ...]
    more: bool


@frozen
class Found:
    """A job as it stands, who asked for it, and its result if it ended."""

    at: StoreMs
    job: Job
    principal: str | None
    request_key: str | None
    result: Result | None


@frozen
class RequestRead:
    """A job's request, payload included."""

    at: StoreMs
    request: Request


@frozen
class PartitionCount:
    """How many jobs of a partition are not over, by where they stand."""

    partition: str
    waiting: int = 0
    """Queued, and nobody's: the depth of the queue."""
    oldest_at: StoreMs | None = None
    """When the oldest of those that wait was enqueued."""
    queued: int = 0
    """Queued, and held by an owner."""
    running: int = 0
    orphaned: int = 0

    @property
    def held(self) -> int:
        """Jobs that an owner answers for."""
        return self.queued + self.running


@frozen
class Counts:
    """One look at all jobs that are not over; terminal ones are not counted."""

    at: StoreMs
    partitions: tuple[PartitionCount, ...]
    """Those that were asked for, in that order, with zeros; else those that have such jobs, in the
    order of their names."""

    @property
    def total(self) -> PartitionCount:
        """The sum over these partitions, under the name of none."""
        rows = self.partitions
        oldest = [row.oldest_at for row in rows if row.oldest_at is not None]
        return PartitionCount(
            "",
            sum(row.waiting for row in rows),
            min(oldest, default=None),
            sum(row.queued for row in rows),
            sum(row.running for row in rows),
            sum(row.orphaned for row in rows),
        )


@frozen
class EventsPage:
    """Events in the order in which they were written; `next_after` continues behind them."""

    at: StoreMs
    events: tuple[Event, ...]
    next_after: int


@frozen
class EventsLeased:
    """The consumer's lease is the holder's: read behind `position`, acknowledge with `token`."""

    at: StoreMs
    token: int
    position: int
    attempts: int
    """Grants since the position last moved; see `outbox.how_many`."""
    expires_at: StoreMs
    renewed: bool
    """It was the holder's already."""


@frozen
class Acknowledged:
    """So far the consumer has come."""

    at: StoreMs
    position: int
    repeated: bool
    """Nothing moved: it had been acknowledged before."""


@frozen
class Consumers:
    """All consumers in the order of their names, and the number of the newest event."""

    at: StoreMs
    newest: int
    consumers: tuple[Consumer, ...]


@frozen
class DeadLettersPage:
    """A consumer's dead letters in the order of their numbers; `more` says that the page ended
    before they did."""

    at: StoreMs
    letters: tuple[DeadLetter, ...]
    more: bool


@frozen
class Instances:
    """All registered instances, in the order of their ids."""

    at: StoreMs
    instances: tuple[Instance, ...]
