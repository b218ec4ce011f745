"""What a store can tell of the truth that a law was judged on: so much of it must be the same where
the commands are carried out again, and the rest is believed as it was recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve, frozen

from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.lease import Kind
from unswept.core.units import StoreMs
from unswept.core.values import Event
from unswept.core.world import World
from unswept.simulations.rewriting import mentioned
from unswept.spec.observations import (
    Delivery,
    Neglect,
    Send,
    Stamp,
    Step,
    SweepTruth,
    Work,
)

Observation = SweepTruth | Work | Neglect | Send | Delivery
Facts = Mapping[str, int | str]


@frozen
class Truth:
    """An observation that a law judged, and what the store had to say of it."""

    law: str
    observation: Observation
    facts: Facts


class Witness:
    """Sees every step of a store, and remembers what no row keeps."""

    def __init__(self, world: World, stamps: Mapping[str, Stamp]) -> None:
        """It watches a live view of the rows and of the last stamps."""
        self._world = world
        self._stamps = stamps
        self._moved_at: dict[str, StoreMs] = {}
        self._held: set[tuple[str, str, int]] = set()
        self._orphaned: dict[str, Event] = {}
        self._acknowledged: dict[str, tuple[int, int]] = {}
        """By consumer: what it had acknowledged before its last step, and has now."""
        self.now = StoreMs(0)

    def see(self, step: Step) -> None:
        """One command is about to be made so."""
        self.now = step.now
        self._orphaned = {e.job_id: e for e in step.events if e.kind is Kind.ORPHAN}
        for before, after in step.rows:
            if after is None:
                continue
            if before is None or before.lease.beats != after.lease.beats:
                self._moved_at[after.id] = step.now
            if after.lease.owner is not None:
                self._held.add((after.lease.owner, after.id, after.lease.epoch))
        if isinstance(step.command, c.Acknowledge) and isinstance(step.reply, r.Acknowledged):
            _, before_it = self._acknowledged.get(step.command.consumer, (0, 0))
            self._acknowledged[step.command.consumer] = (before_it, step.command.upto)

    def testify(self, law: str, observation: Observation, now: StoreMs) -> Truth | None:
        """What was judged, with the facts; None where the store knows nothing that bears it out."""
        self.now = now
        facts = self._facts(law, observation)
        return None if facts is None else Truth(law, observation, facts)

    def remade(
        self, truth: Truth, command: c.Command[Any] | None, now: StoreMs
    ) -> Observation | None:
        """The observation as this history bears it out; None if it does not."""
        self.now = now
        known = truth.observation
        if isinstance(known, Send) and command is not None:
            known = evolve(known, command=command)
        elif isinstance(known, Work) and known.stamped_from is not None:
            row = self._world.jobs.get(known.job_id)
            if row is None:
                return None
            behind = int(truth.facts["behind"])
            known = evolve(known, reached=row.lease.epoch, epoch=row.lease.epoch - behind)
        elif isinstance(known, Delivery):
            return self._delivery(known, truth.facts)
        return known if self._facts(truth.law, known) == truth.facts else None

    def _facts(self, law: str, seen: Observation) -> Facts | None:
        if isinstance(seen, SweepTruth):
            event = self._orphaned.get(seen.job_id)
            if event is None or event.owner is None:
                return None
            return {"owner": event.owner, **self._stamp(seen.job_id)}
        if isinstance(seen, Work):
            granted = (seen.instance, seen.job_id, seen.epoch) in self._held
            if seen.stamped_from is None:
                return {"granted": int(granted)}
            if not granted:
                return None
            stamp = self._stamp(seen.job_id) if law == "L11" else {}
            return {"behind": seen.reached - seen.epoch, **stamp}
        if isinstance(seen, Neglect):
            held = seen.job_id in self._world.owned
            return self._stamp(seen.job_id) if held else None
        if isinstance(seen, Send):
            return self._stood_still(seen)
        return self._skipped(seen)

    def _stamp(self, job_id: str) -> Facts:
        """How long ago it was stamped, and for how long."""
        stamp, moved_at = self._stamps.get(job_id), self._moved_at.get(job_id)
        if stamp is None or moved_at is None:
            return {}
        return {"stamped_ms_ago": self.now - moved_at, "ttl_ms": stamp.ttl_ms}

    def _stood_still(self, send: Send) -> Facts | None:
        if not isinstance(send.command, c.Sweep):  # each thing that was judged is still to go
            return {"things": len(mentioned(send.command))} if send.sights else {}
        facts: dict[str, int | str] = {}
        targets = send.command.targets
        judged = {sight.job_id for sight in send.sights}
        for number, target in enumerate(t for t in targets if t.job_id in judged):
            row = self._world.jobs.get(target.job_id)
            if row is None or (row.lease.epoch, row.lease.beats) != (target.epoch, target.beats):
                return None
            facts[f"stood_still_ms_{number}"] = self.now - self._moved_at[target.job_id]
        return facts

    def _skipped(self, delivery: Delivery) -> Facts | None:
        """Which event it was that nobody had handled."""
        numbered = dict(self._world.events.behind(0))
        skipped = numbered.get(delivery.done + 1)
        if skipped is None:
            return None
        facts: dict[str, int | str] = {"event_of": skipped.job_id, "event": skipped.kind.value}
        if delivery.handled:
            handled = numbered[delivery.number]
            facts |= {"handled_of": handled.job_id, "handled": handled.kind.value}
        return facts

    def _delivery(self, known: Delivery, facts: Facts) -> Delivery | None:
        before, upto = self._acknowledged.get(known.consumer, (0, 0))
        skipped = self._number(str(facts["event_of"]), str(facts["event"]), before)
        if known.handled:
            number = self._number(str(facts["handled_of"]), str(facts["handled"]), 0)
        else:
            number = upto
        if not skipped or not number or number < skipped:
            return None
        return evolve(known, number=number, done=skipped - 1)

    def _number(self, job_id: str, kind: str, behind: int) -> int | None:
        return next(
            (
                number
                for number, event in self._world.events.behind(behind)
                if event.job_id == job_id and event.kind.value == kind
            ),
            None,
        )
