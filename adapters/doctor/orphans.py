"""Reads the orphans, each with what somebody needs who decides what becomes of it."""

from __future__ import annotations

from typing import Final

from attrs import field, frozen
from attrs.converters import optional

from unswept.adapters.doctor.look import Look
from unswept.core.job import OnOrphan
from unswept.core.lease import RequeueRule
from unswept.core.units import StoreMs
from unswept.core.values import Cause

_SELECT: Final = (
    "SELECT j.id, j.owner, j.epoch, j.orphaned_at, j.beat_at, j.requeue, j.on_orphan, j.attempts,"
    " j.max_attempts, j.cancel_requested_at, e.cause"
    " FROM {0}jobs AS j LEFT JOIN {0}events AS e"
    " ON e.job_id = j.id AND e.epoch = j.epoch AND e.kind = 'orphan'"
    " WHERE j.status = 'orphaned' ORDER BY j.orphaned_at, j.id"
)


@frozen
class Orphan:
    """A job that was swept and that nobody has decided on. All times are the store clock's."""

    id: str
    owner: str
    """Whose hold it was."""
    epoch: int
    orphaned_at: StoreMs
    beat_at: StoreMs | None
    """The owner's last accepted grant, start or renewal."""
    requeue: RequeueRule = field(converter=RequeueRule)
    on_orphan: OnOrphan = field(converter=OnOrphan)
    attempts: int
    max_attempts: int | None
    cancel_requested_at: StoreMs | None
    cause: Cause | None = field(converter=optional(Cause))
    """Why the sweep changed it; None where its event is gone."""


def read_orphans(look: Look, limit: int) -> tuple[Orphan, ...]:
    """Those that have waited longest, at most so many."""
    rows = look.rows(f"{_SELECT} LIMIT {limit}")
    return tuple(Orphan(*row) for row in rows)
