"""What every move keeps: the shape of the lease, the status table, and the epoch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from unswept.core import lease as rules
from unswept.core.lease import Lease, RequeueRule, Status, well_formed
from unswept.core.refusal import Refusal
from unswept.core.units import Ms, StoreMs
from unswept.spec.theorems.drawn import Asked, Name, lease_of, least_epoch
from unswept.spec.theorems.steps import MOVES, Move
from unswept.spec.theorems.theorem import Edit, Theorem, theorem

SHAPE: Final = "shape"


def every_well_formed_lease_is_drawn(
    status: Status,
    owner: Name | None,
    epoch: int,
    beats: int,
    deadline: StoreMs | None,
    asked_at: StoreMs | None,
    delayed_at: StoreMs | None,
    ttl_ms: Ms | None,
    confirm_ms: Ms | None,
    requeue: RequeueRule,
) -> bool | None:
    """No well-formed lease is left out where a theorem draws a lease."""
    lease = Lease(
        status, owner, epoch, beats, deadline, asked_at, delayed_at, ttl_ms, confirm_ms, requeue
    )
    if not well_formed(lease):
        return None
    drawn = lease_of(
        status,
        owner is not None,
        cast(str, owner),
        epoch,
        beats,
        cast(StoreMs, deadline),
        asked_at is not None,
        cast(StoreMs, asked_at),
        delayed_at is not None,
        cast(StoreMs, delayed_at),
        cast(Ms, ttl_ms),
        cast(Ms, confirm_ms),
        requeue is RequeueRule.ALLOWED,
    )
    numbers_fit = drawn.epoch >= least_epoch(drawn) and drawn.beats >= 0
    return numbers_fit and drawn == lease


def every_drawn_lease_is_well_formed(lease: Lease) -> bool:
    """Every lease that a theorem draws is well-formed."""
    return well_formed(lease)


def an_admitted_lease_is_well_formed(
    owner: Name, ttl_ms: Ms, confirm_ms: Ms, requeue: RequeueRule, now: StoreMs
) -> bool:
    """A job that is admitted is well-formed."""
    return well_formed(rules.admit(owner, ttl_ms, confirm_ms, requeue, now))


def an_enqueued_lease_is_well_formed(requeue: RequeueRule) -> bool:
    """A job that is enqueued is well-formed."""
    return well_formed(rules.enqueue(requeue))


def _keeps_the_shape(move: Move) -> Theorem:
    def claim(lease: Lease, asked: Asked) -> bool | None:
        after = move.ask(lease, asked)
        return None if isinstance(after, Refusal) else well_formed(after)

    return Theorem(
        f"{move.name}_keeps_the_shape",
        SHAPE,
        f"A {move.name} leaves a well-formed lease well-formed.",
        claim,
        _UNSHAPED[move.name],
    )


_UNSHAPED: Final[Mapping[str, Edit]] = {
    "claim": Edit(rules._grant, "deadline=StoreMs(now + ttl_ms)", "deadline=None"),
    "start": Edit(rules._stamp, "ttl_ms=greatest", "ttl_ms=None"),
    "renew": Edit(rules._stamp, "confirm_ms=confirm_ms", "confirm_ms=None"),
    "delay": Edit(rules.delay, "delayed_at=now", "delayed_at=now, deadline=None"),
    "orphan": Edit(rules.orphan, ", deadline=None", ""),
    "complete": Edit(rules.complete, ", deadline=None", ""),
    "release": Edit(rules._let_go, "ttl_ms=None", "ttl_ms=lease.ttl_ms"),
    "request_cancel": Edit(rules._let_go, "confirm_ms=None", "confirm_ms=lease.confirm_ms"),
    "requeue": Edit(rules._let_go, "owner=None", "owner=lease.owner"),
    "settle": Edit(rules._let_go, "delayed_at=None", "delayed_at=lease.delayed_at"),
    "expire": Edit(rules._let_go, "status=status", "status=Status.RUNNING"),
    "withdraw": Edit(rules.withdraw, ", deadline=None", ""),
}


def _keeps_the_table(move: Move) -> Theorem:
    def claim(lease: Lease, asked: Asked) -> bool | None:
        after = move.ask(lease, asked)
        if isinstance(after, Refusal) or after is lease:
            return None
        row = rules.MOVES[move.kind(lease, after)]
        return (
            lease.status in row.leaves
            and after.status in row.reaches
            and after.epoch == lease.epoch + row.epoch_step
        )

    return Theorem(
        f"{move.name}_keeps_the_table",
        "L3",
        f"A {move.name} leaves and reaches only what the status table says, and moves the epoch "
        "as it says: never back.",
        claim,
        _OFF_THE_TABLE[move.name],
    )


_OFF_THE_TABLE: Final[Mapping[str, Edit]] = {
    "claim": Edit(rules._grant, "epoch=lease.epoch + 1", "epoch=lease.epoch"),
    "start": Edit(rules.start, "status=Status.RUNNING", "status=Status.QUEUED"),
    "renew": Edit(
        rules.renew, "lease.status not in MOVES[Kind.RENEW].leaves", "lease.status in TERMINAL"
    ),
    "delay": Edit(rules.delay, "delayed_at=now", "delayed_at=now, epoch=epoch - 1"),
    "orphan": Edit(rules.orphan, "status=Status.ORPHANED", "status=Status.FAILED"),
    "complete": Edit(rules.complete, "MOVES[Kind.HEAL].leaves", "TERMINAL"),
    "release": Edit(
        rules.release, "lease.status not in MOVES[Kind.RELEASE].leaves", "lease.status in TERMINAL"
    ),
    "request_cancel": Edit(
        rules.request_cancel, "lease.status in TERMINAL", "lease.status is Status.CANCELED"
    ),
    "requeue": Edit(
        rules._seen_orphan, "lease.status is not Status.ORPHANED", "lease.status in TERMINAL"
    ),
    "settle": Edit(rules._let_go, "epoch=lease.epoch + 1", "epoch=lease.epoch"),
    "expire": Edit(rules.expire, "Status.EXPIRED", "Status.FAILED"),
    "withdraw": Edit(rules.withdraw, "status=Status.FAILED", "status=Status.EXPIRED"),
}

THEOREMS: Final = (
    theorem(
        SHAPE,
        every_well_formed_lease_is_drawn,
        Edit(lease_of, "asked_at if asked else None", "None"),
    ),
    theorem(
        SHAPE,
        every_drawn_lease_is_well_formed,
        Edit(lease_of, "ttl_ms=ttl_ms if owned else None", "ttl_ms=ttl_ms"),
    ),
    theorem(
        SHAPE,
        an_admitted_lease_is_well_formed,
        Edit(rules._grant, "confirm_ms=confirm_ms", "confirm_ms=None"),
    ),
    theorem(
        SHAPE,
        an_enqueued_lease_is_well_formed,
        Edit(rules.enqueue, "deadline=None", "deadline=StoreMs(0)"),
    ),
    *(_keeps_the_shape(move) for move in MOVES),
    *(_keeps_the_table(move) for move in MOVES),
)
