"""Faults that lie in wait for a moment: a step of a job's life, or of two sweepers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from unswept.core import commands as c
from unswept.core.records import changed
from unswept.core.units import MonoMs
from unswept.simulations.faults.fault import MINUTE, Fault
from unswept.simulations.network import Envelope
from unswept.simulations.server import Ambush

if TYPE_CHECKING:
    from unswept.simulations.run import Run

_STEPS: Final = (
    c.Admit,
    c.Enqueue,
    c.Claim,
    c.Start,
    c.Heartbeat,
    c.Output,
    c.Complete,
    c.Release,
    c.Sweep,
    c.Delay,
    c.Requeue,
    c.Settle,
    c.ExpireQueued,
    c.Withdraw,
)
"""The steps of a job's life."""
_PATIENCE_MS: Final = 10 * MINUTE
"""How long a fault lies in wait for a step that may never come."""


class CrashAtStep(Fault):
    """A process is killed at one step between the admit and the last write."""

    name = "crash-at-step"
    story = "a process is killed at a step of a job: as its command arrives, or once it is done"
    per_hour = 3.0

    def strike(self, run: Run) -> None:
        """Lie in wait for a step of a kind that is drawn, so that the rare ones are met too."""
        wanted, until = run.rng.choice(_STEPS), run.timeline.now + _PATIENCE_MS
        ambush = Ambush(wanted, until, lambda _, sent: self._spring(run, sent))
        run.server.ambushes.append(ambush)

    def _spring(self, run: Run, envelope: Envelope) -> bool:
        victim = next((i for i in run.living() if i.name == envelope.sender), None)
        if victim is None:
            return False
        run.coverage.lasts(self.name)
        run.kill(victim)
        run.timeline.after(run.rng.randint(1, 5) * MINUTE, run.boot_like, victim)
        return True


class CancelAtStep(Fault):
    """A cancel request arrives together with another step of the job."""

    name = "cancel-at-step"
    story = "somebody cancels a job just before or just after one of its steps"
    per_hour = 20.0

    def strike(self, run: Run) -> None:
        """Lie in wait for a step of a kind that is drawn, so that the rare ones are met too."""
        wanted, until = run.rng.choice(_STEPS), run.timeline.now + _PATIENCE_MS
        ambush = Ambush(wanted, until, lambda command, _: self._spring(run, command))
        run.server.ambushes.append(ambush)

    def _spring(self, run: Run, command: c.Command[Any]) -> bool:
        jobs = _concerned(run, command)
        if not jobs:
            return False
        cancel = c.RequestCancel(run.rng.choice(jobs))
        envelope = Envelope("somebody", cancel, MonoMs(0), lambda _: None)
        run.coverage.lasts(self.name)
        if run.rng.random() < 0.5:
            run.server.receive(envelope)
        else:
            run.timeline.after(0, run.server.receive, envelope)
        return True


def _concerned(run: Run, command: c.Command[Any]) -> list[str]:
    """The jobs that a command may change."""
    if isinstance(command, c.Heartbeat):
        return [hold.job_id for hold in command.holds]
    if isinstance(command, c.Sweep):
        return [target.job_id for target in command.targets]
    if isinstance(command, c.Claim):
        return sorted(run.server.pure.world.waiting)
    return [command.job_id]  # type: ignore[attr-defined]  # as all the other steps have


class TwoSweepers(Fault):
    """All sweepers pass over the suspects at one moment, and so sweep at one moment."""

    name = "two-sweepers"
    story = "all sweepers look for suspects at the same moment, and sweep at the same moment"
    per_hour = 12.0

    def strike(self, run: Run) -> None:
        """Who starts together sweeps together."""
        living = [i for i in run.living() if i.sweeper.pass_began_at is None]
        if len(living) < 2:
            return
        soonest = min(instance.next_pass_in() for instance in living)
        for instance in living:
            clock = instance.host.clock
            at = min(instance.sweeper.next_pass_at, clock.at(run.timeline.now + soonest))
            instance.sweeper = changed(instance.sweeper, next_pass_at=at)
            instance.run(instance.tick)
