"""What the laws look at: plain values that a simulator, an explorer or an audit can fill in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from attrs import frozen

from unswept.core.commands import (
    Acknowledge,
    Command,
    Evict,
    ForgetConsumer,
    ForgetEvents,
    LeaseEvents,
)
from unswept.core.event_log import EventKey, EventLog
from unswept.core.heart import Phase
from unswept.core.job import Job
from unswept.core.lease import RequeueRule
from unswept.core.outbox import Consumer
from unswept.core.units import MonoMs, Ms, StoreMs
from unswept.core.values import Event


class Stamp(NamedTuple):
    """The last accepted grant, start or renewal of a job: law L1's h and t."""

    epoch: int
    at: StoreMs
    ttl_ms: Ms


@frozen
class Claimer:
    """What an instance has claimed with so far, for law F1."""

    last_no: int = 0
    """The greatest claim number that it has used."""
    max_held: int | None = None
    """Its budget, as it registered last."""


OF_OUTBOX: Final = (LeaseEvents, Acknowledge, ForgetConsumer, ForgetEvents, Evict)
"""What writes consumers and dead letters, or takes events away; and evictions, which must not."""


class Reader(NamedTuple):
    """A consumer by what its store has answered so far, whatever its row says: for law F5."""

    token: int = 0
    """The greatest that it was granted."""
    position: int = 0
    """The furthest that it was told to have come."""
    holder: str | None = None
    """Whose its lease was last; None: it was given back."""
    expires_at: StoreMs = StoreMs(0)
    """Store time up to which it was leased."""
    attempts: int = 0
    """New tokens since it last moved."""
    given_up: frozenset[int] = frozenset()
    """The events that it made dead letters."""

    def is_leased(self, now: StoreMs) -> bool:
        """Is its lease alive, somebody's?"""
        return self.holder is not None and now <= self.expires_at

    def leased(self, holder: str, token: int, expires_at: StoreMs) -> Reader:
        """After a lease that was granted, or kept: then the token is the one that it had."""
        attempts = self.attempts + (token > self.token)
        newest = max(self.token, token)
        return self._replace(token=newest, holder=holder, expires_at=expires_at, attempts=attempts)

    def acknowledged(self, upto: int, last: bool, gives_up: bool) -> Reader:
        """After an acknowledgement that was taken, under whatever token."""
        holder = None if last else self.holder
        if upto <= self.position:
            return self._replace(holder=holder)
        given_up = self.given_up | {upto} if gives_up else self.given_up
        return self._replace(position=upto, holder=holder, attempts=0, given_up=given_up)


class Outbox(NamedTuple):
    """What a command came to that leases, acknowledges or forgets, or that evicts: for law F5."""

    told: EventLog
    """All events that were there before it."""
    readers: Mapping[str, Reader]
    """Each consumer before it."""
    row: Consumer | None
    """After it, of the consumer that it names; None: there is none."""
    letters: tuple[tuple[str, int], ...]
    """The dead letters that it left: whose, and of which event."""
    forgotten: tuple[str, ...]
    """The jobs whose events it took."""


class Step(NamedTuple):
    """One command that a store executed, and what it changed."""

    now: StoreMs
    command: Command[Any]
    reply: Any
    rows: tuple[tuple[Job | None, Job | None], ...]
    """The jobs that changed, before and after, in the order of the changes; None: no row."""
    jobs: Mapping[str, Job]
    """All jobs as they were before."""
    events: tuple[Event, ...]
    """The events that it left."""
    output: bool
    """It stored a chunk of output."""
    stamps: Mapping[str, Stamp]
    """Each job's last accepted stamp before this step."""
    used_ids: Collection[str]
    """Every id that had been used before this step."""
    known_events: Collection[EventKey]
    """The keys of all events before this step."""
    twin: Job | None
    """Of an admit: the newest job under its principal and request key."""
    claimer: Claimer = Claimer()
    """Of a claim: what its owner had claimed with before."""
    newly_used: tuple[str, ...] = ()
    """The ids that this step records as used."""
    left_behind: tuple[str, ...] = ()
    """Jobs whose rows it removed, while a request, a result or output of theirs stays."""
    outbox: Outbox | None = None
    """None: its command has nothing to do with consumers and old events."""

    @property
    def is_eviction(self) -> bool:
        """May this step remove rows?"""
        return isinstance(self.command, Evict)

    def before(self, job_id: str) -> Job | None:
        """A job as it was before this step."""
        return self.jobs.get(job_id)

    def after(self, job_id: str) -> Job | None:
        """A job as it is after this step."""
        for before, after in reversed(self.rows):
            if (before is not None and before.id == job_id) or (
                after is not None and after.id == job_id
            ):
                return after
        return self.jobs.get(job_id)


@frozen
class Sight:
    """One target of a sweep, or one thing that is to be cleaned up, as the truth about its window
    shows it, on the sender's clock."""

    job_id: str
    """Of an instance that is forgotten: its own id."""
    window_ms: Ms
    stood_still_ms: Ms
    """How long the store's (epoch, beats) had been the one that is swept; how long every look had
    found due what is cleaned up."""
    longest_gap_ms: Ms
    """The longest gap between the sender's accepted beats in the window, its end included."""
    gap_ms: Ms
    """The longest gap that the sender's policy allows: to a sweeper a close one, to a housekeeper
    a steady one."""


@frozen
class Send:
    """One command that an instance sends."""

    instance: str
    command: Command[Any]
    phase: Phase
    """The phase of its heart at that moment."""
    repeat: bool
    """It has been sent before and was not answered."""
    sights: tuple[Sight, ...] = ()


@frozen
class Work:
    """A step of work that an instance begins, with what it last heard of the job's lease."""

    instance: str
    job_id: str
    requeue: RequeueRule
    now: MonoMs
    stamped_from: MonoMs | None
    """The first send of the last stamp that it heard of; None: it heard of none."""
    ttl_ms: Ms
    margin_ms: Ms
    epoch: int = 0
    """Under which it works."""
    reached: int = 0
    """The epoch that the store's row has reached by then."""


@frozen
class Delivery:
    """A consumer's progress by one event, or by one acknowledgement."""

    consumer: str
    number: int
    """The event that was handled, or up to which was acknowledged."""
    done: int
    """Up to this number every event had been handled, or made a dead letter."""
    handled: bool
    """It was handled; else it was acknowledged."""


@frozen
class SweepTruth:
    """The truth about a job that was orphaned just now, in true milliseconds."""

    job_id: str
    sweeper: str
    owner: str
    owner_lives: bool
    """The owner runs, and holds this job under this epoch."""
    ttl_ms: Ms
    heartbeat_ms: Ms
    """Both of the owner's policy."""
    silent_ms: Ms
    """Time since the last accepted stamp."""
    shared_fault: bool
    """Since then there was a time in which nobody could renew, or the store clock stepped."""
    own_fault_ms: Ms
    """Time lost to faults of the owner alone: since the last stamp; where there was a shared fault,
    since one heartbeat before its end."""
    flaps: int
    """Interruptions too short for the sweeper's heart to notice, since the last long one."""
    flaps_allowed: int
    """How many of them the window allows."""


@frozen
class Neglect:
    """An owned, active job, as the truth shows it, in true milliseconds."""

    job_id: str
    silent_ms: Ms
    """Time since the last accepted stamp or delay."""
    bound_ms: Ms
    """Law L13's bound for this job."""
    watcher: str
    """The instance, not holding the job, that has been steady without a gap for longest."""
    watched_ms: Ms
    """For how long, with no lock on the row and no step back of the store clock."""
