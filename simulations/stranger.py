"""A simulated stranger: it says what must be refused, each time wrong in one thing alone, and looks
around in pages of one or two rows.

All others are honest, and so would never find out whether a store minds the owner or the epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final, TypeAlias

from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.job import Job, Terms
from unswept.core.lease import ACTIVE, Kind, RequeueRule, Status
from unswept.core.units import Ms, StoreMs
from unswept.core.values import Chunk, Stream
from unswept.core.world import World
from unswept.simulations.actor import Actor, Host, Surroundings, pause, unheeded
from unswept.simulations.marks import Mark

PATIENCE_MS: Final = 5_000
MISTAKE_EVERY_MS: Final = 20_000
LOOK_EVERY_MS: Final = 60_000

LATE_OUTPUT_MS: Final = Ms(60_000)

_NAME: Final = "stranger"
_CHUNK: Final = Chunk(10_000, Stream.STDERR, b"not mine")

Said: TypeAlias = c.Command[Any] | None
"""None: there is nothing at the moment about which one could be so wrong."""


class Stranger(Actor):
    """Somebody who sees the store's rows, so as to be wrong in one thing alone."""

    def __init__(
        self, name: str, host: Host, world: Surroundings, rows: World, terms: Terms
    ) -> None:
        """It has said nothing yet. The rows are a live view."""
        super().__init__(name, host, world, PATIENCE_MS)
        self._rows = rows
        self._terms = terms

    def begin(self) -> None:
        """Speak, and look around, from time to time."""
        self.later(pause(self.world.rng, MISTAKE_EVERY_MS), self._speak)
        self.later(pause(self.world.rng, LOOK_EVERY_MS), self._look)

    def _speak(self) -> None:
        rng = self.world.rng
        said = rng.choice(MISTAKES)(Moment(self._rows, rng, self._terms))
        if said is not None:
            for _ in range(rng.randint(1, 2)):
                self.call(said, lambda reply, sent_at: self._answered(reply), tries=1)
        self.later(pause(rng, MISTAKE_EVERY_MS), self._speak)

    def _answered(self, reply: Any) -> None:
        if isinstance(reply, r.Refused):
            self.world.sometimes(Mark.STRANGER_REFUSED)

    def _look(self) -> None:
        rng = self.world.rng
        for look in LOOKS:
            said = look(Moment(self._rows, rng, self._terms))
            if said is not None:
                self.call(said, unheeded, tries=1)
        self.later(pause(rng, LOOK_EVERY_MS), self._look)


class Moment:
    """The rows as they are, and a draw among them."""

    def __init__(self, rows: World, rng: Random, terms: Terms) -> None:
        self.rows = rows
        self.rng = rng
        self.terms = terms

    def job(self, fits: Callable[[Job], bool]) -> Job | None:
        """One of the jobs that fit."""
        found = [job for job in self.rows.jobs.values() if fits(job)]
        return self.rng.choice(found) if found else None

    def held(self, fits: Callable[[Job], bool] = lambda job: True) -> tuple[Job, str] | None:
        """One of those that somebody holds, if only as an orphan, and who does."""
        job = self.job(lambda job: job.lease.owner is not None and _lives(job) and fits(job))
        return None if job is None or job.lease.owner is None else (job, job.lease.owner)


def _lives(job: Job) -> bool:
    return job.lease.status in ACTIVE or _is_orphan(job)


def _is_orphan(job: Job) -> bool:
    return job.lease.status is Status.ORPHANED


def _is_for_itself(job: Job) -> bool:
    return job.lease.requeue is RequeueRule.NEVER


# Mistakes ---------------------------------------------------------------------------------------


def _as_owner(moment: Moment, job: Job, owner: str, epoch: int) -> c.Command[Any]:
    """Something that an owner says under its epoch."""
    return moment.rng.choice(
        (
            c.Start(job.id, owner, epoch, moment.terms),
            c.Output(job.id, owner, epoch, _CHUNK, LATE_OUTPUT_MS),
            c.Complete(job.id, owner, epoch, Status.COMPLETED),
            c.Release(job.id, owner, epoch),
            c.Heartbeat(owner, moment.terms, (c.Hold(job.id, epoch),)),
        )
    )


def not_the_owner(moment: Moment) -> Said:
    """The epoch is right, the owner is not."""
    held = moment.held()
    return None if held is None else _as_owner(moment, held[0], _NAME, held[0].lease.epoch)


def not_the_epoch(moment: Moment) -> Said:
    """The owner is right, the epoch is over."""
    held = moment.held(lambda job: job.lease.epoch > 1)
    return None if held is None else _as_owner(moment, *held, held[0].lease.epoch - 1)


def not_to_be_released(moment: Moment) -> Said:
    """The owner gives back what nobody else may run."""
    held = moment.held(_is_for_itself)
    return None if held is None else c.Release(held[0].id, held[1], held[0].lease.epoch)


def no_more_to_be_released(moment: Moment) -> Said:
    """The owner gives back what is orphaned already."""
    held = moment.held(_is_orphan)
    return None if held is None else c.Release(held[0].id, held[1], held[0].lease.epoch)


