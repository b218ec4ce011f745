"""What runners, their producer and the driver write down, each line before the next action."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from attrs import field, frozen

from unswept.adapters.chaos.books import read_book


def _holds(rows: Any) -> tuple[tuple[str, int], ...]:
    return tuple((job_id, epoch) for job_id, epoch in rows)


# A runner's --------------------------------------------------------------------------------------


@frozen
class Born:
    """A runner has its id."""

    instance: str


@frozen
class Taken:
    """A claim was answered, and the runner is about to hear of it."""

    claim_no: int
    store_at: int
    repeated: bool
    holds: tuple[tuple[str, int], ...] = field(converter=_holds)


@frozen
class Begun:
    """A handler has begun."""

    job_id: str
    epoch: int


@frozen
class Done:
    """A handler is about to return: from here on the job may complete."""

    job_id: str
    epoch: int


@frozen
class Wrote:
    """The last write of a hold was answered."""

    command: str
    job_id: str
    epoch: int
    answer: str
    """`fresh`: it took effect just then; `repeated`: it had before; else the refusal."""


@frozen
class Drained:
    """The drain is over; `clean`: all was written."""

    clean: bool


# The producer's, and the driver's for what comes at the end ---------------------------------------


@frozen
class Enqueued:
    """An enqueue was answered."""

    job_id: str
    answer: str
    """As of `Wrote`."""
    again: bool


@frozen
class Canceled:
    """A cancel request was answered."""

    job_id: str
    store_at: int


# The driver's -------------------------------------------------------------------------------------


@frozen
class Deed:
    """Something was done to a runner, or it was seen to have ended."""

    at: int
    """By the host's boot clock."""
    act: str
    runner: int


@frozen
class Settled:
    """An orphan that nobody may run again was settled as failed, by authority."""

    job_id: str
    epoch: int
    answer: str


Line = Born | Taken | Begun | Done | Wrote | Drained | Enqueued | Canceled | Deed | Settled
_KINDS: Final[Mapping[str, type[Line]]] = {
    kind.__name__: kind
    for kind in (Born, Taken, Begun, Done, Wrote, Drained, Enqueued, Canceled, Deed, Settled)
}


def read(path: Path) -> list[Line]:
    """All whole lines, in the order in which they were written."""
    return read_book(path, _KINDS)
