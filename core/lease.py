"""The lease: which moves there are, and the rule of each, in one place to be read top to bottom.

Rules that hold everywhere:

* time is `now`, the store clock in whole milliseconds; `deadline == now` is still alive;
* a write by an owner carries (owner, epoch) and is refused under any other;
* every grant, start, renewal and delay stamps the deadline anew: a stamp overwrites, it never
  takes the greater, and `beats` counts it, so that (epoch, beats) names one stamp;
* functions are total: they return the new lease, or the `Refusal` that says why not.

The functions read no clock and no policy: the caller says which ttl is stamped.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from attrs import frozen

from unswept.core.records import changed
from unswept.core.refusal import Refusal
from unswept.core.units import Ms, StoreMs


class Status(StrEnum):
    """Where a job stands; only the first two are active, only the last is open to healing."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    EXPIRED = "expired"
    ORPHANED = "orphaned"


class RequeueRule(StrEnum):
    """May another instance run this job again? Set once, at admit or enqueue."""

    NEVER = "never"
    ALLOWED = "allowed"


class Kind(StrEnum):
    """The name of each transition; those that change the status name its event too."""

    ADMIT = "admit"
    ENQUEUE = "enqueue"
    CLAIM = "claim"
    START = "start"
    RENEW = "renew"
    DELAY = "delay"
    ORPHAN = "orphan"
    COMPLETE = "complete"
    HEAL = "heal"
    RELEASE = "release"
    REQUEST_CANCEL = "request_cancel"
    CANCEL = "cancel"
    REQUEUE = "requeue"
    SETTLE = "settle"
    EXPIRE = "expire"
    WITHDRAW = "withdraw"
    EVICT = "evict"
    OUTPUT = "output"
    STALE_RESULT = "stale_result"


ACTIVE: Final = frozenset({Status.QUEUED, Status.RUNNING})
TERMINAL: Final = frozenset(
    {Status.COMPLETED, Status.FAILED, Status.CANCELED, Status.EXPIRED},
)
OUTCOMES: Final = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELED})
"""What an owner may complete a job as."""
SETTLEMENTS: Final = frozenset({Status.CANCELED, Status.FAILED})
"""What an authority may settle an orphan as."""


@frozen
class Move:
    """One row of the status table."""

    leaves: frozenset[Status]
    """The statuses that the move may leave."""
    reaches: frozenset[Status]
    """The statuses that it may end in."""
    epoch_step: int
    """1 where the move ends the hold that was, and with it every write under the old epoch."""


_QUEUED: Final = frozenset({Status.QUEUED})
_RUNNING: Final = frozenset({Status.RUNNING})
_ORPHANED: Final = frozenset({Status.ORPHANED})
_BACK: Final = frozenset({Status.QUEUED, Status.CANCELED})

MOVES: Final[Mapping[Kind, Move]] = MappingProxyType(
    {
        Kind.CLAIM: Move(_QUEUED, _RUNNING, 1),
        Kind.START: Move(_QUEUED, _RUNNING, 0),
        Kind.RENEW: Move(ACTIVE, ACTIVE, 0),
        Kind.DELAY: Move(ACTIVE, ACTIVE, 0),
        Kind.ORPHAN: Move(ACTIVE, _ORPHANED, 0),
        Kind.COMPLETE: Move(ACTIVE, OUTCOMES, 0),
        Kind.HEAL: Move(_ORPHANED, OUTCOMES, 0),
        Kind.RELEASE: Move(ACTIVE, _BACK, 1),
        Kind.REQUEST_CANCEL: Move(ACTIVE, ACTIVE, 0),
        Kind.CANCEL: Move(_QUEUED | _ORPHANED, frozenset({Status.CANCELED}), 1),
        Kind.REQUEUE: Move(_ORPHANED, _BACK, 1),
        Kind.SETTLE: Move(_ORPHANED, SETTLEMENTS, 1),
        Kind.EXPIRE: Move(_QUEUED, frozenset({Status.EXPIRED}), 1),
        Kind.WITHDRAW: Move(_QUEUED, frozenset({Status.FAILED}), 0),
        Kind.EVICT: Move(TERMINAL, frozenset(), 0),
    }
)
"""Every way out of a status. CLAIM, EXPIRE and, from queued, CANCEL are for jobs that are nobody's;
all the others are for jobs that have an owner."""


