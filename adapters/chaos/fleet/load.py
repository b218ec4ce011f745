"""The jobs of a fleet's run, drawn from one seed: what each does, and what befalls it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from attrs import frozen

from unswept.core.commands import Enqueue
from unswept.core.job import OnOrphan
from unswept.core.lease import RequeueRule
from unswept.core.policy import LeasePolicy
from unswept.core.units import Ms
from unswept.core.values import Request

POLICY: Final = LeasePolicy(
    heartbeat_interval_ms=Ms(2_000),
    operation_timeout_ms=Ms(1_000),
    lease_ttl_ms=Ms(6_000),
    http_grace_ms=Ms(6_000),
    confirm_after_ms=Ms(6_000),
    sweep_interval_ms=Ms(2_000),
)
"""Short, so that a killed runner's jobs are soon another's; the operation timeout leaves many
processes on few processors their time."""
MAX_ATTEMPTS: Final = 1_000
"""Whatever befalls its runners, a job is not failed for it."""
LONG_MS: Final = 2_500
_BEGINNING: Final = 500
"""Of so many jobs each fifth takes its time, so that every runner holds some from the start."""
FAILS: Final = b"fails at first"
LONG: Final = b"takes its time"


class Wish(StrEnum):
    """When a job's cancel is asked for."""

    NEVER = "never"
    BEFORE = "before"
    """Before it is enqueued, which spends its id."""
    AFTER = "after"
    """Right after it was enqueued, in a race with every claim."""


@frozen
class Task:
    """One job, and what its producer does with it."""

    number: int
    payload: bytes
    requeue: RequeueRule
    cancel: Wish
    again: bool
    """It is enqueued again, later and at the very end."""

    @property
    def job_id(self) -> str:
        """Its id."""
        return f"job-{self.number:06}"

    @property
    def enqueue(self) -> Enqueue:
        """The command that brings it into the queue."""
        rerun = self.requeue is RequeueRule.ALLOWED
        return Enqueue(
            self.job_id,
            requeue=self.requeue,
            request=Request(self.payload),
            on_orphan=OnOrphan.REQUEUE if rerun else OnOrphan.MARK,
            max_attempts=MAX_ATTEMPTS if rerun else None,
        )


def tasks(seed: int, jobs: int) -> Iterator[Task]:
    """All of them, the same for the same seed. Some of each kind come first, so that a short run
    has them too."""
    draw = random.Random(f"{seed} fleet")
    for number in range(1, jobs + 1):
        kind = draw.random()
        never = number % 25 == 5 or draw.random() < 0.01
        long = number % (5 if number <= _BEGINNING else 25) == 1 or kind < 0.01
        yield Task(
            number,
            LONG if long else FAILS if kind < 0.02 else b"",
            RequeueRule.NEVER if never else RequeueRule.ALLOWED,
            Wish.BEFORE if number % 50 == 2 else Wish.AFTER if number % 30 == 3 else Wish.NEVER,
            number % 40 == 4 or number % 50 == 2,
        )
