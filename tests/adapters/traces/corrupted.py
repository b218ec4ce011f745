"""Histories in which a store now and then does what it must not, judged step by step by the laws'
predicates and written down, so that another judgement of the trace can be compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any, cast

from attrs import evolve, frozen

from tests.adapters.traces.recorded import broken_by
from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.errors import MisuseError
from unswept.core.job import Job, OnOrphan
from unswept.core.lease import Kind, RequeueRule, Status
from unswept.core.memory import MemoryStore
from unswept.core.outbox import Consumer
from unswept.core.refusal import Refusal
from unswept.core.units import Ms, StoreMs
from unswept.core.world import Change, Decision, Table, World, decide
from unswept.simulations.conformance import INSTANCES, PARTITIONS, Clock, Drawer, Lockstep
from unswept.simulations.trace import Trace
from unswept.spec.history import History
from unswept.spec.laws import READS
from unswept.spec.observations import OF_OUTBOX

Broken = tuple[int, str]
"""(number of the command, id of the law)."""


@frozen
class Settings:
    """Enough of a run's settings to begin a trace."""

    seed: int
    design: str = "corrupted"


class Witness:
    """Stands in for a `Lockstep`: one store whose decisions are corrupted, judged and traced."""

    def __init__(self, seed: int, trace: Trace) -> None:
        self.clock = Clock()
        self.pure = MemoryStore(self.clock)
        self.asked: list[tuple[int, c.Command[Any]]] = []
        self.broken: set[Broken] = set()
        self._rng = Random(f"corruption {seed}")
        self._history = History()
        self._trace = trace
        self._n = 0

    def ask(self, command: c.Command[Any]) -> None:
        world, now = self.pure.world, self.clock()
        try:
            decision = decide(world, command, now)
            if type(command) not in READS and self._rng.random() < 0.4:
                decision = corrupted(self._rng, world, command, decision, now)
        except (AssertionError, KeyError, MisuseError):
            return  # what was corrupted before leaves nothing that the core knows of
        step = self._history.step(world, command, decision, now)
        self._n += 1
        self._trace.command(self._n, "somebody", step)
        self.broken |= {(self._n, law_id) for law_id in broken_by(step)}
        self.asked.append((now, command))
        self.pure.apply(decision)
        self._history.remember(step)


def history(seed: int, steps: int, file: Path) -> set[Broken]:
    """Write the trace of a corrupted history; what its predicates found."""
    with file.open("w", encoding="utf-8") as lines:
        trace = Trace(lines.write, "test", "memory:")
        trace.begins(Settings(seed), frozenset(), 0)
        witness = Witness(seed, trace)
        drawer = Drawer(cast(Lockstep, witness), seed)
        for _ in range(steps):
            drawer.step()
    return witness.broken


# Corruptions --------------------------------------------------------------------------------------


def corrupted(
    rng: Random, world: World, command: c.Command[Any], decision: Decision[Any], now: StoreMs
) -> Decision[Any]:
    """The decision with one thing in it that is not so, or one on something else than was asked."""
    jobs = world.jobs
    ways: list[Callable[[], Decision[Any]]] = [
        *[lambda: decide(world, command, StoreMs(now + rng.choice((-300, -1, 1, 300))))] * 2,
        *[lambda: decide(world, misread(rng, world, command, now), now)] * 3,
        lambda: _with_wrong_reply(rng, decision),
        lambda: _with_wrong_event(rng, decision),
        lambda: evolve(decision, events=decision.events[1:]),
        lambda: _with_second_event(rng, decision),
        lambda: _without_a_change(rng, decision),
        lambda: _with_stray_change(rng, jobs, decision),
        *[lambda: _with_wrong_row(rng, jobs, decision)] * 2,
    ]
    if isinstance(command, c.Sweep):
        ways += [lambda: decide(_with_other_policies(rng, world), command, now)] * 12
    if isinstance(command, OF_OUTBOX):
        ways += [lambda: decide(_with_other_consumers(rng, world), command, now)] * 6
        ways += [lambda: _with_events_gone(rng, world, decision, now)] * 2
    return rng.choice(ways)()


