"""A run that is stepped through: at every step what each instance believed, what the store held,
and which law looked at what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from unswept.core import commands as c
from unswept.core import heart as hearts
from unswept.core.heart import Phase
from unswept.core.job import Job
from unswept.core.sweeper import Suspicion
from unswept.core.units import StoreMs
from unswept.simulations.instance import Instance
from unswept.simulations.network import Envelope
from unswept.simulations.rewriting import mentioned
from unswept.simulations.run import Run, Settings
from unswept.simulations.script import Verdict
from unswept.simulations.timeline import StoreClock
from unswept.simulations.transcript import told
from unswept.simulations.violation import Violation
from unswept.spec.observations import Delivery, Neglect, Send, Step, SweepTruth, Work


@frozen
class Belief:
    """What one instance believes."""

    instance: str
    phase: Phase
    holds: tuple[tuple[str, int], ...]
    """(job, epoch)."""
    suspicions: tuple[tuple[Suspicion, int], ...]
    """Each with its age in milliseconds."""
    stands_still: bool


@frozen
class Moment:
    """One step of the store, one look of a law at somebody's conduct, or one event of the world."""

    at: int
    """True milliseconds."""
    store_at: StoreMs
    title: str
    instances: frozenset[str]
    """Whoever took part."""
    jobs: frozenset[str]
    rows: tuple[tuple[Job | None, Job | None], ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    beliefs: tuple[Belief, ...] = ()


class PlayedRun(Run):
    """The same run, byte for byte; `show` is given every moment of it."""

    def __init__(
        self,
        settings: Settings,
        under_test: c.Store | None,
        clock: StoreClock,
        show: Callable[[Moment], None],
    ) -> None:
        """Nothing has happened yet."""
        self._show = show
        self._in_step = False
        super().__init__(settings, under_test, clock)
        self.server.recorder = self._stepped

    def note(self, text: str) -> None:
        """A line of the trace; those of steps are moments of their own."""
        super().note(text)
        if not self._in_step:
            self._moment(text, frozenset(text.split()), frozenset())

    def _observe(self, step: Step, envelope: Envelope) -> None:
        self._in_step = True
        try:
            super()._observe(step, envelope)
        finally:
            self._in_step = False

    def _stepped(self, step: Step, envelope: Envelope) -> None:
        jobs = [job for pair in step.rows for job in pair if job is not None]
        owners = {job.lease.owner for job in jobs if job.lease.owner is not None}
        self._moment(
            told(envelope.sender, step.command, step.reply),
            frozenset({envelope.sender, *owners}),
            frozenset({*mentioned(step.command), *(job.id for job in jobs)}),
            step.rows,
            tuple(self.server.verdicts(step)),
        )

    def _judge(self, law_id: str, observation: Any) -> None:
        offence = None
        try:
            super()._judge(law_id, observation)
        except Violation as violation:
            offence = violation.offence
            raise
        finally:
            if law_id not in self.design.excused:
                who, what, jobs = described(observation)
                verdicts = ((law_id, offence),)
                self._moment(f"{who} {what}", frozenset({who}), frozenset(jobs), (), verdicts)

    def _moment(
        self,
        title: str,
        instances: frozenset[str],
        jobs: frozenset[str],
        rows: tuple[tuple[Job | None, Job | None], ...] = (),
        verdicts: tuple[Verdict, ...] = (),
    ) -> None:
        beliefs = tuple(_belief(instance) for instance in self.living())
        at, store_at = self.timeline.now, self.server.clock()
        self._show(Moment(at, store_at, title, instances, jobs, rows, verdicts, beliefs))


def described(seen: Any) -> tuple[str, str, tuple[str, ...]]:
    """Who did what with which jobs, of an observation that is no step of the store."""
    if isinstance(seen, Send):
        return seen.instance, f"sends a {type(seen.command).__name__}", mentioned(seen.command)
    if isinstance(seen, Work):
        work = f"works on {seen.job_id} under epoch {seen.epoch}"
        return seen.instance, work, (seen.job_id,)
    if isinstance(seen, SweepTruth):
        swept = f"has swept {seen.job_id}, whose owner {seen.owner} lives and holds it"
        return seen.sweeper, swept, (seen.job_id,)
    if isinstance(seen, Neglect):
        neglect = f"was steady while {seen.job_id} was not renewed for {seen.silent_ms} ms"
        return seen.watcher, neglect, (seen.job_id,)
    assert isinstance(seen, Delivery)
    done = "has handled event" if seen.handled else "has acknowledged up to event"
    return seen.consumer, f"{done} {seen.number}", ()


def _belief(instance: Instance) -> Belief:
    now = instance.host.clock()
    held = (task.held for task in instance.tasks.values())
    holds = tuple((hold.hold.job_id, hold.hold.epoch) for hold in held if hold is not None)
    suspicions = tuple((s, now - s.since) for s in instance.sweeper.suspicions.values())
    phase = hearts.phase_at(instance.heart, now)
    return Belief(instance.name, phase, holds, suspicions, bool(instance.frozen))
