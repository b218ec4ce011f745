"""The simulated authority over jobs: it hears of orphans by their events and decides what becomes
of them, and it asks for cancels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.job import Job
from unswept.core.lease import Kind, RequeueRule, Status
from unswept.core.units import StoreMs
from unswept.core.values import Event
from unswept.simulations.actor import Actor, Host, Surroundings, pause, unheeded
from unswept.simulations.marks import Mark

PATIENCE_MS: Final = 5_000
CANCEL_EVERY_MS: Final = 120_000
COUNT_EVERY_MS: Final = 300_000
_MINUTE: Final = 60_000


class Authority(Actor):
    """Somebody at a desk, and what works for them."""

    def __init__(
        self, name: str, host: Host, world: Surroundings, active: Callable[[], list[Job]]
    ) -> None:
        """It sees which jobs are `active`, to pick those that are not wanted any more."""
        super().__init__(name, host, world, PATIENCE_MS)
        self._active = active

    def begin(self) -> None:
        """Change its mind from time to time, and look at the counts."""
        self.later(pause(self.world.rng, CANCEL_EVERY_MS), self._cancel)
        self.later(pause(self.world.rng, COUNT_EVERY_MS), self._count)

    def hear(self, event: Event) -> None:
        """An event was delivered, perhaps not for the first time."""
        if event.kind is Kind.ORPHAN:
            thinks = self.world.rng.randint(1_000, 10 * _MINUTE)
            self.later(thinks, self._look, event.job_id, event.epoch)

    def _look(self, job_id: str, epoch: int) -> None:
        self.call(c.Find(job_id), lambda reply, sent_at: self._judge(epoch, reply))

    def _judge(self, epoch: int, reply: r.Found | r.Refused) -> None:
        if isinstance(reply, r.Refused):
            return
        lease = reply.job.lease
        if lease.status is not Status.ORPHANED or lease.epoch != epoch:
            return  # healed, or its policy or another has decided
        self.call(self._judgement(reply.job, reply.at), self._judged)

    def _judgement(self, job: Job, at: StoreMs) -> c.Requeue | c.Settle:
        rng, epoch = self.world.rng, job.lease.epoch
        if job.lease.requeue is RequeueRule.ALLOWED and rng.random() < 0.7:
            not_before = StoreMs(at + rng.randint(1, _MINUTE)) if rng.random() < 0.3 else None
            return c.Requeue(job.id, epoch, not_before=not_before, actor=self.name)
        outcome = rng.choice((Status.FAILED, Status.CANCELED))
        return c.Settle(job.id, epoch, outcome, actor=self.name)

    def _judged(self, reply: r.Accepted | r.Refused, sent_at: object) -> None:
        if isinstance(reply, r.Accepted) and not reply.repeated:
            self.world.sometimes(Mark.JUDGED)

    def _cancel(self) -> None:
        rng, active = self.world.rng, self._active()
        held = [j for j in active if j.lease.status is Status.QUEUED and j.lease.owner is not None]
        if active:
            unwanted = rng.choice(held if held and rng.random() < 0.8 else active)
            self.call(c.RequestCancel(unwanted.id), unheeded)
        self.later(pause(rng, CANCEL_EVERY_MS), self._cancel)

    def _count(self) -> None:
        self.call(c.Count(), unheeded)
        self.later(pause(self.world.rng, COUNT_EVERY_MS), self._count)
