"""Compares the core with the specification on all small states: what it does, and refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, Final

from attrs import frozen

from unswept.core import lease as core
from unswept.core.lease import Lease, RequeueRule, Status
from unswept.core.refusal import Refusal
from unswept.core.units import StoreMs
from unswept.spec.agreement import rules

NOW: Final = StoreMs(50)
_SHARES: Final = 16

Move = tuple[rules.Write, Callable[..., Lease | Refusal], tuple[Any, ...]]


@frozen
class Difference:
    """A move that the core does not make, or refuse, as the specification says."""

    write: rules.Write
    lease: Lease
    specified: tuple[str, Any]
    found: tuple[str, Any]

    def __str__(self) -> str:
        """All four."""
        said = f"the specification says {self.specified}, the core {self.found}"
        return f"{self.write} on {self.lease}: {said}"


def first_difference() -> Difference | None:
    """The first small state on which a move of the core is not the specification's; None: all
    agree."""
    leases = [(lease, rules.row(lease)) for lease in small_leases()]
    for share in range(_SHARES):  # every move early, since most differences are to be seen often
        for write, move, told in _moves():
            for lease, row in leases[share::_SHARES]:
                specified, found = rules.written(row, write, NOW), _said(move(lease, *told))
                if specified != found:
                    return Difference(write, lease, specified, found)
    return None


def small_leases() -> Iterator[Lease]:
    """Every well-formed lease whose numbers are small and whose deadline is before, at or after
    `NOW`."""
    for status, owner, epoch, beats, deadline, asked, delayed, ttl, rule in product(
        Status,
        (None, "i1", "i2"),
        (0, 1, 2),
        (1, 2),
        (None, NOW - 1, NOW, NOW + 30),
        (None, 40),
        (None, 41),
        (None, 5),
        RequeueRule,
    ):
        confirm = None if ttl is None else 6
        facts: Any = (status, owner, epoch, beats, deadline, asked, delayed, ttl, confirm, rule)
        lease = Lease(*facts)
        if core.well_formed(lease):
            yield lease


def _moves() -> Iterator[Move]:
    """Each write, the core's function for it, and what that takes beside the lease."""
    for ttl in (4, 9):
        claimed = {"owner": "i1", "ttl": ttl, "confirm": 7}
        yield ("Claim", claimed), core.claim, ("i1", ttl, 7, NOW)
        for e in (1, 2):
            yield ("Start", _stamping(e, ttl)), core.start, ("i1", e, ttl, 7, NOW)
            yield ("Renew", _stamping(e, ttl)), core.renew, ("i1", e, ttl, 7, NOW)
    for e, b in product((1, 2), (1, 2)):
        seen = {"epoch": e, "beats": b}
        yield ("Delay", seen), core.delay, (e, b, NOW)
        yield ("Orphan", seen), core.orphan, (e, b, NOW)
    for e, outcome in product((1, 2), (Status.COMPLETED, Status.FAILED, Status.CANCELED)):
        told = {"owner": "i1", "epoch": e, "outcome": rules.status(outcome)}
        yield ("Complete", told), core.complete, ("i1", e, outcome)
        yield ("Settle", told), core.settle, (e, outcome)
    for e in (1, 2):
        yield ("Release", {"owner": "i1", "epoch": e}), core.release, ("i1", e)
        for force in (False, True):
            yield ("Requeue", {"epoch": e, "force": force}), core.requeue, (e, force)
    yield ("Cancel", ()), core.request_cancel, (NOW,)
    for due in (None, NOW - 1, NOW):
        yield ("Expire", {"queueDeadline": rules.option(due)}), core.expire, (due, NOW)
    yield ("Withdraw", {"owner": "i1"}), core.withdraw, ("i1", NOW)


def _stamping(epoch: int, ttl: int) -> dict[str, Any]:
    return {"owner": "i1", "epoch": epoch, "ttl": ttl, "confirm": 7}


def _said(answer: Lease | Refusal) -> tuple[str, Any]:
    if isinstance(answer, Refusal):
        return ("Refused", answer.name)
    return ("Done", rules.row(answer))
