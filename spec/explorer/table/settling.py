"""Is every job of an owner that is gone finally settled? Searched over instances that act.

The instances admit, claim, renew and complete; each of them looks for suspects and sweeps what it
has seen twice under one stamp. They may die, stand still and go on, or come back under a new id,
and what the dead had sent may still arrive. Time passes, and no instance that runs puts off a look
or a sweep for ever; nothing else is promised.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from attrs import evolve, frozen

from unswept.core import commands as c
from unswept.core import sweeper as sweepers
from unswept.core.job import Job
from unswept.core.lease import ACTIVE, Status
from unswept.core.records import changed
from unswept.core.sweeper import Suspicion
from unswept.core.units import MonoMs, Ms, StoreMs
from unswept.core.world import decide
from unswept.spec.explorer.offence import Offence
from unswept.spec.explorer.table import made
from unswept.spec.explorer.table.judging import Judge
from unswept.spec.explorer.table.scopes import TERMS, Profile, Scope, Verb
from unswept.spec.explorer.table.state import Keys, State, first

TICK: Final = "a tick passes"
Action = str | tuple[str, str]
"""What is not put off for ever: that time passes, or what an instance that runs does."""


@frozen
class Habits:
    """How a design differs from the real one."""

    first_page_only: bool = False
    """A sweeper looks at the first suspect alone."""
    gives_up: bool = False
    """A sweeper whose sweep was refused sweeps no more."""
    forgets: bool = False
    """A sweeper begins every look anew."""
    vetoes: bool = False
    """Process evidence keeps a suspect from being seen twice, as often as there is any."""
    trusts_instances: bool = False
    """A sweeper spares the jobs of every owner that is registered."""


@frozen
class Troubles:
    """How much may go wrong, in one run."""

    downs: int = 1
    """How often an instance dies or stands still."""
    late: int = 1
    """How many heartbeats of instances that are gone may still arrive."""


@frozen(slots=False)
class Run:
    """All that can matter from here on."""

    table: State
    running: tuple[str, ...]
    still: tuple[str, ...]
    """They stand still, and may go on."""
    sights: Mapping[tuple[str, str], Suspicion]
    """Who has seen which job as a suspect."""
    twice: frozenset[tuple[str, str]]
    """Who has seen it again, under the same stamp."""
    gave_up: tuple[str, ...]
    left: Troubles


class Move(NamedTuple):
    """One thing that may happen next."""

    action: Action | None
    words: str
    run: Run


class Settling:
    """The transition relation."""

    def __init__(
        self,
        instances: int,
        jobs: int,
        habits: Habits,
        troubles: Troubles,
        profiles: tuple[Profile, ...],
        judge: Judge,
    ) -> None:
        """So many instances and jobs, under these troubles."""
        self.names = tuple(f"i{n}" for n in range(1, instances + 1))
        self.again = tuple(f"{name}'" for name in self.names)
        """Under these names they come back."""
        self.job_ids = tuple(f"j{n}" for n in range(1, jobs + 1))
        self.habits = habits
        self.profiles = profiles
        self.troubles = troubles
        self._judge = judge
        self.offences: tuple[Offence, ...] = ()
        """The laws that steps broke so far."""
        scope = Scope("settling", frozenset({Verb.ADMIT, Verb.CLAIM}), profiles)
        self._scope = scope
        self._keys = Keys(scope, self.names + self.again, self.job_ids)

    def first(self) -> Run:
        """All instances run, and there is no job."""
        table = self._keys.told(first(self._scope, self.names + self.again))
        return Run(table, self.names, (), {}, frozenset(), (), self.troubles)

    def key(self, run: Run) -> Hashable:
        """What can matter."""
        jobs = run.table.world.jobs
        sights = []
        for seen, sight in sorted(run.sights.items()):
            stands = _stands(sight, jobs.get(seen[1]))
            if stands or seen in run.twice:
                sights.append((*seen, stands, seen in run.twice))
        return (
            self._keys.named(run.table),
            run.running,
            run.still,
            tuple(sights),
            run.gave_up,
            run.left,
        )

    def neglected(self, run: Run, job_id: str) -> bool:
        """Is its owner gone, and somebody there to sweep it?"""
        job = run.table.world.jobs.get(job_id)
        if job is None or job.lease.status not in ACTIVE or job.lease.owner is None:
            return False
        return bool(run.running) and job.lease.owner not in run.running

    # What may happen ------------------------------------------------------------------------

    def moves(self, run: Run) -> Iterator[Move]:
        """Everything that may happen next."""
        later = self._keys.told(changed(run.table, now=StoreMs(run.table.now + 1)))
        yield Move(TICK, "", changed(run, table=later))
        for name in run.running:
            yield from self._works(run, name)
            yield from self._sweeps(run, name)
        yield from self._troubles(run)

    def _works(self, run: Run, name: str) -> Iterator[Move]:
        jobs = run.table.world.jobs
        new = [job_id for job_id in self.job_ids if job_id not in run.table.ghosts.used]
        for profile in self.profiles if new else ():
            yield self._plain(
                run,
                made.admit(new[0], name, TERMS, profile, False),
                f"{name} admits {new[0]} ({profile.name})",
            )
        held = [(job.id, job.lease.epoch) for job in jobs.values() if _holds(job, name)]
        if held:
            told = ", ".join(job_id for job_id, _ in held)
            yield self._plain(run, made.beat(name, tuple(held), TERMS), f"{name} renews {told}")
        for job_id, epoch in held:
            yield self._plain(
                run,
                made.complete(job_id, name, epoch, Status.COMPLETED),
                f"{name} completes {job_id}",
            )
        if any(job.lease.owner is None and job.lease.status in ACTIVE for job in jobs.values()):
            number = run.table.ghosts.claimers[name].last_no + 1
            yield self._plain(run, made.claim(name, number, TERMS, 1), f"{name} claims a job")

    def _sweeps(self, run: Run, name: str) -> Iterator[Move]:
        if name in run.gave_up:
            return
        act = ("look", name)
        yield Move(act, f"{name} looks for suspects", self._looked(run, name, False))
        after = self._looked(run, name, True)
        if after is not None:
            yield Move(act, f"{name} looks, and process evidence delays what it sees", after)
        ripe = [seen for seen in run.sights if seen in run.twice and seen[0] == name]
        if ripe:
            yield self._swept(run, name, ripe)

    def _looked(self, run: Run, name: str, evidence: bool) -> Run:
        """A pass over the suspects, a page each."""
        sights = {seen: sight for seen, sight in run.sights.items() if seen[0] != name}
        twice = {seen for seen in run.twice if seen[0] != name}
        after: str | None = None
        while True:
            page = decide(run.table.world, c.Suspects(after, 1), run.table.now).reply
            for suspect in page.suspects:
                after, seen = suspect.job_id, (name, suspect.job_id)
                registered = suspect.owner in run.table.world.instances
                if suspect.owner == name or (self.habits.trusts_instances and registered):
                    continue
                if evidence and (self.habits.vetoes or not suspect.delayed):
                    stamp = (suspect.job_id, suspect.epoch, suspect.beats, name)
                    run = changed(run, table=self._done(run.table, made.delay(*stamp)))
                    continue
                known = None if self.habits.forgets else run.sights.get(seen)
                sights[seen] = sweepers.observe(known, suspect, Ms(0), MonoMs(0), page.at)
                if sights[seen] is known:
                    twice.add(seen)
            if not page.more or self.habits.first_page_only:
                return changed(run, sights=sights, twice=frozenset(twice))

    def _swept(self, run: Run, name: str, ripe: list[tuple[str, str]]) -> Move:
        """One sweep of all that it has seen twice; then it forgets them."""
        stamps = tuple((seen[1], run.sights[seen].epoch, run.sights[seen].beats) for seen in ripe)
        command = made.sweep(name, stamps, run.table.now)
        reply = decide(run.table.world, command, run.table.now).reply
        after = self._done(run.table, command)
        sights = {seen: sight for seen, sight in run.sights.items() if seen not in ripe}
        refused = any(answer.refusal is not None for answer in reply.answers)
        gave_up = (*run.gave_up, name) if refused and self.habits.gives_up else run.gave_up
        twice = run.twice.difference(ripe)
        swept = changed(run, table=after, sights=sights, twice=twice, gave_up=gave_up)
        told = " and ".join(job_id for job_id, _, _ in stamps)
        return Move(("sweep", name), f"{name} sweeps {told}", swept)

    def _troubles(self, run: Run) -> Iterator[Move]:
        for name in run.still:
            still = tuple(other for other in run.still if other != name)
            yield Move(
                None,
                f"{name} goes on",
                changed(run, still=still, running=tuple(sorted((*run.running, name)))),
            )
        if run.left.downs:
            left = evolve(run.left, downs=run.left.downs - 1)
            for name in run.running:
                running = tuple(other for other in run.running if other != name)
                gone = changed(_blind(run, name), running=running, left=left)
                yield Move(None, f"{name} dies", gone)
                stopped = changed(run, running=running, still=(*run.still, name), left=left)
                yield Move(None, f"{name} stands still", stopped)
                if name in self.names:
                    new = f"{name}'"
                    back = changed(gone, running=tuple(sorted((*running, new))))
                    yield Move(None, f"{name} dies and comes back as {new}", back)
        if run.left.late:
            left = evolve(run.left, late=run.left.late - 1)
            for job in run.table.world.jobs.values():
                owner = job.lease.owner
                if owner is not None and _holds(job, owner) and owner not in run.running:
                    beat = made.beat(owner, ((job.id, job.lease.epoch),), TERMS)
                    words = f"a late heartbeat of {owner} renews {job.id}"
                    yield self._plain(changed(run, left=left), beat, words)

    def _plain(self, run: Run, command: c.Command[Any], words: str) -> Move:
        return Move(None, words, changed(run, table=self._done(run.table, command)))

    def _done(self, table: State, command: c.Command[Any]) -> State:
        """The rows after a command, judged."""
        decision = decide(table.world, command, table.now)
        step = table.ghosts.step(table.world, command, decision, table.now)
        self.offences += self._judge.offences(step)
        return self._keys.told(table.after(decision, step))


def _holds(job: Job, name: str) -> bool:
    return job.lease.owner == name and job.lease.status in ACTIVE


def _stands(sight: Suspicion, job: Job | None) -> bool:
    if job is None or job.lease.status not in ACTIVE:
        return False
    return (sight.epoch, sight.beats) == (job.lease.epoch, job.lease.beats)


def _blind(run: Run, name: str) -> Run:
    """What it knew is gone with it."""
    return changed(
        run,
        sights={seen: sight for seen, sight in run.sights.items() if seen[0] != name},
        twice=frozenset(seen for seen in run.twice if seen[0] != name),
    )