@frozen(slots=False)
class Lease:
    """All that lease rules read, and all that the proofs range over."""

    status: Status
    owner: str | None
    """The instance that answers for the job, kept when it ends or is orphaned, since only the
    owner may heal it; None once the epoch has moved on to nobody."""
    epoch: int
    """The fencing token."""
    beats: int
    """How often the deadline was stamped, over all epochs."""
    deadline: StoreMs | None
    """Store time after which the unrenewed lease may be swept."""
    cancel_requested_at: StoreMs | None
    """Store time of the first cancel request; no later one replaces it."""
    delayed_at: StoreMs | None
    """Store time of this epoch's one delay."""
    ttl_ms: Ms | None
    """The greatest ttl stamped under this epoch."""
    confirm_ms: Ms | None
    """The owner's window: how long a suspicion of this job must stand, whoever sweeps."""
    requeue: RequeueRule


def well_formed(lease: Lease) -> bool:
    """The shape that every transition keeps and that the databases' CHECKs enforce too."""
    active = lease.status in ACTIVE
    owned = lease.owner is not None
    return (
        (owned and active) == (lease.deadline is not None)
        and (owned or lease.status is not Status.RUNNING)
        and (owned or lease.status is not Status.ORPHANED)
        and (not owned or lease.epoch >= 1)
        and owned == (lease.ttl_ms is not None) == (lease.confirm_ms is not None)
        and (lease.delayed_at is None or owned)
        and lease.epoch >= 0
        and lease.beats >= 0
    )


def is_suspect(lease: Lease, now: StoreMs) -> bool:
    """Active, owned, and past its deadline; equal is alive."""
    return lease.status in ACTIVE and lease.deadline is not None and lease.deadline < now


# How a job is born ------------------------------------------------------------------------------


def enqueue(requeue_rule: RequeueRule) -> Lease:
    """A job that nobody owns until a claim: epoch 0, no deadline."""
    return Lease(
        status=Status.QUEUED,
        owner=None,
        epoch=0,
        beats=0,
        deadline=None,
        cancel_requested_at=None,
        delayed_at=None,
        ttl_ms=None,
        confirm_ms=None,
        requeue=requeue_rule,
    )


def admit(owner: str, ttl_ms: Ms, confirm_ms: Ms, requeue_rule: RequeueRule, now: StoreMs) -> Lease:
    """A job owned from birth, by the instance that will run it: epoch 1, first deadline."""
    return _grant(enqueue(requeue_rule), Status.QUEUED, owner, ttl_ms, confirm_ms, now)


# What a lease may become ------------------------------------------------------------------------


def claim(lease: Lease, owner: str, ttl_ms: Ms, confirm_ms: Ms, now: StoreMs) -> Lease | Refusal:
    """A queued job that is nobody's starts to run for `owner`, under a new epoch."""
    if lease.status not in MOVES[Kind.CLAIM].leaves:
        return _status_refusal(lease)
    if lease.owner is not None:
        return Refusal.OWNED
    if lease.cancel_requested_at is not None:
        return Refusal.CANCEL_PENDING
    return _grant(lease, Status.RUNNING, owner, ttl_ms, confirm_ms, now)


def start(
    lease: Lease, owner: str, epoch: int, ttl_ms: Ms, confirm_ms: Ms, now: StoreMs
) -> Lease | Refusal:
    """The owner's queued job starts to run; for a job that runs already nothing is stamped. (L7)"""
    if refusal := fence(lease, owner, epoch):
        return refusal
    if lease.status is Status.RUNNING:
        return lease
    if lease.status not in MOVES[Kind.START].leaves:
        return _status_refusal(lease)
    if lease.cancel_requested_at is not None:
        return Refusal.CANCEL_PENDING
    return changed(_stamp(lease, ttl_ms, confirm_ms, now), status=Status.RUNNING)


def renew(
    lease: Lease, owner: str, epoch: int, ttl_ms: Ms, confirm_ms: Ms, now: StoreMs
) -> Lease | Refusal:
    """One hold's part of a heartbeat. A lease past its deadline revives: it was not swept. (L8)"""
    if refusal := fence(lease, owner, epoch):
        return refusal
    if lease.status not in MOVES[Kind.RENEW].leaves:
        return _status_refusal(lease)
    return _stamp(lease, ttl_ms, confirm_ms, now)


