"""Which commands may reach the store in a state: all that could be on their way.

What an instance believes is no part of a state. In every state each command is tried that some
instance, alive, suspended, restarted or dead, could have sent once: under its own name, under the
present epoch and the one before, with the present stamp and an older one, for ids that are new,
used or gone. So messages may be late, doubled, out of order or lost, as often as they like.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations, product
from typing import Any, Final

from unswept.core import commands as c
from unswept.core.job import Job, Terms
from unswept.core.lease import OUTCOMES, SETTLEMENTS, Status
from unswept.core.units import StoreMs
from unswept.core.values import Chunk, Request, Stream
from unswept.spec.explorer.table.scopes import (
    DEDUP_WINDOW,
    LATE_OUTPUT,
    QUEUE_TIME,
    RETENTION,
    Profile,
    Scope,
    Verb,
)
from unswept.spec.explorer.table.state import PRINCIPAL, REQUEST_KEY, State

Ask = c.Command[Any]

_TWIN: Final = Request(principal=PRINCIPAL, request_key=REQUEST_KEY)
_ALONE: Final = Request()


class Asking:
    """The commands of one scope, about these ids, by these instances."""

    def __init__(self, scope: Scope, instances: tuple[str, ...], job_ids: tuple[str, ...]) -> None:
        """For these instances and ids."""
        self.scope = scope
        self.instances = instances
        self.job_ids = job_ids
        self._outcomes = sorted(OUTCOMES) if scope.outcomes else [Status.COMPLETED]
        self._settlements = sorted(SETTLEMENTS) if scope.outcomes else [Status.FAILED]

    def commands(self, state: State) -> Iterator[Ask]:
        """Every command that may reach the store now."""
        ids = self._worth_naming(state)
        for job_id in ids:
            yield from self._births(state, job_id)
            yield from self._about(state, job_id)
        yield from self._batches(state, ids)

    def _worth_naming(self, state: State) -> list[str]:
        """The ids that were used, and one that was not: which one makes no difference."""
        used = [name for name in self.job_ids if name in state.ghosts.used]
        new = [name for name in self.job_ids if name not in state.ghosts.used]
        return used + new[:1]

    def _births(self, state: State, job_id: str) -> Iterator[Ask]:
        verbs = self.scope.verbs
        for profile in self.scope.profiles:
            if Verb.ADMIT in verbs and not (profile.queue_deadline or profile.not_before):
                for owner, terms in product(self.instances, self.scope.terms):
                    yield _admit(job_id, owner, terms, profile, False)
                    if profile.keyed:
                        yield _admit(job_id, owner, terms, profile, True)
            if Verb.ENQUEUE in verbs and not profile.keyed:
                yield _enqueue(job_id, profile, state.now)

    def _about(self, state: State, job_id: str) -> Iterator[Ask]:
        """What names one job."""
        verbs, job = self.scope.verbs, state.world.jobs.get(job_id)
        epochs = _epochs(job)
        for name, epoch in product(self.instances, epochs):
            if Verb.START in verbs:
                for terms in self.scope.terms:
                    yield _start(job_id, name, epoch, terms)
            if Verb.COMPLETE in verbs:
                for outcome in self._outcomes:
                    yield _complete(job_id, name, epoch, outcome)
            if Verb.RELEASE in verbs:
                yield _release(job_id, name, epoch)
            if Verb.OUTPUT in verbs:
                yield _output(job_id, name, epoch)
        if Verb.CANCEL in verbs:
            yield _cancel(job_id)
        if Verb.WITHDRAW in verbs:
            for name in self.instances:
                yield _withdraw(job_id, name)
        if job is None:
            return
        for epoch in epochs:
            if Verb.REQUEUE in verbs:
                yield _requeue(job_id, epoch, False)
            if Verb.FORCE in verbs:
                yield _requeue(job_id, epoch, True)
            if Verb.SETTLE in verbs:
                for outcome in self._settlements:
                    yield _settle(job_id, epoch, outcome)
        if Verb.DELAY in verbs:
            for epoch, beats in _stamps(job):
                yield _delay(job_id, epoch, beats, self._stranger(job))
        if Verb.EXPIRE in verbs:
            yield _expire(job_id)

    def _stranger(self, job: Job) -> str:
        """Who sweeps: an instance does not sweep what it holds."""
        others = [name for name in self.instances if name != job.lease.owner]
        return others[0] if others else self.instances[0]

    def _batches(self, state: State, ids: list[str]) -> Iterator[Ask]:
        """What names several jobs, or none."""
        verbs, jobs = self.scope.verbs, state.world.jobs
        if Verb.BEAT in verbs:
            for name, terms in product(self.instances, self.scope.terms):
                for holds in _picked([[(i, e) for e in _epochs(jobs.get(i))] for i in ids]):
                    yield _beat(name, holds, terms)
        rows = [jobs[job_id] for job_id in ids if job_id in jobs]
        if Verb.SWEEP in verbs and rows:
            for targets in _picked([[(job.id, *seen) for seen in _stamps(job)] for job in rows]):
                yield _sweep(self._stranger(jobs[targets[0][0]]), targets, state.now)
        if Verb.EVICT in verbs:
            for gone in _picked([[(job.id, e) for e in _epochs(job)] for job in rows]):
                yield _evict(gone)
        if Verb.CLAIM in verbs:
            for name, terms in product(self.instances, self.scope.terms):
                last = state.ghosts.claimers[name].last_no
                for number in (last, last + 1):
                    yield _claim(name, number, terms, 1)
                    if len(self.job_ids) > 1:
                        yield _claim(name, number, terms, len(self.job_ids))
        if Verb.REGISTER in verbs:
            for name in self.instances:
                known = state.ghosts.claimers[name]
                yield _register(name, known.last_no, self.scope.max_held)
                yield _deregister(name)


def _epochs(job: Job | None) -> tuple[int, ...]:
    """Under which somebody may speak about this job: there has been no later one."""
    if job is None:
        return (1,)
    return tuple(epoch for epoch in (job.lease.epoch, job.lease.epoch - 1) if epoch >= 1)


def _stamps(job: Job) -> tuple[tuple[int, int], ...]:
    """Stamps that a sweeper may have seen: the present one, an older one of this epoch, and one of
    the epoch before."""
    epoch, beats = job.lease.epoch, job.lease.beats
    older = ((epoch, beats - 1), (epoch - 1, beats), (epoch - 1, beats - 1))
    return ((epoch, beats), *(stamp for stamp in older if min(stamp) >= 0))


def _picked(choices: list[list[Any]]) -> Iterator[tuple[Any, ...]]:
    """At most one of each list, at least one in all; of several lists only the first two."""
    for count in range(1, len(choices) + 1):
        for lists in combinations(choices, count):
            yield from product(*(options if count == 1 else options[:2] for options in lists))


# Commands are made once: making one checks it, which takes longer than carrying it out. ----------


@cache
def _admit(job_id: str, owner: str, terms: Terms, profile: Profile, fresh: bool) -> Ask:
    return c.Admit(
        job_id,
        owner,
        terms,
        profile.transport,
        profile.requeue,
        _TWIN if profile.keyed else _ALONE,
        DEDUP_WINDOW,
        fresh,
        profile.on_orphan,
        profile.max_attempts,
    )


@cache
def _enqueue(job_id: str, profile: Profile, now: StoreMs) -> Ask:
    due = StoreMs(now + QUEUE_TIME)
    return c.Enqueue(
        job_id,
        profile.transport,
        profile.requeue,
        queue_deadline=due if profile.queue_deadline else None,
        not_before=due if profile.not_before else None,
        on_orphan=profile.on_orphan,
        max_attempts=profile.max_attempts,
    )


@cache
def _claim(owner: str, number: int, terms: Terms, limit: int) -> Ask:
    return c.Claim(owner, number, terms, limit=limit)


@cache
def _start(job_id: str, owner: str, epoch: int, terms: Terms) -> Ask:
    return c.Start(job_id, owner, epoch, terms)


@cache
def _beat(name: str, holds: tuple[tuple[str, int], ...], terms: Terms) -> Ask:
    return c.Heartbeat(name, terms, tuple(c.Hold(*hold) for hold in holds))


@cache
def _complete(job_id: str, owner: str, epoch: int, outcome: Status) -> Ask:
    return c.Complete(job_id, owner, epoch, outcome)


@cache
def _release(job_id: str, owner: str, epoch: int) -> Ask:
    return c.Release(job_id, owner, epoch)


@cache
def _output(job_id: str, owner: str, epoch: int) -> Ask:
    return c.Output(job_id, owner, epoch, Chunk(0, Stream.STDOUT, b""), LATE_OUTPUT)


@cache
def _cancel(job_id: str) -> Ask:
    return c.RequestCancel(job_id)


@cache
def _withdraw(job_id: str, owner: str) -> Ask:
    return c.Withdraw(job_id, owner)


@cache
def _requeue(job_id: str, epoch: int, force: bool) -> Ask:
    return c.Requeue(job_id, epoch, force)


@cache
def _settle(job_id: str, epoch: int, outcome: Status) -> Ask:
    return c.Settle(job_id, epoch, outcome)


@cache
def _delay(job_id: str, epoch: int, beats: int, actor: str) -> Ask:
    return c.Delay(job_id, epoch, beats, actor)


@cache
def _sweep(sweeper: str, targets: tuple[tuple[str, int, int], ...], now: StoreMs) -> Ask:
    return c.Sweep(sweeper, tuple(c.Target(*target, now) for target in targets))


@cache
def _expire(job_id: str) -> Ask:
    return c.ExpireQueued(job_id)


@cache
def _evict(targets: tuple[tuple[str, int], ...]) -> Ask:
    return c.Evict(tuple(c.Hold(*target) for target in targets), RETENTION)


@cache
def _register(name: str, claim_no: int, max_held: int | None) -> Ask:
    return c.Register(name, claim_no=claim_no, max_held=max_held)


@cache
def _deregister(name: str) -> Ask:
    return c.Deregister(name)
