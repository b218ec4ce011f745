"""How a broken store differs from the real one: it decides in a world that was edited before, and
what it decides is edited after."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import evolve

from unswept.core.job import Job
from unswept.core.records import changed
from unswept.core.world import Decision, Table, World


def with_lease(job: Job, **fields: Any) -> Job:
    """The job with some fields of its lease changed."""
    return changed(job, lease=changed(job.lease, **fields))


def with_jobs(world: World, jobs: Mapping[str, Job]) -> World:
    """The world with these jobs in place of its own."""
    return evolve(world, jobs={**world.jobs, **jobs}) if jobs else world


def edited(decision: Decision[Any], edit: Callable[[Job], Job]) -> Decision[Any]:
    """The decision with every job that it puts edited."""
    changes = tuple(
        change._replace(row=edit(change.row))
        if change.table is Table.JOBS and change.row
        else change
        for change in decision.changes
    )
    return changed(decision, changes=changes)
