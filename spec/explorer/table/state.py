"""A state of the table, with the ghosts that laws judge by, and the key under which it is known.

A state holds rows as the store made them, with the times and epochs at which it was first reached.
Its key says only what can matter from here on: times relative to now and no further away than
anything looks, the present epoch apart from the one before, a stamp apart from an older one; and of
the names of jobs and instances nothing but which is which. States of one key are one state.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from itertools import permutations
from types import MappingProxyType
from typing import Any, Final

from attrs import field, frozen

from unswept.core import commands as c
from unswept.core.job import Job
from unswept.core.lease import TERMINAL, Kind, Status
from unswept.core.records import changed
from unswept.core.units import StoreMs
from unswept.core.values import Instance
from unswept.core.world import Change, Decision, Table, World
from unswept.spec.explorer.table.scopes import (
    DEDUP_WINDOW,
    LATE_OUTPUT,
    RETENTION,
    STEP_BACK,
    Scope,
    Verb,
)
from unswept.spec.history import History
from unswept.spec.observations import Claimer, Step

BEGIN: Final = StoreMs(1_000)
PRINCIPAL: Final = "p"
REQUEST_KEY: Final = "k"
_KEY: Final = (PRINCIPAL, REQUEST_KEY)


_BIT: Final[Mapping[Kind, int]] = MappingProxyType({kind: 1 << n for n, kind in enumerate(Kind)})


class Ghosts(History):
    """What laws judge by and no row says; it is kept whatever the store forgets."""

    def __init__(self) -> None:
        """Nothing has happened yet."""
        super().__init__()
        self.used: frozenset[str] = frozenset()
        self.newest: str | None = None
        """The job that was admitted last under the request key."""
        self.kinds: dict[tuple[str, int], int] = {}
        """The kinds of each job's events in each epoch, as bits."""

    def used_ids(self, world: World) -> Collection[str]:
        """Every id that has been used, whatever the store has forgotten."""
        return self.used

    def twin(self, world: World, command: c.Admit) -> Job | None:
        """The job that was admitted last under the request key, whatever the store says."""
        keyed = command.request.request_key is not None and self.newest is not None
        return world.jobs.get(self.newest or "") if keyed else None

    def copy(self) -> Ghosts:
        """The same, to be kept apart."""
        other = Ghosts()
        other.stamps = dict(self.stamps)
        other.claimers = dict(self.claimers)
        other.readers = dict(self.readers)
        other.kinds = dict(self.kinds)
        other.used, other.newest = self.used, self.newest
        return other

    def remember(self, step: Step) -> None:
        """Keep up with a step that was judged."""
        super().remember(step)
        born = [after.id for before, after in step.rows if before is None and after is not None]
        if born or step.newly_used:
            self.used = self.used.union(born, step.newly_used)
        for event in step.events:
            of_epoch = (event.job_id, event.epoch)
            self.kinds[of_epoch] = self.kinds.get(of_epoch, 0) | _BIT[event.kind]
        cmd = step.command
        if isinstance(cmd, c.Admit) and born and cmd.request.request_key is not None:
            self.newest = cmd.job_id


Facts = tuple[bytes, tuple[str | None, ...]]
"""Numbers, and names of instances."""


@frozen(slots=False)
class State:
    """The rows, the store clock, the ghosts, and what may still go wrong."""

    world: World
    now: StoreMs
    ghosts: Ghosts
    steps_back: int
    facts: Mapping[str, Facts] = field(factory=dict)
    """What a key says of each job; kept since most steps change one job or none."""

    def after(self, decision: Decision[Any], step: Step) -> State:
        """The state after a step."""
        ghosts = self.ghosts.copy()
        ghosts.remember(step)
        marked = changed(decision, changes=tuple(map(_marked, decision.changes)))
        return changed(self, world=self.world.after(marked), ghosts=ghosts)


def _marked(change: Change) -> Change:
    """Of a cancel request and a delay nothing matters but that it was before; so that another one
    that overwrites it is seen in the same tick, too."""
    if change.table is not Table.JOBS or change.row is None:
        return change
    return change._replace(row=_long_ago(change.row))


