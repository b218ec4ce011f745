"""A simulated producer: it enqueues jobs, at least once each, and some of them again much later; a
few it gives up before they have been enqueued."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.job import Transport
from unswept.core.lease import TERMINAL, RequeueRule
from unswept.core.refusal import Refusal
from unswept.core.units import StoreMs
from unswept.core.values import Request
from unswept.simulations.actor import Actor, Host, Surroundings, drawn_policy, pause, unheeded
from unswept.simulations.marks import Mark

PATIENCE_MS: Final = 5_000
JOB_EVERY_MS: Final = 45_000
"""How often it has a job, on average."""
_MINUTE: Final = 60_000

_LABELS: Final = ((), (), ("cpu",), ("gpu",), ("gpu", "cpu"))
_PARTITIONS: Final = ("", "", "", "night")


class Producer(Actor):
    """Whoever has work for the fleet."""

    def __init__(self, name: str, host: Host, world: Surroundings) -> None:
        """It has no work yet."""
        super().__init__(name, host, world, PATIENCE_MS)
        self._jobs = 0
        self._store_at: StoreMs | None = None
        """The store time of the last answer: all that it knows of that clock."""

    def begin(self) -> None:
        """Have work from time to time."""
        self.later(pause(self.world.rng, JOB_EVERY_MS), self._has_work)

    def _has_work(self) -> None:
        rng = self.world.rng
        enqueue = self._job()
        if rng.random() < 0.05:
            # What gives the job up and what enqueues it are two messages, and may change places.
            job_id = enqueue.job_id
            gives_up = rng.choice((c.RequestCancel(job_id), c.Withdraw(job_id, self.name)))
            self.call(gives_up, unheeded)
            self.later(rng.randint(1, _MINUTE), self._enqueue, enqueue, self._enqueued)
        else:
            self._enqueue(enqueue, self._enqueued)
        self.later(pause(rng, JOB_EVERY_MS), self._has_work)

    def _job(self) -> c.Enqueue:
        rng, now = self.world.rng, self._store_at
        self._jobs += 1
        requeue = RequeueRule.ALLOWED if rng.random() < 0.7 else RequeueRule.NEVER
        on_orphan, max_attempts = drawn_policy(rng, requeue)
        deadline = now is not None and rng.random() < 0.25
        waits = now is not None and rng.random() < 0.1
        return c.Enqueue(
            f"q{self._jobs}",
            Transport.HTTP if rng.random() < 0.2 else Transport.PROCESS,
            requeue,
            Request(requeue.encode()),
            rng.choice(_PARTITIONS),
            rng.randint(0, 2),
            StoreMs(now + rng.randint(1, 20 * _MINUTE)) if now and deadline else None,
            StoreMs(now + rng.randint(1, 5 * _MINUTE)) if now and waits else None,
            rng.choice(_LABELS),
            on_orphan,
            max_attempts,
        )

    def _enqueue(self, enqueue: c.Enqueue, answer: Callable[[c.Enqueue, Any], None]) -> None:
        self.call(enqueue, lambda reply, sent_at: answer(enqueue, reply))

    def _enqueued(self, enqueue: c.Enqueue, reply: r.Accepted | r.Refused) -> None:
        rng = self.world.rng
        self._store_at = reply.at
        if isinstance(reply, r.Refused):
            self.world.sometimes(Mark.CANCEL_FIRST)
            return
        if enqueue.queue_deadline is not None:
            due = max(1, enqueue.queue_deadline - reply.at)
            self.later(due + rng.randint(1, 2 * _MINUTE), self._expire, enqueue.job_id)
        if rng.random() < 0.4:
            late = rng.choice((rng.randint(1, 5 * _MINUTE), rng.randint(20, 50) * _MINUTE))
            self.later(late, self._enqueue, enqueue, self._enqueued_again)

    def _enqueued_again(self, enqueue: c.Enqueue, reply: r.Accepted | r.Refused) -> None:
        if isinstance(reply, r.Refused):
            self.world.sometimes(Mark.ENQUEUE_SPENT)
        elif reply.standing.status in TERMINAL:
            self.world.sometimes(Mark.ENQUEUE_OVER)
        else:
            self.world.sometimes(Mark.ENQUEUE_REPEATED)

    def _expire(self, job_id: str) -> None:
        self.call(c.ExpireQueued(job_id), lambda reply, sent_at: self._expired(reply))

    def _expired(self, reply: r.Accepted | r.Refused) -> None:
        if isinstance(reply, r.Accepted):
            self.world.sometimes(Mark.EXPIRED)
        elif reply.reason in (Refusal.ALREADY_RUNNING, Refusal.OWNED):
            self.world.sometimes(Mark.EXPIRED_TOO_LATE)
