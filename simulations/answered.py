"""What a store under test made of a command, where it differs from the pure store: as far as its
own reads show it, in the form that laws can judge."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from attrs import evolve

from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.job import Job
from unswept.core.lease import Kind, Status
from unswept.core.world import Change, Decision, Table, World
from unswept.simulations.rewriting import mentioned
from unswept.spec.laws import READS

_THERE: Final = True
"""Stands for a row whose key alone is looked at."""


def as_answered(
    store: c.Store, world: World, command: c.Command[Any], decision: Decision[Any], reply: Any
) -> Decision[Any] | None:
    """What the store has decided, on a world in which the pure store would take `decision`; None
    where the command decides nothing."""
    if type(command) in READS:
        return None
    events = store.execute(c.ReadEvents(world.events.newest, c.MAX_PAGE)).events
    orphaned = {event.job_id for event in events if event.kind is Kind.ORPHAN}
    changes: list[Change] = []
    for job_id in _concerned(command, decision.reply, reply):
        before, after = world.jobs.get(job_id), _job(store, job_id)
        if before is not None and job_id in orphaned and not _is_orphaned(after):
            # Its policy took it on in the same step: only the events show what was between.
            changes.append(Change(Table.JOBS, job_id, _orphaned(before)))
        if after != before:
            changes.append(Change(Table.JOBS, job_id, after))
    born = [key for _, key, row in changes if row is not None and key not in world.ids]
    others = [change for change in decision.changes if change.table is not Table.JOBS]
    used = [Change(Table.IDS, job_id, _THERE) for job_id in born]
    return Decision(reply, (*changes, *others, *used), tuple(events))


def _concerned(command: c.Command[Any], *replies: Any) -> Iterable[str]:
    """The jobs that a command names, and those that it was given."""
    claims = [reply for reply in replies if isinstance(reply, r.Claimed)]
    granted = [grant.standing.job_id for claim in claims for grant in claim.grants]
    return dict.fromkeys((*mentioned(command), *granted))


def _job(store: c.Store, job_id: str) -> Job | None:
    found = store.execute(c.Find(job_id))
    return found.job if isinstance(found, r.Found) else None


def _is_orphaned(job: Job | None) -> bool:
    return job is not None and job.lease.status is Status.ORPHANED


def _orphaned(job: Job) -> Job:
    return evolve(job, lease=evolve(job.lease, status=Status.ORPHANED, deadline=None))
