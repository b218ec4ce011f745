"""The moves of a lease as one table, for the theorems that are proved of every move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attrs import frozen

from unswept.core import lease as rules
from unswept.core.lease import Kind, Lease, Status
from unswept.core.refusal import Refusal
from unswept.spec.theorems.drawn import Asked

Outcome = Lease | Refusal


@frozen
class Move:
    """One function of `unswept.core.lease`, asked with what it reads."""

    name: str
    ask: Callable[[Lease, Asked], Outcome]
    kind: Callable[[Lease, Lease], Kind]
    """Which row of the status table a change is, by the lease before and after."""


def _always(kind: Kind) -> Callable[[Lease, Lease], Kind]:
    return lambda before, after: kind


def _completed(before: Lease, after: Lease) -> Kind:
    return Kind.HEAL if before.status is Status.ORPHANED else Kind.COMPLETE


def _canceled(before: Lease, after: Lease) -> Kind:
    return Kind.CANCEL if after.status is Status.CANCELED else Kind.REQUEST_CANCEL


def _withdrawn(before: Lease, after: Lease) -> Kind:
    return Kind.WITHDRAW if after.status is Status.FAILED else _canceled(before, after)


MOVES: Final = (
    Move(
        "claim",
        lambda lease, a: rules.claim(lease, a.owner, a.ttl_ms, a.confirm_ms, a.now),
        _always(Kind.CLAIM),
    ),
    Move(
        "start",
        lambda lease, a: rules.start(lease, a.owner, a.epoch, a.ttl_ms, a.confirm_ms, a.now),
        _always(Kind.START),
    ),
    Move(
        "renew",
        lambda lease, a: rules.renew(lease, a.owner, a.epoch, a.ttl_ms, a.confirm_ms, a.now),
        _always(Kind.RENEW),
    ),
    Move(
        "delay",
        lambda lease, a: rules.delay(lease, a.epoch, a.beats, a.now),
        _always(Kind.DELAY),
    ),
    Move(
        "orphan",
        lambda lease, a: rules.orphan(lease, a.epoch, a.beats, a.now),
        _always(Kind.ORPHAN),
    ),
    Move(
        "complete",
        lambda lease, a: rules.complete(lease, a.owner, a.epoch, a.outcome),
        _completed,
    ),
    Move(
        "release",
        lambda lease, a: rules.release(lease, a.owner, a.epoch),
        _always(Kind.RELEASE),
    ),
    Move(
        "request_cancel",
        lambda lease, a: rules.request_cancel(lease, a.now),
        _canceled,
    ),
    Move(
        "requeue",
        lambda lease, a: rules.requeue(lease, a.epoch, a.force),
        _always(Kind.REQUEUE),
    ),
    Move(
        "settle",
        lambda lease, a: rules.settle(lease, a.epoch, a.settlement),
        _always(Kind.SETTLE),
    ),
    Move(
        "expire",
        lambda lease, a: rules.expire(lease, a.queue_deadline, a.now),
        _always(Kind.EXPIRE),
    ),
    Move(
        "withdraw",
        lambda lease, a: rules.withdraw(lease, a.owner, a.now),
        _withdrawn,
    ),
)
"""Every move that a lease can make after its birth."""

STAMPING: Final = frozenset({"claim", "start", "renew"})
"""The moves by which an owner stamps the deadline; with admit, all there are."""
