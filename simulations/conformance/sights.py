"""What the draw of a command goes by: the rows, the time, and which jobs suit it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

from attrs import frozen

from unswept.core import commands as c
from unswept.core.job import Job
from unswept.core.lease import (
    ACTIVE,
    TERMINAL,
    Status,
    is_suspect,
)
from unswept.core.units import StoreMs
from unswept.core.values import Request
from unswept.core.world import World
from unswept.simulations.conformance.tours import OTHER_TERMS, RETENTION_MS, TERMS

# Ids that a store may sort, fold, cut or read as numbers, if it is careless.
JOB_IDS: Final = (
    *("a", "B", "b", "10", "9", "é", "o'h", "x y", "1e1", "%", "\U0001f600", "job", "Job"),
    *("null", "--", "[1]", "a" * 200),
)
INSTANCES: Final = ("ann", "bob", "Ann")
CONSUMERS: Final = ("billing", "mail")
PARTITIONS: Final = ("", "gpu")
POLICIES: Final = (TERMS, OTHER_TERMS)


@frozen
class Sight:
    """What a rule sees when it chooses: the pure store's rows and the time."""

    world: World
    now: StoreMs


Draw = Random
"""Where all choices of a history come from."""
Fits = Callable[[Sight, Job], bool]
Ask = Callable[[Draw, Sight, Fits], c.Command[Any]]


def pick(draw: Draw, *choices: Any) -> Any:
    """One of these, each as likely."""
    return draw.choice(choices)


def mostly(draw: Draw, likely: Any, *others: Any) -> Any:
    """The first choice, five times as often as each other one."""
    return pick(draw, likely, likely, likely, likely, likely, *others)


def a_job(draw: Draw, sight: Sight, fits: Fits) -> Job | str:
    """Mostly a job that fits, else any job or an id; an id where that has no row."""
    jobs = sight.world.jobs
    fitting = [job_id for job_id, job in jobs.items() if fits(sight, job)]
    spent = [job_id for job_id in sight.world.ids if job_id not in jobs]
    choices = mostly(draw, fitting or [*jobs], [*jobs], spent, JOB_IDS)
    job_id: str = pick(draw, *(choices or JOB_IDS))
    return jobs.get(job_id, job_id)


def some_jobs(draw: Draw, sight: Sight, fits: Fits) -> Iterator[Job | str]:
    """None to three different jobs."""
    chosen: dict[str, Job | str] = {}
    for _ in range(pick(draw, 1, 2, 3, 0)):
        job = a_job(draw, sight, fits)
        chosen[job.id if isinstance(job, Job) else job] = job
    return iter(chosen.values())


def a_hold(draw: Draw, sight: Sight, fits: Fits) -> tuple[str, str, int]:
    """(job id, owner, epoch) as a holder would say it, or as a near miss."""
    job = a_job(draw, sight, fits)
    if isinstance(job, str):
        return (job, pick(draw, *INSTANCES), 1)
    owner = job.lease.owner or _last_owner(sight, job)
    miss = mostly(draw, None, "owner", "epoch", "epoch")
    return (
        job.id,
        pick(draw, *INSTANCES) if miss == "owner" else owner,
        near(draw, job.lease.epoch) if miss == "epoch" else job.lease.epoch,
    )


def _last_owner(sight: Sight, job: Job) -> str:
    """Who held the job before it was nobody's: that one may still write."""
    events = (event for event in sight.world.events.values() if event.job_id == job.id)
    owners = [event.owner for event in events if event.owner is not None]
    return owners[-1] if owners else INSTANCES[0]


def near(draw: Draw, count: int) -> int:
    """This number, or one beside it."""
    return int(mostly(draw, count, max(count - 1, 0), count + 1))


def unused_id(draw: Draw, sight: Sight) -> str:
    """Mostly an id that nobody has used."""
    unused = [job_id for job_id in JOB_IDS if job_id not in sight.world.ids]
    return str(pick(draw, *(mostly(draw, unused, JOB_IDS) or JOB_IDS)))


def a_request(draw: Draw, keyed: bool) -> Request:
    """A payload, and mostly a key where one is wanted."""
    payload = pick(draw, b"", b"\0\xff", b"[1]")
    if not keyed:
        return Request(payload)
    principal = mostly(draw, "p", "P", None)
    return Request(payload, principal, None if principal is None else mostly(draw, "k", "K", None))


def soon(draw: Draw, sight: Sight) -> StoreMs | None:
    """Now, a little later, or never."""
    after = pick(draw, None, None, 0, 10, 30)
    return None if after is None else StoreMs(sight.now + after)


# Which jobs a command is mostly asked about: a command that suits none is asked less often.


def any_job(sight: Sight, job: Job) -> bool:
    """It suits every job."""
    return True


def owned(sight: Sight, job: Job) -> bool:
    """Active, and somebody's."""
    return job.lease.status in ACTIVE and job.lease.owner is not None


def unstarted(sight: Sight, job: Job) -> bool:
    """Somebody's, and not started yet."""
    return owned(sight, job) and job.lease.status is Status.QUEUED


def writable(sight: Sight, job: Job) -> bool:
    """Its owner may still write."""
    return job.lease.owner is not None and job.lease.status not in TERMINAL


def queued(sight: Sight, job: Job) -> bool:
    """It waits, whoever owns it."""
    return job.lease.status is Status.QUEUED


def claimable(sight: Sight, job: Job) -> bool:
    """It waits, and is nobody's."""
    return queued(sight, job) and job.lease.owner is None


def expirable(sight: Sight, job: Job) -> bool:
    """It waits past its queue deadline."""
    due = job.queue_deadline
    return claimable(sight, job) and due is not None and due <= sight.now


def unfinished(sight: Sight, job: Job) -> bool:
    """Not terminal."""
    return job.lease.status not in TERMINAL


def suspect(sight: Sight, job: Job) -> bool:
    """Suspect now or in two milliseconds: a sweep that comes that much too early must miss."""
    return is_suspect(job.lease, StoreMs(sight.now + 2))


def orphaned(sight: Sight, job: Job) -> bool:
    """Swept, and neither healed nor requeued."""
    return job.lease.status is Status.ORPHANED


def evictable(sight: Sight, job: Job) -> bool:
    """Its retention is over."""
    return job.finished_at is not None and job.finished_at + RETENTION_MS <= sight.now


def printed(sight: Sight, job: Job) -> bool:
    """It has output."""
    return job.id in sight.world.output
