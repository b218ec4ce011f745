"""A run that writes down what its store is told, so that it can be told again."""

from __future__ import annotations

from typing import Any

from attrs import evolve, frozen

from unswept.core.commands import Command, Store
from unswept.simulations.instance import Instance
from unswept.simulations.network import Envelope
from unswept.simulations.rewriting import Stamps, mentioned, stamps_of
from unswept.simulations.run import Outcome, Run, Settings
from unswept.simulations.script import Told
from unswept.simulations.timeline import StoreClock
from unswept.simulations.violation import Violation
from unswept.simulations.witness import Truth, Witness
from unswept.spec.laws import BY_ID, Judges
from unswept.spec.observations import Send, Step


@frozen
class Entry:
    """A step that was told, and what must be known of it to tell it in another history."""

    told: Told
    stamps: Stamps
    jobs: frozenset[str]
    """The jobs that it names or changed."""


class TooLong(Exception):  # noqa: N818 - it ends a try, nothing is wrong
    """The run has told its store more than it was given."""


class RecordedRun(Run):
    """The same run, byte for byte; `entries` is what its store was told."""

    def __init__(
        self,
        settings: Settings,
        under_test: Store | None,
        clock: StoreClock,
        at_most: int | None = None,
    ) -> None:
        """After `at_most` commands it raises `TooLong`."""
        super().__init__(settings, under_test, clock)
        self.entries: list[Entry] = []
        self.unproved = False
        """The law was judged on something that the store's history does not bear out."""
        self._at_most = at_most
        self._blanket = False
        self._witness = Witness(self.server.pure.world, self.server.history.stamps)
        self.server.recorder = self._record

    def outcome(self) -> Outcome:
        """Run to the end, or to the first violation."""
        found = super().outcome()
        law = None if found.violation is None else BY_ID.get(found.violation.law)
        if law is not None and law.judges not in (Judges.STEP, Judges.CODE):
            self.unproved = not self.entries or self.entries[-1].told.truth is None
        return found

    def blanket_sweep(self, instance: Instance) -> None:
        """What the blanket start-up sweep does to the store, past every guard."""
        self._blanket = True
        super().blanket_sweep(instance)
        self._blanket = False

    def _record(self, step: Step, envelope: Envelope) -> None:
        if len(self.entries) == self._at_most:
            raise TooLong
        self._witness.see(step)
        told = Told(step.now, envelope.sender, step.command, blanket=self._blanket)
        changed = {job.id for pair in step.rows for job in pair if job is not None}
        stamps = stamps_of(step.command, self.server.pure.world)
        self.entries.append(Entry(told, stamps, frozenset({*mentioned(step.command), *changed})))

    def _judge(self, law_id: str, observation: Any) -> None:
        try:
            super()._judge(law_id, observation)
        except Violation:
            truth = self._witness.testify(law_id, observation, self.server.clock())
            if truth is not None:
                self._attach(truth)
            raise

    def _attach(self, truth: Truth) -> None:
        """To the command that it was judged on; else to a step of its own."""
        if BY_ID[truth.law].judges is Judges.SWEEP or _is_acknowledged(truth):
            last = self.entries[-1]
            self.entries[-1] = evolve(last, told=evolve(last.told, truth=truth))
            return
        seen = truth.observation
        command: Command[Any] | None = seen.command if isinstance(seen, Send) else None
        sender = getattr(seen, "instance", None) or getattr(seen, "watcher", None) or ""
        stamps = Stamps() if command is None else stamps_of(command, self.server.pure.world)
        jobs = mentioned(command) if command is not None else (getattr(seen, "job_id", ""),)
        told = Told(self.server.clock(), sender, command, truth)
        self.entries.append(Entry(told, stamps, frozenset(jobs)))


def _is_acknowledged(truth: Truth) -> bool:
    return BY_ID[truth.law].judges is Judges.DELIVERY and not truth.observation.handled  # type: ignore[union-attr]
