"""Faults of processes and hosts: they sleep, stall, die, leave, and come back under other rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unswept.core.policy import LeasePolicy
from unswept.core.units import Ms
from unswept.simulations.actor import Host
from unswept.simulations.faults.fault import (
    MINUTE,
    SECOND,
    WORST_MOMENT,
    Fault,
    expire_all,
    freeze,
    one_living,
)
from unswept.simulations.truth import Span

if TYPE_CHECKING:
    from unswept.simulations.consumer import Consumer
    from unswept.simulations.instance import Instance
    from unswept.simulations.run import Run


class Suspend(Fault):
    """A host sleeps with all that runs on it; its boot-time clock runs on."""

    name = "suspend"
    story = "a host is suspended with all that runs on it; boot time runs on"
    per_hour = 2.0

    def strike(self, run: Run) -> None:
        """Up to ten minutes of sleep."""
        suspend(run, self.name, [run.rng.choice(run.hosts)], run.rng.randint(1, 600) * SECOND)


class SuspendAll(Fault):
    """Every host sleeps at once, and all wake together."""

    name = "suspend-all"
    story = "all hosts are suspended at once, and wake together; the store runs on"
    per_hour = 2.0

    def strike(self, run: Run) -> None:
        """A snapshot of all machines, or one laptop that has them all; half of the time at the
        worst moment, when somebody suspects everybody."""
        length = run.rng.randint(1, 600) * SECOND
        if run.rng.random() < 0.5:
            suspend(run, self.name, run.hosts, length)
        else:
            expire_all(run, lambda _: suspend(run, self.name, run.hosts, length))


def suspend(run: Run, name: str, hosts: list[Host], length_ms: int) -> None:
    """These hosts sleep: nothing on them runs, and nothing boots there."""
    sleepers = [actor for actor in (*run.living(), *run.clients) if actor.host in hosts]
    for host in hosts:
        host.asleep += 1
    run.timeline.after(length_ms, _wake, hosts)
    freeze(run, name, sleepers, length_ms, everywhere=len(hosts) == len(run.hosts))


def _wake(hosts: list[Host]) -> None:
    for host in hosts:
        host.asleep -= 1


class Stall(Fault):
    """One process stands still: stopped, or its loop is blocked."""

    name = "stall"
    story = "one process is stopped, or its loop is blocked"
    per_hour = 3.0

    def strike(self, run: Run) -> None:
        """From a second to ten minutes."""
        seconds = run.rng.choice((run.rng.randint(1, 60), run.rng.randint(60, 600)))
        victim = one_living(run)
        if victim is not None:
            freeze(run, self.name, [victim], seconds * SECOND)


class HeartKilled(Fault):
    """A process works on and does not beat, until somebody looks after it."""

    name = "heart-killed"
    story = "the task that beats dies, and the process works on"
    per_hour = 2.0

    def strike(self, run: Run) -> None:
        """Up to ten minutes; then a supervisor starts the heart again."""
        victim = one_living(run, lambda instance: instance.heart_dead)
        if victim is not None:
            length = run.rng.randint(10, 600) * SECOND
            span = run.truth.begin_own(self.name, run.timeline.now, victim.name)
            run.coverage.lasts(self.name, length)
            victim.heart_dead = True
            run.timeline.after(length, self._end, run, victim, span)

    def _end(self, run: Run, victim: Instance, span: Span) -> None:
        run.truth.end(span, run.timeline.now)
        victim.heart_dead = False
        victim.run(victim.awake)


class Crash(Fault):
    """A process is killed, and a new instance boots on the same host."""

    name = "crash"
    story = "a process is killed between any two messages; a new instance boots on its host"
    per_hour = 2.0

    def strike(self, run: Run) -> None:
        """A kill -9, and a restart within five minutes."""
        victim = one_living(run)
        if victim is not None:
            run.kill(victim)
            run.timeline.after(run.rng.randint(1, 300) * SECOND, run.boot_like, victim)


class Restart(Fault):
    """A process is killed with its children, and its successor gives its jobs the same pids."""

    name = "restart"
    story = "a process is killed, and at once its successor runs on its host, with the same pids"
    per_hour = 2.0

    def strike(self, run: Run) -> None:
        """A container restarts: the same host name, the same numbers."""
        victim = one_living(run)
        if victim is not None:
            processes = [task.process for task in victim.tasks.values()]
            run.kill(victim)
            for process in processes:
                if process is not None:
                    victim.host.alive.pop(process.pid, None)
            run.boot_like(victim)


class PidReuse(Fault):
    """Strangers' processes get the pids that jobs' rows name."""

    name = "pid-reuse"
    story = "on every host strangers' processes get the pids that jobs of the dead name"
    per_hour = 6.0

    def strike(self, run: Run) -> None:
        """The numbers go round; they are taken for up to ten minutes."""
        world, living = run.server.pure.world, {instance.name for instance in run.living()}
        jobs = [world.jobs[job_id] for job_id in sorted(world.owned)]
        dead = [job.process.pid for job in jobs if job.process and job.lease.owner not in living]
        for host in run.hosts:
            for pid in dead:
                if pid not in host.alive:
                    began = int(host.clock())
                    host.alive[pid] = began
                    ends = run.rng.randint(1, 10) * MINUTE
                    run.timeline.after(ends, self._end, host, pid, began)

    def _end(self, host: Host, pid: int, began: int) -> None:
        if host.alive.get(pid) == began:
            del host.alive[pid]


class Drain(Fault):
    """A process is asked to leave, and a new instance takes its place."""

    name = "drain"
    story = "an instance drains under load and is replaced"
    per_hour = 2.0

    def strike(self, run: Run) -> None:
        """SIGTERM; the replacement boots at once, as in a rolling deployment."""
        _replace_one(run)


def _replace_one(run: Run) -> Instance | None:
    """Somebody is asked to leave, and a new instance boots."""
    leaver = one_living(run)
    if leaver is not None:
        leaver.run(leaver.drain)
        run.boot_like(leaver)
    return leaver


class KillInDrain(Fault):
    """A process is asked to leave, and is not waited for."""

    name = "kill-in-drain"
    story = "an instance drains under load, and is killed before it has done"
    per_hour = 3.0

    def strike(self, run: Run) -> None:
        """SIGTERM, and SIGKILL within two minutes."""
        leaver = _replace_one(run)
        if leaver is not None:
            length = run.rng.randint(1, 120) * SECOND
            run.coverage.lasts(self.name, length)
            run.timeline.after(length, self._kill, run, leaver)

    def _kill(self, run: Run, leaver: Instance) -> None:
        if leaver.alive:
            run.kill(leaver)


class MixedPolicies(Fault):
    """Gateways under quite other policies come and go."""

    name = "mixed-policies"
    story = "a gateway with quite another policy joins for a while"
    per_hour = 2.0

    def strike(self, run: Run) -> None:
        """Much quicker or slower, with leases of two to eight heartbeats."""
        awake = [host for host in run.hosts if not host.asleep]
        if not awake:
            return
        beat = run.rng.choice((2, 5, 10, 20, 30)) * SECOND
        policy = LeasePolicy(
            heartbeat_interval_ms=Ms(beat),
            lease_ttl_ms=Ms(beat * run.rng.randint(2, 8)),
            retention_ms=Ms(20 * MINUTE),
            dedup_window_ms=Ms(5 * MINUTE),
        )
        guest = run.boot_guest(run.rng.choice(awake), policy)
        length = run.rng.randint(5, 30) * MINUTE
        run.coverage.lasts(self.name, length)
        run.timeline.after(length, guest.run, guest.drain)


class ConsumerLost(Fault):
    """A consumer of events is killed, or stands still past its lease."""

    name = "consumer-lost"
    story = "a consumer of events is killed between any two messages, or stalls past its lease"
    per_hour = 6.0

    def strike(self, run: Run) -> None:
        """Wait for the worst moment: it has read events and not acknowledged them yet."""
        if run.clients:
            self._lie_in_wait(run, run.timeline.now + 5 * MINUTE)

    def _lie_in_wait(self, run: Run, until: int) -> None:
        at_work = [consumer for consumer in run.consumers() if consumer.at_work]
        if at_work:
            self._lose(run, run.rng.choice(at_work))
        elif run.timeline.now < until:
            run.timeline.after(WORST_MOMENT, self._lie_in_wait, run, until)

    def _lose(self, run: Run, victim: Consumer) -> None:
        """Another takes its lease over; whoever stalled comes back with an old token."""
        if run.rng.random() < 0.5:
            victim.kill()
            run.timeline.after(run.rng.randint(1, 120) * SECOND, run.boot_like, victim)
        else:
            freeze(run, self.name, [victim], run.rng.randint(60, 300) * SECOND)
