"""A simulated gateway: people ask it to run jobs, and it admits those that it has room for."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, exp, log
from typing import Final

from attrs import frozen

from unswept.core import commands as c
from unswept.core import heart as hearts
from unswept.core import limiter as limiters
from unswept.core import replies as r
from unswept.core.heart import Act, Phase
from unswept.core.holds import Held
from unswept.core.job import Transport
from unswept.core.lease import ACTIVE, RequeueRule, Status
from unswept.core.limiter import Limiter, Limits, Verdict
from unswept.core.policy import LeasePolicy
from unswept.core.units import MonoMs
from unswept.core.values import Request
from unswept.simulations.actor import Host, drawn_policy, pause, unheeded
from unswept.simulations.instance import Doing, Instance, Task, World
from unswept.simulations.marks import Mark

LIMITS: Final = Limits(max_running=4, max_queued=2)
_KEYS: Final = 40
"""Requests that may be asked for again, some of them much more than others."""
_SHORTEST_MS: Final = 2_000
_LONGEST_MS: Final = 1_800_000
_MEAN_MS: Final = (_LONGEST_MS - _SHORTEST_MS) / log(_LONGEST_MS / _SHORTEST_MS)
"""Of work that is as likely to take 2 to 4 seconds as 15 to 30 minutes: 4.4 minutes."""


@frozen
class Load:
    """How much work comes to one gateway."""

    every_ms: float = 90_000
    """How often somebody comes, on average."""
    longer: float = 1.0
    """How many times the usual the work takes."""
    limits: Limits = LIMITS


def load_of(gateways: int, jobs: int | None, job_minutes: float | None) -> Load:
    """The load under which so many gateways run `jobs` jobs of `job_minutes` at a time, on average;
    None stands for the usual."""
    longer = 1.0 if job_minutes is None else job_minutes * 60_000 / _MEAN_MS
    if jobs is None:
        return Load(longer=longer)
    each = ceil(jobs / gateways)  # it comes by chance, so that there must be room for more
    limits = Limits(max_running=2 * each + 2, max_queued=2)
    return Load(gateways * longer * _MEAN_MS / jobs, longer, limits)


class Gateway(Instance):
    """One run of a gateway process on a host."""

    def __init__(
        self, name: str, host: Host, policy: LeasePolicy, world: World, load: Load
    ) -> None:
        """A process that has not booted yet."""
        super().__init__(name, host, policy, world)
        self.limiter = Limiter(load.limits, {})
        self._load = load
        self._jobs = 0

    def boot(self) -> None:
        """The process starts, and people come to it."""
        super().boot()
        self.later(pause(self.world.rng, 20_000), self._somebody_comes)

    def _somebody_comes(self) -> None:
        if self.heart.phase is Phase.DRAINING:
            return
        rng = self.world.rng
        self._jobs += 1
        key = f"k{1 + int(_KEYS * rng.random() ** 3)}" if rng.random() < 0.5 else None
        principal = rng.choice(("ann", "bob"))
        transport = Transport.HTTP if rng.random() < 0.3 else Transport.PROCESS
        requeue = RequeueRule.ALLOWED if rng.random() < 0.4 else RequeueRule.NEVER
        provider = rng.choice(("north", "south"))
        usual_ms = exp(rng.uniform(log(_SHORTEST_MS), log(_LONGEST_MS)))
        work_ms = int(self._load.longer * usual_ms)
        task = Task(f"{self.name}-{self._jobs}", transport, requeue, work_ms)
        self._submit(task, provider, Request(requeue.encode(), principal, key))
        self.later(pause(rng, self._load.every_ms), self._somebody_comes)

    # Jobs: in -------------------------------------------------------------------------------

    def _submit(self, task: Task, provider: str, request: Request) -> None:
        now = self.host.clock()
        if not hearts.may(self.heart, Act.ADMIT, now):
            self.world.sometimes(Mark.NOT_ADMITTED)
            return
        self.limiter, verdict = limiters.acquire(self.limiter, task.job_id, provider, now)
        if verdict is Verdict.SATURATED:
            self.world.sometimes(Mark.SATURATED)
            return
        self.tasks[task.job_id] = task
        on_orphan, max_attempts = drawn_policy(self.world.rng, task.requeue)
        admit = c.Admit(
            task.job_id,
            self.name,
            self.terms,
            task.transport,
            task.requeue,
            request,
            self.policy.dedup_window_ms,
            on_orphan=on_orphan,
            max_attempts=max_attempts,
        )
        self.call(
            admit,
            lambda reply, sent_at: self._admitted(task, reply, sent_at),
            act=Act.ADMIT,
            tries=2,
            give_up=lambda: self._withdraw(task),
        )
        if self.world.rng.random() < 0.05:
            self.later(self.world.rng.randint(1, 30), self._hang_up, task)

    def _hang_up(self, task: Task) -> None:
        """Somebody changed their mind before the answer came, or just after it."""
        if self.tasks.get(task.job_id) is task and task.doing in (Doing.ADMITTING, Doing.WAITING):
            self._withdraw(task)

    def _admitted(
        self, task: Task, reply: r.Accepted | r.Joined | r.Refused, sent_at: MonoMs
    ) -> None:
        if self.tasks.get(task.job_id) is not task:
            return  # given up meanwhile
        if isinstance(reply, r.Joined):
            self.world.sometimes(Mark.JOINED)
        if not isinstance(reply, r.Accepted) or reply.standing.status not in ACTIVE:
            self._let_go(task)
            return
        if reply.repeated:
            self.world.sometimes(Mark.ADMIT_REPEATED)
        ttl_ms = self.terms.ttl_ms(task.transport)
        hold = c.Hold(task.job_id, reply.standing.epoch)
        task.held = Held(hold, task.requeue, sent_at, ttl_ms)
        task.doing = Doing.WAITING
        if reply.standing.owner != self.name:
            self._let_go(task)
        elif task.job_id in self.limiter.running:
            self._start(task)

    def _withdraw(self, task: Task) -> None:
        """Fail closed: no row, no run."""
        self.world.sometimes(Mark.WITHDRAWN)
        self._let_go(task)
        self.call(c.Withdraw(task.job_id, self.name), unheeded, tries=50)

    # What a gateway does its own way ----------------------------------------------------------

    def _registration(self) -> c.Register:
        return c.Register(self.name, role="gateway", host=self.host.name)

    def _give_back_what_waits(self) -> None:
        """Somebody waits for each of them at this very gateway: they fail."""
        for task in list(self.tasks.values()):
            if task.doing is Doing.WAITING:
                self._finish(task, Status.FAILED)

    def _never_begins(self, task: Task) -> None:
        self._finish(task, Status.FAILED)

    def _work_ends(self, task: Task, failed: bool) -> None:
        self._finish(task, Status.FAILED if failed else Status.COMPLETED)

    def _slot_freed(self, task: Task) -> None:
        self.limiter, granted = limiters.release(self.limiter, task.job_id)
        for ticket in granted:
            if ticket in self.tasks:
                self._start(self.tasks[ticket])

    def _tick_own(self, now: MonoMs) -> None:
        if not self.limiter.queue:
            return
        self.limiter, late = limiters.time_out(self.limiter, now)
        for ticket in late:
            task = self.tasks.get(ticket)
            if task is not None and task.doing is Doing.WAITING:
                self.world.sometimes(Mark.WAITED_TOO_LONG)
                self._finish(task, Status.FAILED)

    def _own_timers(self) -> Iterable[MonoMs | None]:
        return (limiters.wake_at(self.limiter),) if self.limiter.queue else ()
