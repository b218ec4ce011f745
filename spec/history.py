"""Turns decisions into the steps that laws judge, remembering what no row keeps: the ghosts."""

from __future__ import annotations

from typing import Any

from unswept.core.commands import Admit, Command, Heartbeat, Start
from unswept.core.job import Job, Terms
from unswept.core.units import StoreMs
from unswept.core.world import Decision, Table, World
from unswept.spec.observations import Stamp, Step


class History:
    """The ghosts of one store: each job's last accepted stamp. One thread at a time."""

    def __init__(self) -> None:
        """Nothing has happened yet."""
        self.stamps: dict[str, Stamp] = {}

    def step(
        self, world: World, command: Command[Any], decision: Decision[Any], now: StoreMs
    ) -> Step:
        """The step that `decision`, taken on `world` and not yet made there, amounts to."""
        rows: list[tuple[Job | None, Job | None]] = []
        moved: dict[str, Job | None] = {}
        output = False
        used: list[str] = []
        for change in decision.changes:
            if change.table is Table.JOBS:
                # A sweep may change a job twice: it is orphaned, and then what its policy says.
                rows.append((moved.get(change.key, world.jobs.get(change.key)), change.row))
                moved[change.key] = change.row
            elif change.table is Table.IDS:
                used.append(change.key)
            elif change.table is Table.OUTPUT and change.row is not None:
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
            world.ids,
            world.events,
            _twin(world, command) if isinstance(command, Admit) else None,
            tuple(used),
        )

    def remember(self, step: Step) -> None:
        """Keep the ghosts in step; call it when the laws have judged the step."""
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


def _twin(world: World, command: Admit) -> Job | None:
    request = command.request
    if request.principal is None or request.request_key is None:
        return None
    key = world.keys.get((request.principal, request.request_key))
    return None if key is None else world.jobs.get(key.job_id)