def delay(lease: Lease, epoch: int, beats: int, now: StoreMs) -> Lease | Refusal:
    """Process evidence stamps a suspect once more per epoch, by the row's own ttl. (L9)"""
    if refusal := _seen_suspect(lease, epoch, beats, now):
        return refusal
    if lease.delayed_at is not None:
        return Refusal.DELAYED_BEFORE
    assert lease.ttl_ms is not None and lease.confirm_ms is not None  # an owned lease has both
    return changed(_stamp(lease, lease.ttl_ms, lease.confirm_ms, now), delayed_at=now)


def orphan(lease: Lease, epoch: int, beats: int, now: StoreMs) -> Lease | Refusal:
    """The sweep of a confirmed suspect; every condition is tested again in this write. (L1, L2)"""
    if refusal := _seen_suspect(lease, epoch, beats, now):
        return refusal
    return changed(lease, status=Status.ORPHANED, deadline=None)


def complete(lease: Lease, owner: str, epoch: int, outcome: Status) -> Lease | Refusal:
    """The owner's terminal write; from orphaned it heals, still under the same epoch. (L3, L4)"""
    if refusal := fence(lease, owner, epoch):
        return refusal
    if lease.status not in MOVES[Kind.COMPLETE].leaves | MOVES[Kind.HEAL].leaves:
        return _status_refusal(lease)
    return changed(lease, status=outcome, deadline=None)


def release(lease: Lease, owner: str, epoch: int) -> Lease | Refusal:
    """The owner gives a requeueable job back; under a pending cancel that cancels it. (L7)"""
    if refusal := fence(lease, owner, epoch):
        return refusal
    if lease.status not in MOVES[Kind.RELEASE].leaves:
        return _status_refusal(lease)
    if lease.requeue is RequeueRule.NEVER:
        return Refusal.NOT_REQUEUEABLE
    return _back_to_queue(lease)


def request_cancel(lease: Lease, now: StoreMs) -> Lease | Refusal:
    """Anybody's wish to end the job: an owner is asked, nobody's job is canceled at once. (L7)"""
    if lease.status in TERMINAL:
        return Refusal.ALREADY_TERMINAL
    asked = changed(
        lease,
        cancel_requested_at=now if lease.cancel_requested_at is None else lease.cancel_requested_at,
    )
    if lease.status is Status.ORPHANED or lease.owner is None:
        return _let_go(asked, Status.CANCELED)
    return asked


def requeue(lease: Lease, epoch: int, force: bool) -> Lease | Refusal:
    """An orphan goes back to the queue, fencing its old owner; `force` overrides `never`."""
    if refusal := _seen_orphan(lease, epoch):
        return refusal
    if lease.requeue is RequeueRule.NEVER and not force:
        return Refusal.NOT_REQUEUEABLE
    return _back_to_queue(lease)


def settle(lease: Lease, epoch: int, outcome: Status) -> Lease | Refusal:
    """An authority ends an orphan as canceled or failed, fencing its old owner."""
    if refusal := _seen_orphan(lease, epoch):
        return refusal
    return _let_go(lease, outcome)


def expire(lease: Lease, queue_deadline: StoreMs | None, now: StoreMs) -> Lease | Refusal:
    """A queued job that is nobody's and past its queue deadline is over; equal is not past."""
    if lease.status not in MOVES[Kind.EXPIRE].leaves:
        return _status_refusal(lease)
    if lease.owner is not None:
        return Refusal.OWNED
    if queue_deadline is None or queue_deadline >= now:
        return Refusal.NOT_DUE
    return _let_go(lease, Status.EXPIRED)


def withdraw(lease: Lease, owner: str, now: StoreMs) -> Lease | Refusal:
    """Whoever gave up an admit or enqueue takes it back: their own queued job fails at once."""
    if lease.status in MOVES[Kind.WITHDRAW].leaves and lease.owner == owner:
        return changed(lease, status=Status.FAILED, deadline=None)
    return request_cancel(lease, now)


