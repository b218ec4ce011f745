"""Faults of clocks: the store's steps, and the hosts' drift."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from unswept.core.commands import (
    Claim,
    Command,
    Evict,
    ExpireQueued,
    Heartbeat,
    Output,
    Suspects,
    Sweep,
)
from unswept.core.units import StoreMs
from unswept.simulations.faults.fault import MINUTE, SECOND, Fault, expire_all, step_clock
from unswept.simulations.server import Ambush

if TYPE_CHECKING:
    from unswept.core.sweeper import Suspicion
    from unswept.core.world import World
    from unswept.simulations.instance import Instance
    from unswept.simulations.run import Run


class ClockForward(Fault):
    """The store clock steps forward, and sometimes back again."""

    name = "clock-forward"
    story = "the store clock steps forward by up to two days, and perhaps back again"
    per_hour = 2.0

    def strike(self, run: Run) -> None:
        """A step past every ttl, or a small one."""
        ms = run.rng.choice((run.rng.randint(1, 90), run.rng.randint(90, 172_800))) * SECOND
        step_clock(run, ms)
        if run.rng.random() < 0.5:
            run.timeline.after(run.rng.randint(1, 300) * SECOND, step_clock, run, -ms)


class ClockBack(Fault):
    """The store clock steps back."""

    name = "clock-back"
    story = "the store clock steps back by up to an hour"
    per_hour = 2.0

    def strike(self, run: Run) -> None:
        """A step back: what was expired is alive again, and stamps shorten."""
        step_clock(run, -run.rng.randint(1, 3_600) * SECOND)


_AT_THE_EDGE: Final = (
    *[Sweep] * 5,
    *[Suspects] * 2,
    Evict,
    *[ExpireQueued] * 2,
    *[Claim] * 2,
    Output,
)
"""Looks are many, so that most are let pass; housekeeping is seldom."""


def _edges_of_the_rest(world: World, command: Command[Any]) -> list[StoreMs]:
    """The last moment at which it must not do away with something, or still may be late; the first
    at which a job may be claimed."""
    if isinstance(command, Claim):
        waiting = (world.jobs[job_id].not_before for job_id in world.waiting)
        return [not_before for not_before in waiting if not_before is not None]
    if isinstance(command, Output):
        written = world.jobs.get(command.job_id)
        if written is not None and written.finished_at is not None:
            return [StoreMs(written.finished_at + command.late_output_ms)]
        return []
    if isinstance(command, Evict):
        ended = (world.jobs.get(target.job_id) for target in command.targets)
        return [
            StoreMs(job.finished_at + command.retention_ms)
            for job in ended
            if job is not None and job.finished_at is not None
        ]
    if isinstance(command, ExpireQueued):
        waits = world.jobs.get(command.job_id)
        if waits is not None and waits.queue_deadline is not None:
            return [waits.queue_deadline]
    return []


class ClockEdge(Fault):
    """The store clock steps to the very millisecond of a deadline."""

    name = "clock-edge"
    story = (
        "the store clock steps to the very deadline of a job as a sweep, a look, an eviction, an"
        " expiry, a claim or an output arrives"
    )
    per_hour = 20.0

    def strike(self, run: Run) -> None:
        """Lie in wait for the next of one kind; step to the nearest deadline that it concerns."""
        wanted = run.rng.choice(_AT_THE_EDGE)
        until = run.timeline.now + 10 * MINUTE
        ambush = Ambush(wanted, until, lambda command, _: self._spring(run, command))
        run.server.ambushes.append(ambush)

    def _spring(self, run: Run, command: Command[Any]) -> bool:
        world, now = run.server.pure.world, run.server.clock()
        concerned: list[str] = []
        if isinstance(command, Sweep):
            concerned = [target.job_id for target in command.targets]
        elif isinstance(command, Suspects) and run.rng.random() < 0.1:
            concerned = sorted(world.owned)
        jobs = [world.jobs[job_id] for job_id in concerned if job_id in world.owned]
        edges = [job.lease.deadline for job in jobs if job.lease.deadline is not None]
        edges += _edges_of_the_rest(world, command)
        if not edges:
            return False
        step_clock(run, min((edge - now for edge in edges), key=abs))
        return True


class ClockRepeat(Fault):
    """The store clock steps to and fro, so that a renewal stamps the deadline that was seen."""

    name = "clock-repeat"
    story = "the store clock steps so that a suspect is renewed to the very deadline that was seen"
    per_hour = 3.0

    def strike(self, run: Run) -> None:
        """Two servers behind one address, whose clocks differ: everything looks expired, but to
        the owner of one job, whose renewals leave the row as it was."""
        expire_all(run, lambda sweeper: self._lie_in_wait(run, sweeper))

    def _lie_in_wait(self, run: Run, sweeper: Instance) -> None:
        suspicions = sweeper.sweeper.suspicions
        seen = suspicions[run.rng.choice(sorted(suspicions))]
        job = run.server.pure.world.jobs.get(seen.job_id)
        if job is not None and job.lease.deadline is not None:
            deadline, until = int(job.lease.deadline), run.timeline.now + 3 * MINUTE
            run.server.ambushes.append(
                Ambush(Heartbeat, until, lambda beat, _: self._spring(run, beat, seen, deadline))
            )

    def _spring(self, run: Run, command: Command[Any], seen: Suspicion, deadline: int) -> bool:
        job = run.server.pure.world.jobs.get(seen.job_id)
        if job is None:
            return True
        assert isinstance(command, Heartbeat)
        if all((h.job_id, h.epoch) != (seen.job_id, seen.epoch) for h in command.holds):
            return False
        stamps = run.server.clock() + command.terms.ttl_ms(job.transport)
        if stamps > deadline:
            step_clock(run, deadline - stamps)
            run.timeline.after(1, step_clock, run, stamps - deadline)
        return False


class Drift(Fault):
    """The hosts' clocks run too fast or too slow by as much as the margins allow."""

    name = "drift"
    story = "the hosts' clocks gain or lose up to a thousandth"
    per_hour = 0.0
    drift_ppm = 1_000
