"""Which commands may reach the store in a state: all that could be on their way.

What an instance believes is no part of a state. In every state each command is tried that some
instance, alive, suspended, restarted or dead, could have sent once: under its own name, under the
present epoch and the one before, with the present stamp and an older one, for ids that are new,
used or gone. So messages may be late, doubled, out of order or lost, as often as they like.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

from unswept.core.job import Job
from unswept.core.lease import OUTCOMES, SETTLEMENTS, Status
from unswept.spec.explorer.table import made
from unswept.spec.explorer.table.made import Ask
from unswept.spec.explorer.table.scopes import Scope, Verb
from unswept.spec.explorer.table.state import State


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
                    yield made.admit(job_id, owner, terms, profile, False)
                    if profile.keyed:
                        yield made.admit(job_id, owner, terms, profile, True)
            if Verb.ENQUEUE in verbs and not profile.keyed:
                yield made.enqueue(job_id, profile, state.now)

    def _about(self, state: State, job_id: str) -> Iterator[Ask]:
        """What names one job."""
        verbs, job = self.scope.verbs, state.world.jobs.get(job_id)
        epochs = _epochs(job)
        for name, epoch in product(self.instances, epochs):
            if Verb.START in verbs:
                for terms in self.scope.terms:
                    yield made.start(job_id, name, epoch, terms)
            if Verb.COMPLETE in verbs:
                for outcome in self._outcomes:
                    yield made.complete(job_id, name, epoch, outcome)
            if Verb.RELEASE in verbs:
                yield made.release(job_id, name, epoch)
            if Verb.OUTPUT in verbs:
                yield made.output(job_id, name, epoch)
        if Verb.CANCEL in verbs:
            yield made.cancel(job_id)
        if Verb.WITHDRAW in verbs:
            for name in self.instances:
                yield made.withdraw(job_id, name)
        if job is None:
            return
        for epoch in epochs:
            if Verb.REQUEUE in verbs:
                yield made.requeue(job_id, epoch, False)
            if Verb.FORCE in verbs:
                yield made.requeue(job_id, epoch, True)
            if Verb.SETTLE in verbs:
                for outcome in self._settlements:
                    yield made.settle(job_id, epoch, outcome)
        if Verb.DELAY in verbs:
            for epoch, beats in _stamps(job):
                yield made.delay(job_id, epoch, beats, self._stranger(job))
        if Verb.EXPIRE in verbs:
            yield made.expire(job_id)

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
                    yield made.beat(name, holds, terms)
        rows = [jobs[job_id] for job_id in ids if job_id in jobs]
        if Verb.SWEEP in verbs and rows:
            for targets in _picked([[(job.id, *seen) for seen in _stamps(job)] for job in rows]):
                yield made.sweep(self._stranger(jobs[targets[0][0]]), targets, state.now)
        if Verb.EVICT in verbs:
            for gone in _picked([[(job.id, e) for e in _epochs(job)] for job in rows]):
                yield made.evict(gone)
        if Verb.CLAIM in verbs:
            for name, terms in product(self.instances, self.scope.terms):
                last = state.ghosts.claimers[name].last_no
                for number in (last, last + 1):
                    yield made.claim(name, number, terms, 1)
                    if len(self.job_ids) > 1:
                        yield made.claim(name, number, terms, len(self.job_ids))
        if Verb.REGISTER in verbs:
            for name in self.instances:
                known = state.ghosts.claimers[name]
                for number in {0, known.last_no}:  # of its boot, or since
                    yield made.register(name, number, self.scope.max_held)
                yield made.deregister(name)


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