def _long_ago(job: Job) -> Job:
    lease, past = job.lease, StoreMs(0)
    if lease.cancel_requested_at is None and lease.delayed_at is None:
        return job
    asked = None if lease.cancel_requested_at is None else past
    delayed = None if lease.delayed_at is None else past
    return changed(job, lease=changed(lease, cancel_requested_at=asked, delayed_at=delayed))


def first(scope: Scope, instances: tuple[str, ...]) -> State:
    """No job, and every instance registered."""
    rows = {
        name: Instance(name, "instance", "", None, BEGIN, BEGIN, 1, scope.max_held)
        for name in instances
    }
    empty = World.empty()
    world = World(
        empty.jobs, empty.ids, empty.keys, empty.requests, empty.results, empty.output, rows,
        empty.events, (), (), (),
    )  # fmt: skip
    ghosts = Ghosts()
    ghosts.claimers = {name: Claimer(1, scope.max_held) for name in instances}
    return State(world, BEGIN, ghosts, scope.steps_back)


# Keys -------------------------------------------------------------------------------------------

_STATUS: Final[Mapping[Status, int]] = MappingProxyType(
    {status: n for n, status in enumerate(Status, 1)}
)
_FAR: Final = 9
_ZERO: Final = 128


class Keys:
    """The keys of the states of one scope."""

    def __init__(self, scope: Scope, instances: tuple[str, ...], job_ids: tuple[str, ...]) -> None:
        """For these instances and ids."""
        self._ids = job_ids
        self._namings = [
            {**{name: n for n, name in enumerate(order, 1)}, None: 0}
            for order in permutations(instances)
        ]
        self._orders = list(permutations(instances))
        self._profiles = {
            _policy(p.transport, p.requeue, p.on_orphan, p.max_attempts): n
            for n, p in enumerate(scope.profiles)
        }
        self._claims = Verb.CLAIM in scope.verbs
        self._ends = bool(scope.verbs & {Verb.EVICT, Verb.OUTPUT})
        self._dedup = any(profile.keyed for profile in scope.profiles)
        self._timed = any(p.queue_deadline or p.not_before for p in scope.profiles)

    def key(self, state: State) -> bytes:
        """What can matter of a state, the same for states that differ only in names."""
        least = None
        for naming, order in zip(self._namings, self._orders, strict=True):
            jobs = [
                (numbers + bytes([naming[name] for name in names]), job_id)
                for job_id, (numbers, names) in state.facts.items()
            ]
            jobs.sort()
            told = b"".join(job for job, _ in jobs) + self._rest(state, order, jobs)
            if least is None or told < least:
                least = told
        assert least is not None
        return least

    def named(self, state: State) -> Hashable:
        """A key of the state with its very names."""
        jobs = [(b"", job_id) for job_id in self._ids]
        return (tuple(state.facts.values()), self._rest(state, self._orders[0], jobs))

    def told(self, state: State) -> State:
        """A state with its facts."""
        facts = {job_id: self._facts(state, job_id) for job_id in self._ids}
        return changed(state, facts=facts)

    def told_again(self, state: State, step: Step) -> State:
        """A state after a step with its facts, from those before it."""
        if self._claims or self._dedup:
            return self.told(state)
        touched = {job.id for pair in step.rows for job in pair if job is not None}
        touched.update(event.job_id for event in step.events)
        touched.update(step.newly_used)
        if step.output:
            touched.add(step.command.job_id)  # type: ignore[attr-defined]
        again = {job_id: self._facts(state, job_id) for job_id in touched}
        return changed(state, facts={**state.facts, **again})

    def _facts(self, state: State, job_id: str) -> Facts:
        world, now, ghosts = state.world, state.now, state.ghosts
        job, birth = world.jobs.get(job_id), world.ids.get(job_id)
        used = (birth is not None) + 2 * (job_id in ghosts.used)
        first_owner = None if birth is None else birth.first_owner
        if job is None:
            return bytes((0, used, *_MORE)), (first_owner, None, None)
        lease, slack = job.lease, STEP_BACK * state.steps_back
        stamp = ghosts.stamps.get(job_id)
        epoch = lease.epoch
        released = world.events.get((job_id, epoch, Kind.RELEASE))
        chunks = world.output.get(job_id, ())
        numbers = [
            _STATUS[lease.status],
            used,
            self._profiles.get(
                _policy(job.transport, lease.requeue, job.on_orphan, job.max_attempts), 99
            ),
            min(epoch, 2),
            min(lease.beats, 1),
            _near(lease.deadline, now, slack),
            0 if stamp is None else _near(StoreMs(stamp.at + stamp.ttl_ms), now, slack),
            0 if stamp is None else 1 + (stamp.epoch == epoch),
            lease.ttl_ms or 0,
            lease.confirm_ms or 0,
            lease.cancel_requested_at is not None,
            lease.delayed_at is not None,
            0 if job.max_attempts is None else min(job.attempts, job.max_attempts),
            self._rank(world, job),
            _age(job.admitted_at, now, slack, DEDUP_WINDOW) if self._dedup else 0,
            _age(job.finished_at, now, slack, max(RETENTION, LATE_OUTPUT)) if self._ends else 0,
            _near(job.queue_deadline, now, slack) if self._timed else 0,
            _near(job.not_before, now, slack) if self._timed else 0,
            0 if job.claim_no is None else 1 + self._claim_age(state, job),
            *_kinds(ghosts.kinds, job_id, epoch),
            sum(1 << n for e, n in chunks if e == epoch),
            job.id == ghosts.newest,
            _KEY in world.keys and world.keys[_KEY].job_id == job_id,
            world.requests[job_id].request_key is not None,
        ]
        return bytes(numbers), (
            first_owner,
            lease.owner,
            None if released is None else released.actor,
        )

    def _rank(self, world: World, job: Job) -> int:
        """Who is claimed sooner, should both wait."""
        if not self._claims or job.lease.status in TERMINAL:
            return 0
        mine = (job.priority, job.admitted_at, job.id)
        return 1 + sum(
            (other.priority, other.admitted_at, other.id) < mine
            for other in world.jobs.values()
            if other.lease.status not in TERMINAL
        )

    def _claim_age(self, state: State, job: Job) -> int:
        owner = job.lease.owner
        last = state.ghosts.claimers[owner].last_no if owner in state.ghosts.claimers else 0
        return int(job.claim_no == last)

    def _rest(self, state: State, order: tuple[str, ...], jobs: list[tuple[bytes, str]]) -> bytes:
        place = {job_id: n for n, (_, job_id) in enumerate(jobs, 1)}
        joined = [
            0 if birth is None or birth.joined_to is None else place[birth.joined_to]
            for birth in (state.world.ids.get(job_id) for _, job_id in jobs)
        ]
        claims = []
        for name in order if self._claims else ():
            row = state.world.instances.get(name)
            last = state.ghosts.claimers[name].last_no
            gone = row is not None and row.gone_at is not None
            claims.append(0 if row is None else 1 + (row.claim_no == last) + 2 * gone)
        return bytes((*joined, *claims, state.steps_back))


_MORE: Final = (0,) * 25
"""Numbers that only a job has a row for."""


def _policy(*policy: Any) -> tuple[Any, ...]:
    return policy


def _near(at: StoreMs | None, now: StoreMs, slack: int) -> int:
    """A store time relative to now; how far it is past matters only as steps back may reach."""
    return 0 if at is None else _ZERO + max(-1 - slack, min(at - now, _FAR))


def _age(at: StoreMs | None, now: StoreMs, slack: int, span: int) -> int:
    """How long ago, as far as anybody asks."""
    return 0 if at is None else _ZERO + min(now - at, span + 1 + slack)


def _kinds(kinds: Mapping[tuple[str, int], int], job_id: str, epoch: int) -> tuple[int, ...]:
    """Which events there are of this epoch, and whether a stale result of the one before."""
    present = kinds.get((job_id, epoch), 0)
    stale = kinds.get((job_id, epoch - 1), 0) & _BIT[Kind.STALE_RESULT]
    return present & 255, present >> 8 & 255, present >> 16, stale > 0
