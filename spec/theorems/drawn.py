"""What theorems draw: leases of every well-formed shape, whose ids are numbers.

A proof ranges over every value of every parameter, and no prover exhausts texts that it compares.
The rules only ever ask whether two ids are equal, so numbers stand for them: `Name` is the type of
an id that is drawn. A lease is drawn by its shape (`lease_of`), so that no time is lost on shapes
that no store can hold; that it leaves out none is a theorem too (`shapes.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NewType

from attrs import frozen

from unswept.core.job import Terms
from unswept.core.lease import ACTIVE, Lease, RequeueRule, Status
from unswept.core.units import Ms, StoreMs

Draw = Callable[..., Any]
"""Draws a value of a type, under the name of what it is for: `draw(int, "_epoch")`."""

Name = NewType("Name", str)
"""An id of an instance; drawn as a number, since it is only ever compared."""


def lease_of(
    status: Status,
    owned: bool,
    owner: str,
    epoch: int,
    beats: int,
    deadline: StoreMs,
    asked: bool,
    asked_at: StoreMs,
    delayed: bool,
    delayed_at: StoreMs,
    ttl_ms: Ms,
    confirm_ms: Ms,
    requeueable: bool,
) -> Lease:
    """A lease of a well-formed shape. A job that runs or is orphaned has an owner; any other has
    one where `owned` says so."""
    owned = status is Status.RUNNING or status is Status.ORPHANED or owned
    return Lease(
        status=status,
        owner=owner if owned else None,
        epoch=epoch,
        beats=beats,
        deadline=deadline if owned and status in ACTIVE else None,
        cancel_requested_at=asked_at if asked else None,
        delayed_at=delayed_at if owned and delayed else None,
        ttl_ms=ttl_ms if owned else None,
        confirm_ms=confirm_ms if owned else None,
        requeue=RequeueRule.ALLOWED if requeueable else RequeueRule.NEVER,
    )


def least_epoch(lease: Lease) -> int:
    """With beats >= 0, all that well-formedness asks of the numbers: an owner had a grant."""
    return 0 if lease.owner is None else 1


@frozen
class Asked:
    """What a caller says, and the store time of it; each transition reads its own part."""

    owner: Name
    epoch: int
    beats: int
    ttl_ms: Ms
    confirm_ms: Ms
    choice: int
    force: bool
    queue_deadline_at: StoreMs
    now: StoreMs

    @staticmethod
    def drawn(draw: Draw) -> Asked:
        """Any numbers, and a choice."""
        whole = ("epoch", "beats", "ttl_ms", "confirm_ms", "choice", "queue_deadline_at", "now")
        return Asked(
            owner=draw(Name, "_owner"),
            force=draw(bool, "_force"),
            **{name: draw(int, f"_{name}") for name in whole},
        )

    @property
    def outcome(self) -> Status:
        """What an owner completes its job as."""
        if self.choice == 0:
            return Status.COMPLETED
        return self.settlement

    @property
    def settlement(self) -> Status:
        """What an authority settles an orphan as."""
        return Status.FAILED if self.choice < 0 else Status.CANCELED

    @property
    def queue_deadline(self) -> StoreMs | None:
        """The job's queue deadline, if it has one."""
        return None if self.choice == 0 else self.queue_deadline_at


def unchecked(kind: type[Any], **fields: Any) -> Any:
    """A value whose fields are drawn: its own checks would read texts and format numbers."""
    value = object.__new__(kind)
    for name, field in fields.items():
        object.__setattr__(value, name, field)
    return value


def terms_of(asked: Asked) -> Terms:
    """The terms of a caller all of whose ttls are the one that it asks for."""
    spans = ("lease_ttl_ms", "http_grace_ms", "first_beat_ttl_ms")
    terms: Terms = unchecked(
        Terms, confirm_ms=asked.confirm_ms, **dict.fromkeys(spans, asked.ttl_ms)
    )
    return terms
