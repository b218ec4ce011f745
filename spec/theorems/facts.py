"""What every move keeps beside the lease: a job that is over has the time of its end and no other
has one, and an orphan has the time of its sweep. The databases check it, and looks rely on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from unswept.core import job as jobs
from unswept.core.job import Job, Transport
from unswept.core.lease import TERMINAL, Lease, Status
from unswept.core.refusal import Refusal
from unswept.core.units import StoreMs
from unswept.spec.theorems.drawn import Asked, terms_of
from unswept.spec.theorems.theorem import Edit, Theorem

FACTS: Final = "facts"

MOVES: Final[Mapping[str, Callable[[Job, Asked], Job | Refusal]]] = MappingProxyType(
    {
        "claim": lambda job, a: jobs.claim(job, a.owner, 1, terms_of(a), a.now),
        "start": lambda job, a: jobs.start(job, a.owner, a.epoch, None, terms_of(a), a.now),
        "renew": lambda job, a: jobs.renew(job, a.owner, a.epoch, terms_of(a), a.now),
        "delay": lambda job, a: jobs.delay(job, a.epoch, a.beats, a.now),
        "orphan": lambda job, a: jobs.orphan(job, a.epoch, a.beats, a.now),
        "complete": lambda job, a: jobs.complete(job, a.owner, a.epoch, a.outcome, a.now),
        "release": lambda job, a: jobs.release(job, a.owner, a.epoch, None, a.now),
        "request_cancel": lambda job, a: jobs.request_cancel(job, a.now),
        "requeue": lambda job, a: jobs.requeue(job, a.epoch, a.force, None, a.now),
        "settle": lambda job, a: jobs.settle(job, a.epoch, a.settlement, a.now),
        "expire": lambda job, a: jobs.expire(job, a.now),
        "withdraw": lambda job, a: jobs.withdraw(job, a.owner, a.now),
    }
)


def facts_fit(job: Job) -> bool:
    """The times of an end and of a sweep stand where there was one."""
    over = job.lease.status in TERMINAL
    swept = job.lease.status is not Status.ORPHANED or job.orphaned_at is not None
    return over == (job.finished_at is not None) and swept


def _keeps_the_facts(name: str, twin: Edit) -> Theorem:
    def claim(lease: Lease, asked: Asked, then: StoreMs, due: StoreMs) -> bool | None:
        over, swept = lease.status in TERMINAL, lease.status is Status.ORPHANED
        job = Job(
            "j",
            lease,
            Transport.PROCESS,
            StoreMs(0),
            finished_at=then if over else None,
            orphaned_at=then if swept else None,
            queue_deadline=due,
        )
        after = MOVES[name](job, asked)
        return None if isinstance(after, Refusal) else facts_fit(after)

    return Theorem(
        f"{name}_keeps_the_facts",
        FACTS,
        f"After a {name} a job has the time of its end exactly if it is over, and an orphan has "
        "the time of its sweep.",
        claim,
        twin,
    )


_ENDED: Final = "now if lease.status in rules.TERMINAL else job.finished_at"
_BREAKS: Final[Mapping[str, Edit]] = MappingProxyType(
    {
        "claim": Edit(jobs.claim, "process=None", "process=None, finished_at=now"),
        "start": Edit(jobs.start, "started_at=now", "started_at=now, finished_at=now"),
        "renew": Edit(jobs.renew, "beat_at=now", "beat_at=now, finished_at=now"),
        "delay": Edit(
            jobs._with_lease,
            "changed(job, lease=lease)",
            "changed(job, finished_at=0)",
        ),
        "orphan": Edit(jobs.orphan, "orphaned_at=now", "orphaned_at=None"),
        "complete": Edit(jobs._with_end, _ENDED, "job.finished_at"),
        "release": Edit(jobs._unowned, "finished_at=now", "finished_at=None"),
        "request_cancel": Edit(jobs._with_end, _ENDED, "now"),
        "requeue": Edit(jobs._unowned, "finished_at=now", "finished_at=None"),
        "settle": Edit(jobs._with_end, _ENDED, "job.orphaned_at and None"),
        "expire": Edit(jobs._with_end, _ENDED, "job.finished_at"),
        "withdraw": Edit(jobs._with_end, _ENDED, "job.finished_at"),
    }
)

THEOREMS: Final = tuple(_keeps_the_facts(name, _BREAKS[name]) for name in MOVES)
