"""Turns decisions into the steps that laws judge, remembering what no row keeps: the ghosts."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from unswept.core.commands import Admit, Claim, Command, Heartbeat, Register, Start
from unswept.core.job import Job, Terms
from unswept.core.refusal import Refusal
from unswept.core.replies import Refused
from unswept.core.units import StoreMs
from unswept.core.world import Decision, Table, World
from unswept.spec.observations import Claimer, Stamp, Step

_NOTHING_CLAIMED: Final = Claimer()


class History:
    """The ghosts of one store: each job's last accepted stamp, and with what each instance has
    claimed. One thread at a time."""

    def __init__(self) -> None:
        """Nothing has happened yet."""
        self.stamps: dict[str, Stamp] = {}
        self.claimers: dict[str, Claimer] = {}

    def step(
        self, world: World, command: Command[Any], decision: Decision[Any], now: StoreMs
    ) -> Step:
        """The step that `decision`, taken on `world` and not yet made there, amounts to."""
        rows: list[tuple[Job | None, Job | None]] = []
        moved: dict[str, Job | None] = {}
        output = False
        used: list[str] = []
        for table, key, row in decision.changes:
            if table is Table.JOBS:
                # A sweep may change a job twice: it is orphaned, and then what its policy says.
                rows.append((moved.get(key, world.jobs.get(key)), row))
                moved[key] = row
            elif table is Table.IDS:
                used.append(key)
            elif table is Table.OUTPUT and row is not None:
                output = True
        return Step(
            now,
            command,
            decision.reply,
            tuple(rows),
            world.jobs,
            decision.events,
            output,
            self.stamps,
            self.used_ids(world),
            world.events,
            self.twin(world, command) if isinstance(command, Admit) else None,
            self._claimer(command.owner) if isinstance(command, Claim) else _NOTHING_CLAIMED,
            tuple(used),
        )

    def used_ids(self, world: World) -> Collection[str]:
        """Every id that has been used, as the store has it."""
        return world.ids

    def twin(self, world: World, command: Admit) -> Job | None:
        """The newest job under the request key of an admit, as the store has it."""
        request = command.request
        if request.principal is None or request.request_key is None:
            return None
        key = world.keys.get((request.principal, request.request_key))
        return None if key is None else world.jobs.get(key.job_id)

    def remember(self, step: Step) -> None:
        """Keep the ghosts in step; call it when the laws have judged the step."""
        if isinstance(step.command, (Register, Claim)):
            self._remember_claimer(step.command, step.reply)
        terms: Terms | None = getattr(step.command, "terms", None)
        if terms is None:
            for before, after in step.rows:
                if after is None and before is not None:
                    self.stamps.pop(before.id, None)
            return
        claims = not isinstance(step.command, (Admit, Start, Heartbeat))
        for before, after in step.rows:
            if after is None or (before is not None and before.lease.beats == after.lease.beats):
                continue
            ttl_ms = terms.first_beat_ttl_ms if claims else terms.ttl_ms(after.transport)
            self.stamps[after.id] = Stamp(after.lease.epoch, step.now, ttl_ms)

    def _claimer(self, instance: str) -> Claimer:
        return self.claimers.get(instance, _NOTHING_CLAIMED)

    def _remember_claimer(self, command: Register | Claim, reply: Any) -> None:
        if isinstance(command, Register):
            last_no = self._claimer(command.instance).last_no
            self.claimers[command.instance] = Claimer(last_no, command.max_held)
        elif not (isinstance(reply, Refused) and reply.reason is Refusal.NOT_REGISTERED):
            known = self._claimer(command.owner)
            last_no = max(known.last_no, command.claim_no)
            self.claimers[command.owner] = Claimer(last_no, known.max_held)
