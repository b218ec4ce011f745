"""Faults of the way to the store: messages are lost, late or repeated, connections break."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unswept.core.commands import Complete
from unswept.simulations.faults.fault import MINUTE, SECOND, Fault, one_living
from unswept.simulations.network import Weather
from unswept.simulations.truth import Span

if TYPE_CHECKING:
    from unswept.simulations.run import Run


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
    weather = Weather(repeated=0.02, longest_echo_ms=10 * MINUTE)


class Delay(Fault):
    """Messages are slow."""

    name = "delay"
    story = "a message takes up to five seconds each way"
    per_hour = 0.0
    weather = Weather(delayed=0.01, longest_delay_ms=5_000)


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


class Cut(Fault):
    """One instance reaches nobody."""

    name = "cut"
    story = "one instance is cut off from the store"
    per_hour = 3.0

    def strike(self, run: Run) -> None:
        """From a second to ten minutes."""
        victim = one_living(run, lambda instance: instance.name in run.network.cut)
        if victim is None:
            return
        name = victim.name
        run.network.cut.add(name)
        span = run.truth.begin_own(self.name, run.timeline.now, name)
        length = run.rng.choice((run.rng.randint(1, 60), run.rng.randint(60, 600))) * SECOND
        run.coverage.lasts(self.name, length)
        run.timeline.after(length, self._end, run, name, span)

    def _end(self, run: Run, name: str, span: Span) -> None:
        run.truth.end(span, run.timeline.now)
        run.network.cut.discard(name)


class ConnectionKilled(Fault):
    """Connections break with all that is under way on them, committed or not."""

    name = "connection-killed"
    story = "a connection is killed, one instance's or all, with what is under way on it"
    per_hour = 12.0

    def strike(self, run: Run) -> None:
        """An administrator, or a server that restarts within a second, ends sessions."""
        if run.rng.random() < 0.3:
            run.server.drop_waiting()
            run.network.reset([actor.name for actor in (*run.living(), *run.clients)])
        elif (victim := one_living(run)) is not None:
            run.network.reset([victim.name])


class PoolExhausted(Fault):
    """All of an instance's connections are busy, but for the one that its heart has to itself."""

    name = "pool-exhausted"
    story = "one instance's connections are all busy; only its heartbeats have one of their own"
    per_hour = 3.0

    def strike(self, run: Run) -> None:
        """Up to five minutes."""
        victim = one_living(run, lambda instance: instance.name in run.network.exhausted)
        if victim is not None:
            name, length = victim.name, run.rng.randint(5, 300) * SECOND
            run.network.exhausted.add(name)
            run.coverage.lasts(self.name, length)
            run.timeline.after(length, run.network.exhausted.discard, name)