def not_to_be_requeued(moment: Moment) -> Said:
    """Without force, what nobody else may run."""
    job = moment.job(lambda job: _is_orphan(job) and _is_for_itself(job))
    return None if job is None else c.Requeue(job.id, job.lease.epoch, actor=_NAME)


def of_another_life(moment: Moment) -> Said:
    """A judgement on an orphan of the epoch before."""
    job = moment.job(_is_orphan)
    if job is None:
        return None
    seen = job.lease.epoch - 1
    if moment.rng.random() < 0.5:
        return c.Requeue(job.id, seen, force=True, actor=_NAME)
    return c.Settle(job.id, seen, Status.FAILED, actor=_NAME)


def not_its_release(moment: Moment) -> Said:
    """The repeat of a release that was another's."""
    events = moment.rows.events
    job = moment.job(lambda job: (job.id, job.lease.epoch, Kind.RELEASE) in events)
    return None if job is None else c.Release(job.id, _NAME, job.lease.epoch - 1)


def delayed_again(moment: Moment) -> Said:
    """A second delay in one epoch."""
    job = moment.job(lambda job: job.lease.delayed_at is not None and job.lease.status in ACTIVE)
    return None if job is None else c.Delay(job.id, job.lease.epoch, job.lease.beats, _NAME)


def not_its_beats(moment: Moment) -> Said:
    """A sweep of a job that has been renewed since it was seen."""
    held = moment.held(lambda job: job.lease.status in ACTIVE and job.lease.beats > 1)
    if held is None:
        return None
    job = held[0]
    seen = c.Target(job.id, job.lease.epoch, job.lease.beats - 1, job.admitted_at)
    return c.Sweep(_NAME, (seen,))


def not_its_own_admit(moment: Moment) -> Said:
    """The withdrawal of a job that another has admitted: it is a wish to cancel, and no more."""
    job = moment.job(lambda job: job.lease.status is Status.QUEUED and job.lease.owner is not None)
    return None if job is None else c.Withdraw(job.id, _NAME)


def not_its_own_id(moment: Moment) -> Said:
    """An admit under the id of another's job."""
    job = moment.job(lambda job: True)
    return None if job is None else c.Admit(job.id, _NAME, moment.terms)


def not_over(moment: Moment) -> Said:
    """The eviction of a job that is not over."""
    job = moment.job(_lives)
    return None if job is None else c.Evict((c.Hold(job.id, job.lease.epoch),), Ms(1))


def not_silent(moment: Moment) -> Said:
    """The end of an instance that has been heard of since."""
    rows = [row for row in moment.rows.instances.values() if row.gone_at is None]
    if not rows:
        return None
    row = moment.rng.choice(rows)
    return c.ForgetInstances(((row.id, StoreMs(row.seen_at - 1)),), Ms(1))


def not_its_key(moment: Moment) -> Said:
    """The end of a request key that is another job's by now."""
    keys = list(moment.rows.keys)
    return c.ForgetKeys(((*moment.rng.choice(keys), _NAME),), Ms(0)) if keys else None


def not_evicted(moment: Moment) -> Said:
    """The end of the events of a job that is there."""
    job = moment.job(lambda job: True)
    return None if job is None else c.ForgetEvents((job.id,), Ms(1))


def not_registered(moment: Moment) -> Said:
    """A claim of somebody whom nobody knows."""
    return c.Claim(_NAME, 1, moment.terms)


def not_the_token(moment: Moment) -> Said:
    """An acknowledgement under the token before."""
    rows = [row for row in moment.rows.consumers.values() if row.token > 1]
    if not rows:
        return None
    row = moment.rng.choice(rows)
    return c.Acknowledge(row.name, row.token - 1, moment.rows.events.newest)


MISTAKES: Final = (
    not_the_owner,
    not_the_owner,
    not_the_epoch,
    not_the_epoch,
    not_to_be_released,
    no_more_to_be_released,
    not_to_be_requeued,
    of_another_life,
    not_its_release,
    delayed_again,
    not_its_beats,
    not_its_own_admit,
    not_its_own_id,
    not_over,
    not_silent,
    not_its_key,
    not_evicted,
    not_registered,
    not_the_token,
)
"""What it may say; those that are many things in one stand twice."""


# Looks ------------------------------------------------------------------------------------------


def _suspects(moment: Moment) -> Said:
    return c.Suspects(limit=moment.rng.randint(1, 2))


def _events(moment: Moment) -> Said:
    return c.ReadEvents(moment.rng.randint(0, moment.rows.events.newest), moment.rng.randint(1, 2))


def _output(moment: Moment) -> Said:
    job = moment.job(lambda job: job.id in moment.rows.output)
    return None if job is None else c.ReadOutput(job.id, limit=1)


def _overdue(moment: Moment) -> Said:
    return c.LookOverdue(Ms(1), Ms(1), Ms(0), limit=1, event_retention_ms=Ms(1))


def _letters(moment: Moment) -> Said:
    names = sorted(moment.rows.consumers)
    return c.ReadDeadLetters(moment.rng.choice(names), limit=1) if names else None


LOOKS: Final = (_suspects, _events, _output, _overdue, _letters)
"""Whatever comes in pages."""