def may_append(
    lease: Lease,
    owner: str,
    epoch: int,
    finished_at: StoreMs | None,
    late_output_ms: Ms,
    now: StoreMs,
) -> Refusal | None:
    """May this hold append output? Also while orphaned, and a little after its own end. (L3, L4)"""
    if refusal := fence(lease, owner, epoch):
        return refusal
    if finished_at is not None and finished_at + late_output_ms < now:
        return Refusal.TOO_LATE
    return None


def may_evict(
    lease: Lease, epoch: int, finished_at: StoreMs | None, retention_ms: Ms, now: StoreMs
) -> Refusal | None:
    """May the row go? Only a terminal one, after its retention. (L14)"""
    if lease.epoch != epoch:
        return Refusal.STALE_EPOCH
    if lease.status not in MOVES[Kind.EVICT].leaves:
        return Refusal.NOT_TERMINAL
    if finished_at is None or finished_at + retention_ms >= now:
        return Refusal.NOT_DUE
    return None


# What the rules share ---------------------------------------------------------------------------


def fence(lease: Lease, owner: str, epoch: int) -> Refusal | None:
    """The fence of every owner's write: the very epoch, and the very owner. (L3)"""
    if lease.epoch != epoch:
        return Refusal.STALE_EPOCH
    if lease.owner != owner:
        return Refusal.NOT_OWNER
    return None


def _seen_suspect(lease: Lease, epoch: int, beats: int, now: StoreMs) -> Refusal | None:
    """A sweep or a delay acts on the stamp that was seen, and only while it is past. (L2)"""
    if lease.epoch != epoch:
        return Refusal.STALE_EPOCH
    if lease.status not in MOVES[Kind.ORPHAN].leaves:
        return _status_refusal(lease)
    if lease.owner is None or lease.deadline is None:
        return Refusal.NOT_OWNER
    if lease.beats != beats:
        return Refusal.BEATS_MOVED
    if lease.deadline >= now:
        return Refusal.NOT_EXPIRED
    return None


def _seen_orphan(lease: Lease, epoch: int) -> Refusal | None:
    if lease.epoch != epoch:
        return Refusal.STALE_EPOCH
    if lease.status is not Status.ORPHANED:
        return Refusal.ALREADY_TERMINAL if lease.status in TERMINAL else Refusal.NOT_ORPHANED
    return None


def _status_refusal(lease: Lease) -> Refusal:
    return {
        Status.QUEUED: Refusal.NOT_STARTED,
        Status.RUNNING: Refusal.ALREADY_RUNNING,
        Status.ORPHANED: Refusal.ORPHANED,
    }.get(lease.status, Refusal.ALREADY_TERMINAL)


def _grant(
    lease: Lease, status: Status, owner: str, ttl_ms: Ms, confirm_ms: Ms, now: StoreMs
) -> Lease:
    """A new owner under a new epoch, with a first deadline."""
    return changed(
        lease,
        status=status,
        owner=owner,
        epoch=lease.epoch + 1,
        beats=lease.beats + 1,
        deadline=StoreMs(now + ttl_ms),
        delayed_at=None,
        ttl_ms=ttl_ms,
        confirm_ms=confirm_ms,
    )


def _stamp(lease: Lease, ttl_ms: Ms, confirm_ms: Ms, now: StoreMs) -> Lease:
    """A deadline stamped anew: it overwrites, so after a step back of the clock it shortens."""
    greatest = ttl_ms if lease.ttl_ms is None or lease.ttl_ms < ttl_ms else lease.ttl_ms
    return changed(
        lease,
        beats=lease.beats + 1,
        deadline=StoreMs(now + ttl_ms),
        ttl_ms=greatest,
        confirm_ms=confirm_ms,
    )


def _back_to_queue(lease: Lease) -> Lease:
    canceled = lease.cancel_requested_at is not None
    return _let_go(lease, Status.CANCELED if canceled else Status.QUEUED)


def _let_go(lease: Lease, status: Status) -> Lease:
    """The epoch moves on to nobody: whatever the old owner still sends is fenced."""
    return changed(
        lease,
        status=status,
        owner=None,
        epoch=lease.epoch + 1,
        deadline=None,
        delayed_at=None,
        ttl_ms=None,
        confirm_ms=None,
    )
