"""A simulated runner: it claims queued jobs in batches, works on them, and gives back what it
cannot finish."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from unswept.core import commands as c
from unswept.core import heart as hearts
from unswept.core import replies as r
from unswept.core.heart import Act, Phase
from unswept.core.holds import Held
from unswept.core.lease import RequeueRule, Status
from unswept.core.policy import LeasePolicy
from unswept.core.refusal import Refusal
from unswept.core.units import MonoMs, StoreMs
from unswept.simulations.actor import Host, pause
from unswept.simulations.instance import Doing, Instance, Task, World
from unswept.simulations.marks import Mark

POLL_MS: Final = 30_000
"""How often a runner looks for work, on average."""
BATCH: Final = 3
"""Jobs that it takes at once, at most."""


@frozen
class Fit:
    """What a runner takes, and how much of it."""

    partitions: tuple[str, ...]
    labels: tuple[str, ...]
    slots: int
    """Jobs that it works on at once."""
    max_held: int | None
    """Its budget, as the store knows it; less than it has slots for is refused now and then."""


FITS: Final = (
    Fit(("",), ("cpu",), slots=4, max_held=None),
    Fit(("", "night"), ("cpu", "gpu"), slots=4, max_held=3),
)
"""Only the second can run some of the jobs: when it was out of reach it finds them again."""


class Runner(Instance):
    """One run of a runner process on a host."""

    def __init__(self, name: str, host: Host, policy: LeasePolicy, fit: Fit, world: World) -> None:
        """A process that has not booted yet."""
        super().__init__(name, host, policy, world)
        self.fit = fit
        self._claim_no = 0
        self._claiming = False

    def boot(self) -> None:
        """The process starts, and looks for work from time to time."""
        super().boot()
        self.later(pause(self.world.rng, POLL_MS), self._poll)

    def _poll(self) -> None:
        if self.heart.phase is not Phase.DRAINING:
            self._claim()
            self.later(pause(self.world.rng, POLL_MS), self._poll)

    # Jobs: in -------------------------------------------------------------------------------

    def _claim(self) -> None:
        """One claim at a time, under a number of its own, asked again until it is answered."""
        room = self.fit.slots - len(self.tasks)
        now = self.host.clock()
        if self._claiming or room <= 0 or not hearts.may(self.heart, Act.CLAIM, now):
            return
        self._claiming = True
        self._claim_no += 1
        command = c.Claim(
            self.name,
            self._claim_no,
            self.terms,
            self.world.rng.choice(self.fit.partitions),
            min(room, BATCH),
            self.fit.labels,
        )
        self.call(command, self._claimed)

    def _claimed(self, reply: r.Claimed | r.Refused, sent_at: MonoMs) -> None:
        self._claiming = False
        if isinstance(reply, r.Refused):
            if reply.reason is Refusal.BUDGET:
                self.world.sometimes(Mark.BUDGET_REFUSED)
        else:
            if reply.repeated and reply.grants:
                self.world.sometimes(Mark.CLAIM_REPEATED)
            for grant in reply.grants:
                self._granted(grant, sent_at)
        self._leave_when_idle()
        self.tick()

    def _granted(self, grant: r.Grant, sent_at: MonoMs) -> None:
        job_id = grant.standing.job_id
        fenced = self.tasks.get(job_id)
        if fenced is not None:
            self.world.sometimes(Mark.HOLD_ENDED)
            self._let_go(fenced)
        if grant.attempts > 1:
            self.world.sometimes(Mark.CLAIMED_AGAIN)
        work_ms = self.world.rng.randint(1_000, 600_000)
        task = Task(job_id, grant.transport, grant.requeue, work_ms)
        hold = c.Hold(job_id, grant.standing.epoch)
        task.held = Held(hold, grant.requeue, sent_at, self.terms.first_beat_ttl_ms)
        task.doing = Doing.WAITING
        self.tasks[job_id] = task
        if self.heart.phase is Phase.DRAINING:
            self._give_back(task)
        else:
            self._start(task)

    # Jobs: out ------------------------------------------------------------------------------

    def _give_back(self, task: Task, not_before: StoreMs | None = None) -> None:
        """Release what may be requeued, fail the rest."""
        if task.held is None or task.doing is Doing.FINISHING:
            return
        if task.requeue is RequeueRule.NEVER:
            self._finish(task, Status.FAILED)
            return
        task.doing = Doing.FINISHING
        self._free_slot(task)
        release = c.Release(task.job_id, self.name, task.held.hold.epoch, not_before)
        self.call(release, lambda reply, sent_at: self._released(task, reply))

    def _released(self, task: Task, reply: r.Accepted | r.Refused) -> None:
        if isinstance(reply, r.Accepted):
            self.world.sometimes(Mark.RELEASED)
        self._let_go(task)

    def _retry(self, task: Task) -> None:
        """Somebody may try again, but not at once."""
        wait = self.world.rng.randint(1_000, 120_000)
        not_before = None if self.store_at is None else StoreMs(self.store_at + wait)
        self._give_back(task, not_before)

    # What a runner does its own way -----------------------------------------------------------

    def _registration(self) -> c.Register:
        return c.Register(
            self.name,
            role="runner",
            host=self.host.name,
            claim_no=self._claim_no,
            max_held=self.fit.max_held,
        )

    def _give_back_what_waits(self) -> None:
        """Others may run what waits here; what is at work already goes on, or is released too."""
        for task in list(self.tasks.values()):
            stops = task.doing is Doing.WORKING and self.world.rng.random() < 0.5
            if task.doing is Doing.WAITING or stops:
                self._give_back(task)

    def _never_begins(self, task: Task) -> None:
        self._give_back(task)

    def _work_ends(self, task: Task, failed: bool) -> None:
        if failed and task.requeue is RequeueRule.ALLOWED:
            self._retry(task)
        else:
            self._finish(task, Status.FAILED if failed else Status.COMPLETED)

    def _asks_for_work(self) -> bool:
        return self._claiming