def misread(rng: Random, world: World, command: c.Command[Any], now: StoreMs) -> c.Command[Any]:
    """The command as a store takes it that looks at less than it should."""
    job = world.jobs.get(getattr(command, "job_id", ""))
    if isinstance(command, c.Claim):
        other = rng.choice(
            (
                {"limit": 1_000},
                {"partition": rng.choice(PARTITIONS)},
                {"labels": ("CPU", "cpu", "gpu", "é", "[]")},
                {"owner": rng.choice(INSTANCES)},
                {"claim_no": command.claim_no + 1},
            )
        )
        return evolve(command, **other)
    if isinstance(command, c.Admit):
        window = Ms(rng.choice((0, 1_000_000)))
        return evolve(command, fresh=rng.random() < 0.5, dedup_window_ms=window)
    if isinstance(command, c.Sweep):
        jobs = [world.jobs[job_id] for job_id in world.owned]
        targets = [c.Target(j.id, j.lease.epoch, j.lease.beats, now) for j in jobs]
        return evolve(command, targets=tuple(targets))
    if isinstance(command, c.Heartbeat):
        jobs = [world.jobs[job_id] for job_id in world.owned]
        holds = tuple(c.Hold(j.id, j.lease.epoch) for j in jobs)
        return evolve(command, holds=holds, instance=rng.choice(INSTANCES))
    if isinstance(command, c.Evict):
        return evolve(command, retention_ms=Ms(1))
    if job is not None and isinstance(command, (c.Start, c.Output, c.Complete, c.Release)):
        owner = job.lease.owner or command.owner
        return evolve(command, owner=owner, epoch=job.lease.epoch)
    if job is not None and isinstance(command, (c.Requeue, c.Settle)):
        return evolve(command, epoch=job.lease.epoch)
    if job is not None and isinstance(command, c.Delay):
        return evolve(command, epoch=job.lease.epoch, beats=job.lease.beats)
    if world.jobs and isinstance(command, (c.RequestCancel, c.Withdraw)):
        return evolve(command, job_id=rng.choice(sorted(world.jobs)))
    return command


Jobs = Mapping[str, Job]


def _with_other_policies(rng: Random, world: World) -> World:
    """What is to become of orphans is forgotten."""
    jobs = {
        job_id: evolve(job, on_orphan=rng.choice([*OnOrphan]), max_attempts=rng.choice((None, 1)))
        for job_id, job in world.jobs.items()
    }
    return evolve(world, jobs=jobs)


def _with_other_consumers(rng: Random, world: World) -> World:
    """What consumers have come to is forgotten, or taken for something else."""
    consumers = {name: _wrong_consumer(rng, row) for name, row in world.consumers.items()}
    letters = rng.choice((world.letters, {}))
    return evolve(world, consumers=rng.choice((consumers, {})), letters=letters)


def _wrong_consumer(rng: Random, row: Consumer) -> Consumer:
    return rng.choice(
        (
            lambda: evolve(row, token=_beside(rng, row.token)),
            lambda: evolve(row, position=rng.choice((0, _beside(rng, row.position)))),
            lambda: evolve(row, holder=rng.choice((None, "ann", "bob"))),
            lambda: evolve(row, expires_at=StoreMs(row.expires_at + rng.choice((-300, 300)))),
            lambda: evolve(row, attempts=row.attempts + 1),
        )
    )()


def _with_events_gone(
    rng: Random, world: World, decision: Decision[Any], now: StoreMs
) -> Decision[Any]:
    """The events of a job go, whatever may be said against it."""
    job_ids = sorted({event.job_id for event in world.events.values()})
    if not job_ids:
        return decision
    gone = Change(Table.EVENTS, rng.choice(job_ids), None)
    return evolve(decision, changes=(*decision.changes, gone))


def _with_wrong_row(rng: Random, jobs: Jobs, decision: Decision[Any]) -> Decision[Any]:
    places = [i for i, change in enumerate(decision.changes) if change.table is Table.JOBS]
    if not places:
        return decision
    place = rng.choice(places)
    change = decision.changes[place]
    row = change.row or jobs[change.key]
    gone = change.key in jobs and rng.random() < 0.1
    changes = list(decision.changes)
    changes[place] = change._replace(row=None if gone else _wrong(rng, row))
    return evolve(decision, changes=tuple(changes))


def _with_stray_change(rng: Random, jobs: Jobs, decision: Decision[Any]) -> Decision[Any]:
    """Another job changes too, and without an event."""
    if not jobs:
        return decision
    job_id = rng.choice(sorted(jobs))
    row = rng.choice((None, jobs[job_id], _wrong(rng, jobs[job_id])))
    if row is None and any(change.key == job_id for change in decision.changes):
        return decision
    return evolve(decision, changes=(*decision.changes, Change(Table.JOBS, job_id, row)))


