"""Turns decisions into the steps that laws judge, remembering what no row keeps: the ghosts."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from unswept.core.commands import (
    Acknowledge,
    Admit,
    Claim,
    Command,
    Evict,
    ForgetConsumer,
    Heartbeat,
    LeaseEvents,
    Register,
    Start,
)
from unswept.core.job import Job, Terms
from unswept.core.refusal import Refusal
from unswept.core.replies import Acknowledged, EventsLeased, Forgotten, Refused
from unswept.core.units import StoreMs
from unswept.core.world import Decision, Table, World
from unswept.spec.observations import OF_OUTBOX, Claimer, Outbox, Reader, Stamp, Step

_NOTHING_CLAIMED: Final = Claimer()
_NOTHING_READ: Final = Reader()
_OF_OUTBOX: Final = frozenset(OF_OUTBOX)


class History:
    """The ghosts of one store: each job's last accepted stamp, with what each instance has claimed,
    and how far each consumer was told that it has come. One thread at a time."""

    def __init__(self) -> None:
        """Nothing has happened yet."""
        self.stamps: dict[str, Stamp] = {}
        self.claimers: dict[str, Claimer] = {}
        self.readers: dict[str, Reader] = {}

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
        left_behind: tuple[str, ...] = ()
        outbox = None
        if type(command) in _OF_OUTBOX:
            outbox = self._outbox(world, command, decision)
            left_behind = _left_behind(world, decision) if isinstance(command, Evict) else ()
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
            left_behind,
            outbox,
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
        elif step.outbox is not None:
            self._remember_reader(step)
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

    def _outbox(self, world: World, command: Command[Any], decision: Decision[Any]) -> Outbox:
        name = getattr(command, "consumer", None)
        row = None if name is None else world.consumers.get(name)
        letters, forgotten = [], []
        for table, key, after in decision.changes:
            if table is Table.CONSUMERS and key == name:
                row = after
            elif table is Table.LETTERS and after is not None:
                letters.append(key)
            elif table is Table.EVENTS:
                forgotten.append(key)
        return Outbox(world.events, self.readers, row, tuple(letters), tuple(forgotten))

    def _remember_reader(self, step: Step) -> None:
        """By the replies alone: a row that goes wrong afterwards differs from what was said."""
        command, reply = step.command, step.reply
        if isinstance(command, LeaseEvents) and isinstance(reply, EventsLeased):
            reader = self.readers.get(command.consumer, _NOTHING_READ)
            until = StoreMs(step.now + command.lease_ms)
            self.readers[command.consumer] = reader.leased(command.holder, reply.token, until)
        elif isinstance(command, Acknowledge) and isinstance(reply, Acknowledged):
            reader = self.readers.get(command.consumer, _NOTHING_READ)
            gives_up = command.error is not None
            moved = reader.acknowledged(command.upto, command.last, gives_up)
            self.readers[command.consumer] = moved
        elif isinstance(command, ForgetConsumer) and isinstance(reply, Forgotten):
            self.readers.pop(command.consumer, None)


_WITH_A_JOB: Final = (Table.REQUESTS, Table.RESULTS, Table.OUTPUT)
"""What goes with a job's row."""


def _left_behind(world: World, decision: Decision[Any]) -> tuple[str, ...]:
    """The jobs that this decision removes without all that goes with them."""
    gone = {(table, key) for table, key, row in decision.changes if row is None}
    tables = dict(zip(_WITH_A_JOB, (world.requests, world.results, world.output), strict=True))
    return tuple(
        sorted(
            job_id
            for table, job_id in gone
            if table is Table.JOBS
            and any(
                job_id in rows and (other, job_id) not in gone for other, rows in tables.items()
            )
        )
    )
