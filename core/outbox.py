"""Who reads the events, and how far: a consumer's position, and the lease under which it moves.

* the events are read in the order of their numbers (`ReadEvents`), so each job's come in order;
* a consumer is one position: whatever is behind it is delivered again until it is acknowledged;
* one holder at a time, by a lease of its own: only the newest token moves the position;
* `attempts` counts the grants since the position last moved. From the second on the holder reads
  one event at a time, so that the one that fails every time is found, and is made a dead letter;
* the events of a job go together (`may_forget`), and their numbers are never used again.
"""

from __future__ import annotations

from attrs import frozen

from unswept.core.records import changed
from unswept.core.refusal import Refusal
from unswept.core.units import Ms, StoreMs


@frozen(slots=False)
class Consumer:
    """One reader of the events, whoever reads for it at the time."""

    name: str
    position: int
    """The number of the last event that was acknowledged, or made a dead letter."""
    token: int
    """How often its lease was granted."""
    holder: str | None
    """Whose lease it is; None: it was given back."""
    expires_at: StoreMs
    """Store time after which another may take the lease; equal is alive."""
    attempts: int
    """Grants since the position last moved."""


@frozen(slots=False)
class DeadLetter:
    """An event that a consumer gave up, and why."""

    consumer: str
    number: int
    at: StoreMs
    attempts: int
    error: str


def grant(
    row: Consumer | None, name: str, holder: str, lease_ms: Ms, now: StoreMs
) -> Consumer | Refusal:
    """The lease for `holder`: its own once more, stamped anew; or one that nobody has."""
    expires_at = StoreMs(now + lease_ms)
    if row is None:
        return Consumer(name, 0, 1, holder, expires_at, 1)
    alive = is_leased(row, now)
    if alive and row.holder != holder:
        return Refusal.LEASED
    if alive:
        return changed(row, expires_at=expires_at)
    return changed(
        row,
        token=row.token + 1,
        holder=holder,
        expires_at=expires_at,
        attempts=row.attempts + 1,
    )


def is_leased(row: Consumer, now: StoreMs) -> bool:
    """Does somebody have its lease? Equal is alive."""
    return row.holder is not None and row.expires_at >= now


def acknowledge(
    row: Consumer, token: int, upto: int, newest: int, last: bool
) -> Consumer | Refusal:
    """The position moves to `upto`, no further than the newest event; with `last` the lease is
    given back. What was acknowledged before is so once more, and changes nothing."""
    if row.token != token:
        return Refusal.STALE_TOKEN
    if row.holder is None:
        return row if upto <= row.position else Refusal.STALE_TOKEN
    if upto > newest:
        return Refusal.AHEAD
    return changed(
        row,
        position=max(row.position, upto),
        attempts=0 if upto > row.position else row.attempts,
        holder=None if last else row.holder,
    )


def may_forget(
    number: int,
    at: StoreMs,
    newest: int,
    behind: int,
    given_up: bool,
    event_retention_ms: Ms,
    now: StoreMs,
) -> bool:
    """May the events of a job go, the last of which, that of its eviction, has this number and
    time? Its row went with that event; a job that has one keeps them all, for they tell repeats.

    The retention is past, by the store clock; every consumer has come so far (`behind`: the last
    of them); none of the job's events is a dead letter (`given_up`); and it is not the newest event
    of all, whose number says how far the events have come. (F5)"""
    old = at + event_retention_ms < now
    return old and number <= behind and number < newest and not given_up


def how_many(attempts: int, limit: int) -> int:
    """How many events to read under a grant: all that are wanted, or one after a failure."""
    return 1 if attempts > 1 else limit