def _beside(rng: Random, count: int) -> int:
    return max(0, count + rng.choice((-1, 1)))


def _wrong(rng: Random, job: Job) -> Job:
    lease = job.lease
    deadline = StoreMs(rng.choice((1_000_000, lease.deadline or 1_000_500)) + rng.randint(-1, 1))
    return rng.choice(
        (
            lambda: evolve(job, lease=evolve(lease, status=rng.choice([*Status]))),
            lambda: evolve(job, lease=evolve(lease, owner=rng.choice((None, "ann", "bob")))),
            lambda: evolve(job, lease=evolve(lease, epoch=_beside(rng, lease.epoch))),
            lambda: evolve(job, lease=evolve(lease, beats=_beside(rng, lease.beats))),
            lambda: evolve(job, lease=evolve(lease, deadline=rng.choice((None, deadline)))),
            lambda: evolve(
                job, lease=evolve(lease, cancel_requested_at=rng.choice((None, deadline)))
            ),
            lambda: evolve(job, lease=evolve(lease, delayed_at=rng.choice((None, deadline)))),
            lambda: evolve(job, lease=evolve(lease, ttl_ms=rng.choice((None, Ms(7))))),
            lambda: evolve(job, lease=evolve(lease, confirm_ms=None)),
            lambda: evolve(job, lease=evolve(lease, requeue=rng.choice([*RequeueRule]))),
            lambda: evolve(job, attempts=job.attempts + 1),
            lambda: evolve(job, claim_no=rng.choice((None, 1, 2))),
            lambda: evolve(job, finished_at=rng.choice((None, deadline))),
        )
    )()


def _without_a_change(rng: Random, decision: Decision[Any]) -> Decision[Any]:
    # What becomes of dedup keys stands in no trace: it follows from the admits.
    keyed = any(change.table is Table.KEYS for change in decision.changes)
    if keyed or not decision.changes:
        return decision
    lost = rng.choice(decision.changes)
    return evolve(decision, changes=tuple(ch for ch in decision.changes if ch is not lost))


def _with_second_event(rng: Random, decision: Decision[Any]) -> Decision[Any]:
    if not decision.events:
        return decision
    event = rng.choice(decision.events)
    other = evolve(event, kind=rng.choice([*Kind]), epoch=event.epoch + rng.choice((0, 1)))
    return evolve(decision, events=(*decision.events, other))


def _with_wrong_event(rng: Random, decision: Decision[Any]) -> Decision[Any]:
    if not decision.events:
        return decision
    event, *others = decision.events
    wrong = rng.choice(
        (
            evolve(event, kind=rng.choice([*Kind])),
            evolve(event, epoch=event.epoch + 1),
            evolve(event, status=rng.choice([*Status])),
            evolve(event, job_id="j1"),
        )
    )
    return evolve(decision, events=(wrong, *others))


def _with_wrong_reply(rng: Random, decision: Decision[Any]) -> Decision[Any]:
    reply = decision.reply
    if isinstance(reply, r.Beaten) and reply.answers:
        answers = [*reply.answers]
        place = rng.randrange(len(answers))
        wrong = rng.choice(
            (
                evolve(answers[place], answer=rng.choice([*r.Answer])),
                evolve(answers[place], deadline=StoreMs(1_000_000)),
                evolve(answers[place], cancel_requested_at=StoreMs(1_000_000)),
                evolve(answers[place], epoch=answers[place].epoch + 1),
            )
        )
        answers[place] = wrong
        if rng.random() < 0.1:
            del answers[place]
        return evolve(decision, reply=evolve(reply, answers=tuple(answers)))
    if isinstance(reply, r.Accepted):
        refused = r.Refused(reply.at, Refusal.BUSY, reply.standing)
        return evolve(decision, reply=rng.choice((refused, r.Joined(reply.at, reply.standing))))
    if isinstance(reply, r.Refused) and reply.standing is not None:
        kind = rng.choice((None, Kind.COMPLETE))
        return evolve(decision, reply=r.Accepted(reply.at, reply.standing, kind))
    if isinstance(reply, r.Joined):
        standing = evolve(reply.standing, job_id=rng.choice(("j1", reply.standing.job_id)))
        return evolve(
            decision,
            reply=rng.choice(
                (r.Joined(reply.at, standing), r.Accepted(reply.at, standing, Kind.ADMIT))
            ),
        )
    return decision
