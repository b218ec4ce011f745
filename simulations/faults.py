"""What goes wrong in a simulated run: each fault is a small class with a name, a rate and a story.

A fault strikes at random times, `per_hour` on average, and ends by itself. Durations are drawn
around the numbers that matter: the gap, the heartbeat, the window and the ttl.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from unswept.core.commands import Command, Complete, Suspects, Sweep
from unswept.simulations.network import Weather
from unswept.simulations.truth import Span

if TYPE_CHECKING:
    from unswept.simulations.actor import Actor
    from unswept.simulations.consumer import Consumer
    from unswept.simulations.instance import Instance
    from unswept.simulations.run import Run

_SECOND: Final = 1_000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE
_WORST_MOMENT: Final = 500
"""How often a fault looks for its worst moment: a lock, for one in which a sweep waits for it."""


class Fault:
    """Something that strikes now and then."""

    name: ClassVar[str]
    story: ClassVar[str]
    per_hour: ClassVar[float]

    def strike(self, run: Run) -> None:
        """Begin the fault, and see to its end."""
        raise NotImplementedError


class Outage(Fault):
    """The store is out of reach for all, shorter or longer than any ttl."""

    name = "outage"
    story = "the store is down, shorter or longer than the ttl"
    per_hour = 2.0

    def strike(self, run: Run) -> None:
        """Nobody reaches the store for a second to ten minutes."""
        outage(run, run.rng.choice((run.rng.randint(1, 20), run.rng.randint(60, 600))) * _SECOND)


class Flaps(Fault):
    """Every lease looks expired, and the store comes and goes in step with one sweeper's heart."""

    name = "flaps"
    story = "every lease looks expired, and the store flaps in step with one sweeper's heart"
    per_hour = 3.0

    def strike(self, run: Run) -> None:
        """Wait for the worst moment: the clock steps just before somebody looks for suspects."""
        living = run.living()
        if living:
            sweeper = run.rng.choice(living)
            wait = max(0, sweeper.next_pass_in() - run.rng.randint(1, 1_000))
            run.timeline.after(wait, self._step, run, sweeper)

    def _step(self, run: Run, sweeper: Instance) -> None:
        step_clock(run, run.rng.randint(100, 400) * _SECOND)
        self._await_suspicion(run, sweeper, run.timeline.now + 5 * _SECOND)

    def _await_suspicion(self, run: Run, sweeper: Instance, until: int) -> None:
        if sweeper.sweeper.suspicions:
            self._flap(run, sweeper)
        elif run.timeline.now < until:
            run.timeline.after(50, self._await_suspicion, run, sweeper, until)

    def _flap(self, run: Run, sweeper: Instance) -> None:
        """Outages that end just before the sweeper's beats, and begin just after them."""
        period = int(sweeper.policy.heartbeat_interval_ms)
        if run.rng.random() < 0.3:
            period = run.rng.randint(period // 4, 2 * period)
        up = run.rng.randint(period // 50, period // 8)
        first = max(0, sweeper.next_beat_in() - 5)
        outage(run, first)
        for flap in range(run.rng.randint(1, 8)):
            run.timeline.after(first + up + flap * period, outage, run, period - up)


class RenewalsBlocked(Fault):
    """The lease table is locked against writes, while reads and other tables work."""

    name = "renewals-blocked"
    story = "the lease table is locked against writes; reads and other tables work"
    per_hour = 3.0

    def strike(self, run: Run) -> None:
        """An index is built, or a migration waits; it ends while a sweep waits, if one does."""
        span = run.truth.begin_shared(self.name, run.timeline.now)
        run.server.table_locks += 1
        held, at_most = run.rng.randint(2, 300) * _SECOND, run.rng.randint(60, 600) * _SECOND
        run.timeline.after(held, self._end, run, span, run.timeline.now + at_most)

    def _end(self, run: Run, span: Span, at_most: int) -> None:
        if not run.server.sweep_waits() and run.timeline.now < at_most:
            run.timeline.after(_WORST_MOMENT, self._end, run, span, at_most)
            return
        run.truth.end(span, run.timeline.now)
        run.server.table_locks -= 1
        run.server.released()


class RowLock(Fault):
    """A stranger locks one job's row, past its ttl."""

    name = "row-lock"
    story = "a stranger locks one job's row past the ttl"
    per_hour = 12.0

    def strike(self, run: Run) -> None:
        """Somebody's open transaction holds the row; it ends while a sweep waits, if one does."""
        owned = sorted(set(run.server.pure.world.owned) - run.server.locked_rows)
        if not owned:
            return
        job_id = run.rng.choice(owned)
        run.server.locked_rows.add(job_id)
        span = run.truth.begin_shared(self.name, run.timeline.now, job_id)
        held, at_most = run.rng.randint(30, 300) * _SECOND, run.rng.randint(60, 600) * _SECOND
        run.timeline.after(held, self._end, run, span, run.timeline.now + at_most)

    def _end(self, run: Run, span: Span, at_most: int) -> None:
        if not run.server.sweep_waits() and run.timeline.now < at_most:
            run.timeline.after(_WORST_MOMENT, self._end, run, span, at_most)
            return
        run.truth.end(span, run.timeline.now)
        assert span.job_id is not None
        run.server.locked_rows.discard(span.job_id)
        run.server.released()


class ClockForward(Fault):
    """The store clock steps forward, and sometimes back again."""

    name = "clock-forward"
    story = "the store clock steps forward by up to two days, and perhaps back again"
    per_hour = 2.0

    def strike(self, run: Run) -> None:
        """A step past every ttl, or a small one."""
        ms = run.rng.choice((run.rng.randint(1, 90), run.rng.randint(90, 172_800))) * _SECOND
        step_clock(run, ms)
        if run.rng.random() < 0.5:
            run.timeline.after(run.rng.randint(1, 300) * _SECOND, step_clock, run, -ms)


class ClockBack(Fault):
    """The store clock steps back."""

    name = "clock-back"
    story = "the store clock steps back by up to an hour"
    per_hour = 1.0

    def strike(self, run: Run) -> None:
        """A step back: what was expired is alive again, and stamps shorten."""
        step_clock(run, -run.rng.randint(1, 3_600) * _SECOND)


class ClockEdge(Fault):
    """The store clock steps to the very millisecond of a deadline."""

    name = "clock-edge"
    story = "the store clock steps to the very deadline of a job as a sweep or a look arrives"
    per_hour = 12.0

    def strike(self, run: Run) -> None:
        """Lie in wait for the next sweep, or for a look, which are many more; step to the nearest
        deadline that it concerns."""
        wanted = Sweep if run.rng.random() < 0.7 else Suspects
        run.server.ambush = lambda command: self._spring(run, command, wanted)

    def _spring(self, run: Run, command: Command[Any], wanted: type) -> bool:
        if not isinstance(command, wanted):
            return False
        world, now = run.server.pure.world, run.server.clock()
        concerned: list[str] = []
        if isinstance(command, Sweep):
            concerned = [target.job_id for target in command.targets]
        elif isinstance(command, Suspects) and run.rng.random() < 0.1:
            concerned = sorted(world.owned)
        jobs = [world.jobs[job_id] for job_id in concerned if job_id in world.owned]
        steps = [job.lease.deadline - now for job in jobs if job.lease.deadline is not None]
        if not steps:
            return False
        step_clock(run, min(steps, key=abs))
        return True


class Suspend(Fault):
    """A host sleeps with all that runs on it; its boot-time clock runs on."""

    name = "suspend"
    story = "a host is suspended with all that runs on it; boot time runs on"
    per_hour = 2.0

    def strike(self, run: Run) -> None:
        """Up to ten minutes of sleep."""
        host = run.rng.choice(run.hosts)
        sleepers = [actor for actor in (*run.living(), *run.clients) if actor.host is host]
        freeze(run, self.name, sleepers, run.rng.randint(1, 600) * _SECOND)


class Stall(Fault):
    """One process stands still: stopped, or its loop is blocked."""

    name = "stall"
    story = "one process is stopped, or its loop is blocked"
    per_hour = 3.0

    def strike(self, run: Run) -> None:
        """From a second to ten minutes."""
        living = run.living()
        if living:
            seconds = run.rng.choice((run.rng.randint(1, 60), run.rng.randint(60, 600)))
            freeze(run, self.name, [run.rng.choice(living)], seconds * _SECOND)


class Cut(Fault):
    """One instance reaches nobody."""

    name = "cut"
    story = "one instance is cut off from the store"
    per_hour = 3.0

    def strike(self, run: Run) -> None:
        """From a second to ten minutes."""
        living = [i.name for i in run.living() if i.name not in run.network.cut]
        if not living:
            return
        name = run.rng.choice(living)
        run.network.cut.add(name)
        span = run.truth.begin_own(self.name, run.timeline.now, name)
        seconds = run.rng.choice((run.rng.randint(1, 60), run.rng.randint(60, 600)))
        run.timeline.after(seconds * _SECOND, self._end, run, name, span)

    def _end(self, run: Run, name: str, span: Span) -> None:
        run.truth.end(span, run.timeline.now)
        run.network.cut.discard(name)


class Crash(Fault):
    """A process is killed, and a new instance boots on the same host."""

    name = "crash"
    story = "a process is killed between any two messages; a new instance boots on its host"
    per_hour = 2.0

    def strike(self, run: Run) -> None:
        """A kill -9, and a restart within five minutes."""
        living = run.living()
        if living:
            victim = run.rng.choice(living)
            run.kill(victim)
            run.timeline.after(run.rng.randint(1, 300) * _SECOND, run.boot_like, victim)


class Drain(Fault):
    """A process is asked to leave, and a new instance takes its place."""

    name = "drain"
    story = "an instance drains under load and is replaced"
    per_hour = 1.0

    def strike(self, run: Run) -> None:
        """SIGTERM; the replacement boots at once, as in a rolling deployment."""
        living = run.living()
        if living:
            leaver = run.rng.choice(living)
            leaver.run(leaver.drain)
            run.boot_like(leaver)


class ConsumerLost(Fault):
    """A consumer of events is killed, or stands still past its lease."""

    name = "consumer-lost"
    story = "a consumer of events is killed between any two messages, or stalls past its lease"
    per_hour = 6.0

    def strike(self, run: Run) -> None:
        """Wait for the worst moment: it has read events and not acknowledged them yet."""
        self._lie_in_wait(run, run.timeline.now + 5 * _MINUTE)

    def _lie_in_wait(self, run: Run, until: int) -> None:
        at_work = [consumer for consumer in run.consumers() if consumer.at_work]
        if at_work:
            self._lose(run, run.rng.choice(at_work))
        elif run.timeline.now < until:
            run.timeline.after(_WORST_MOMENT, self._lie_in_wait, run, until)

    def _lose(self, run: Run, victim: Consumer) -> None:
        """Another takes its lease over; whoever stalled comes back with an old token."""
        if run.rng.random() < 0.5:
            victim.kill()
            run.timeline.after(run.rng.randint(1, 120) * _SECOND, run.boot_like, victim)
        else:
            freeze(run, self.name, [victim], run.rng.randint(60, 300) * _SECOND)


class Loss(Fault):
    """Messages are lost on their way to the store."""

    name = "loss"
    story = "a message never arrives"
    per_hour = 0.0
    weather = Weather(lost=0.01)


class LostAnswer(Fault):
    """Answers are lost after the commit."""

    name = "lost-answer"
    story = "the store commits, and the answer is lost"
    per_hour = 0.0
    weather = Weather(answer_lost=0.01)


class Duplicate(Fault):
    """Messages arrive twice, the second time up to ten minutes late."""

    name = "duplicate"
    story = "a message arrives a second time, up to ten minutes late"
    per_hour = 0.0
    weather = Weather(repeated=0.02, longest_echo_ms=10 * _MINUTE)


class OldEcho(Fault):
    """A completion of an earlier hold comes back when its sender holds the same job again."""

    name = "old-echo"
    story = "a completion of an earlier hold arrives again, while its sender holds the job anew"
    per_hour = 60.0

    def strike(self, run: Run) -> None:
        """The worst moment for a fence that looks at the owner alone."""
        world = run.server.pure.world
        run.network.forget_completions(world.jobs)
        for job_id in sorted(world.owned):
            envelope, lease = run.network.completions.get(job_id), world.jobs[job_id].lease
            command = None if envelope is None else envelope.command
            if envelope is None or not isinstance(command, Complete):
                continue
            if command.owner == lease.owner and command.epoch < lease.epoch:
                run.network.echo(envelope, delay_ms=0)


class Delay(Fault):
    """Messages are slow."""

    name = "delay"
    story = "a message takes up to five seconds each way"
    per_hour = 0.0
    weather = Weather(delayed=0.01, longest_delay_ms=5_000)


FAULTS: Final[Mapping[str, Fault]] = MappingProxyType(
    {
        fault.name: fault
        for fault in (
            Loss(),
            LostAnswer(),
            Duplicate(),
            OldEcho(),
            Delay(),
            Outage(),
            Flaps(),
            RenewalsBlocked(),
            RowLock(),
            ClockForward(),
            ClockBack(),
            ClockEdge(),
            Suspend(),
            Stall(),
            Cut(),
            Crash(),
            ConsumerLost(),
            Drain(),
        )
    }
)


def weather_of(faults: tuple[Fault, ...]) -> Weather:
    """The network's weather under these faults."""
    found = [w for fault in faults if (w := getattr(fault, "weather", None)) is not None]
    return Weather(
        lost=max((w.lost for w in found), default=0.0),
        answer_lost=max((w.answer_lost for w in found), default=0.0),
        repeated=max((w.repeated for w in found), default=0.0),
        longest_echo_ms=max((w.longest_echo_ms for w in found), default=0),
        delayed=max((w.delayed for w in found), default=0.0),
        longest_delay_ms=max((w.longest_delay_ms for w in found), default=0),
    )


def outage(run: Run, length_ms: int) -> None:
    """The store is out of reach; what waited there is rolled back."""
    span = run.truth.begin_shared("outage", run.timeline.now)
    run.server.down += 1
    run.server.drop_waiting()
    run.timeline.after(length_ms, _end_outage, run, span)


def _end_outage(run: Run, span: Span) -> None:
    run.truth.end(span, run.timeline.now)
    run.server.down -= 1


def step_clock(run: Run, ms: int) -> None:
    """The store clock steps."""
    run.server.clock.offset_ms += ms
    run.truth.steps.append(run.timeline.now)
    if ms < 0:
        run.truth.back_steps.append(run.timeline.now)
    run.note(f"store clock steps by {ms} ms")
    if run.trace is not None:
        run.trace.fault(run.timeline.now, "store-clock", "strikes", ms=ms)


def freeze(run: Run, name: str, victims: Sequence[Actor], length_ms: int) -> None:
    """These processes stand still; if all instances are among them, nobody could renew."""
    now, living = run.timeline.now, run.living()
    frozen = [instance for instance in living if instance in victims]
    spans = [run.truth.begin_own(name, now, instance.name) for instance in frozen]
    if frozen and len(frozen) == len(living):
        spans = [run.truth.begin_shared(name, now)]
    for victim in victims:
        victim.freeze()
    run.timeline.after(length_ms, _end_freeze, run, victims, spans)


def _end_freeze(run: Run, frozen: Sequence[Actor], spans: list[Span]) -> None:
    for span in spans:
        run.truth.end(span, run.timeline.now)
    for actor in frozen:
        actor.thaw()
