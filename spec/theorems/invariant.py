"""One invariant that every move keeps, with what the lease does not say about itself as ghosts.

The ghosts are the last stamp by an owner (when, for how long, under which epoch) and the last
sweep. No store holds them: they stand only here, to say in one sentence what no sweep can undo. As
every birth has the invariant and every move keeps it, every lease that any history of commands can
reach has it, however long the history. Nothing is assumed of the store clock, which may step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import frozen

from unswept.core import lease as rules
from unswept.core.lease import Lease, RequeueRule, Status, well_formed
from unswept.core.refusal import Refusal
from unswept.core.units import Ms, StoreMs
from unswept.spec.theorems.drawn import Asked, Name
from unswept.spec.theorems.steps import MOVES, STAMPING, Move
from unswept.spec.theorems.theorem import Edit, Theorem, theorem

INVARIANT: Final = "invariant"


@frozen
class Ghosts:
    """What has happened to a lease."""

    stamped_at: StoreMs
    """The store time of the last grant, start or renewal."""
    stamped_ms: Ms
    """The ttl that it stamped."""
    stamped_epoch: int
    swept_at: StoreMs
    """The store time of the last sweep."""


def stands(lease: Lease, past: Ghosts) -> bool:
    """The invariant: the lease is well-formed; while it is owned, its last stamp is of its own
    epoch, and its greatest ttl no shorter than that stamp's; its deadline is the stamp's, or later
    if it was delayed; and if it was swept, the stamp's whole ttl had run."""
    if not well_formed(lease):
        return False
    if lease.owner is None or lease.ttl_ms is None:
        return True
    ends = past.stamped_at + past.stamped_ms
    if past.stamped_epoch != lease.epoch or not 1 <= past.stamped_ms <= lease.ttl_ms:
        return False
    if lease.status is Status.ORPHANED:
        return past.swept_at > ends
    if lease.deadline is None:
        return True
    return lease.deadline == ends or (lease.delayed_at is not None and lease.deadline > ends)


def _after(move: Move, before: Lease, after: Lease, past: Ghosts, asked: Asked) -> Ghosts:
    """The ghosts after an accepted move; a start of a job that runs stamps nothing."""
    if move.name in STAMPING and after is not before:
        return Ghosts(asked.now, asked.ttl_ms, after.epoch, past.swept_at)
    if move.name == "orphan":
        return Ghosts(past.stamped_at, past.stamped_ms, past.stamped_epoch, asked.now)
    return past


def _keeps_the_invariant(move: Move) -> Theorem:
    def claim(lease: Lease, past: Ghosts, asked: Asked) -> bool | None:
        after = move.ask(lease, asked)
        if isinstance(after, Refusal) or asked.ttl_ms < 1 or not stands(lease, past):
            return None
        return stands(after, _after(move, lease, after, past, asked))

    return Theorem(
        f"{move.name}_keeps_the_invariant",
        INVARIANT,
        f"A {move.name} keeps: a deadline is its last stamp's, later only if delayed, and a lease "
        "that was swept had run for its whole ttl.",
        claim,
        _BREAKS[move.name],
    )


_BREAKS: Final[Mapping[str, Edit]] = {
    "claim": Edit(rules._grant, "StoreMs(now + ttl_ms)", "StoreMs(now + confirm_ms)"),
    "start": Edit(rules._stamp, "StoreMs(now + ttl_ms)", "StoreMs(now + greatest)"),
    "renew": Edit(rules._stamp, "now + ttl_ms", "max(now + ttl_ms, lease.deadline or 0)"),
    "delay": Edit(rules._seen_suspect, "lease.deadline >= now", "False"),
    "orphan": Edit(rules._seen_suspect, "lease.deadline >= now", "lease.deadline > now"),
    "complete": Edit(rules.complete, ", deadline=None", ""),
    "release": Edit(rules._let_go, "deadline=None", "deadline=lease.deadline"),
    "request_cancel": Edit(rules.request_cancel, "Status.CANCELED", "Status.ORPHANED"),
    "requeue": Edit(rules._let_go, "owner=None", "owner=lease.owner"),
    "settle": Edit(rules._let_go, "ttl_ms=None", "ttl_ms=lease.ttl_ms"),
    "expire": Edit(rules._let_go, "status=status", "status=Status.ORPHANED"),
    "withdraw": Edit(rules.withdraw, "status=Status.FAILED", "status=Status.QUEUED"),
}


def an_admit_begins_the_invariant(
    owner: Name, ttl_ms: Ms, confirm_ms: Ms, requeue: RequeueRule, now: StoreMs, swept_at: StoreMs
) -> bool | None:
    """An admitted lease has the invariant."""
    if ttl_ms < 1:
        return None
    lease = rules.admit(owner, ttl_ms, confirm_ms, requeue, now)
    return stands(lease, Ghosts(now, ttl_ms, lease.epoch, swept_at))


def an_enqueue_begins_the_invariant(requeue: RequeueRule, past: Ghosts) -> bool:
    """An enqueued lease has the invariant."""
    return stands(rules.enqueue(requeue), past)


def a_sweep_waits_for_the_whole_ttl(lease: Lease, past: Ghosts, asked: Asked) -> bool | None:
    """A sweep at store time s orphans a lease only if s > h + t, of the last stamp of its epoch."""
    after = rules.orphan(lease, asked.epoch, asked.beats, asked.now)
    if isinstance(after, Refusal) or not stands(lease, past):
        return None
    whole = asked.now > past.stamped_at + past.stamped_ms
    return whole and past.stamped_epoch == after.epoch


THEOREMS: Final = (
    theorem(
        "L1",
        a_sweep_waits_for_the_whole_ttl,
        Edit(rules._seen_suspect, "lease.deadline >= now", "lease.deadline > now"),
    ),
    theorem(
        INVARIANT,
        an_admit_begins_the_invariant,
        Edit(rules._grant, "ttl_ms=ttl_ms", "ttl_ms=confirm_ms"),
    ),
    theorem(
        INVARIANT,
        an_enqueue_begins_the_invariant,
        Edit(rules.enqueue, "ttl_ms=None", "ttl_ms=Ms(0)"),
    ),
    *(_keeps_the_invariant(move) for move in MOVES),
)
