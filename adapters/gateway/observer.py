"""What a gateway tells of its jobs: the place of a flight recorder.

Each fact is told once by the instance that caused it, and is keyed by (job, epoch, kind), so that a
recorder which several instances share can tell a fact from its repetition. A job that was told
orphaned by a sweeper and finishes after all is told again, as healed: that is the reconciliation.
"""

from __future__ import annotations

from typing import Protocol

from attrs import frozen

from unswept.core.lease import Kind, Status
from unswept.core.values import Result


@frozen
class Fact:
    """One thing that has happened to a job, after the store acknowledged it."""

    job_id: str
    epoch: int
    kind: Kind
    """START, COMPLETE, HEAL, RELEASE or ORPHAN."""
    status: Status
    correlation_id: str | None
    """None where this instance did not admit the job."""
    result: Result | None = None
    """Of an ending."""


class Observer(Protocol):
    """Hears each fact, on the event loop. What it raises is logged and changes nothing."""

    def observe(self, fact: Fact) -> None:
        """Something has happened."""
        ...
