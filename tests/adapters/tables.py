"""All rows of a store, of whichever kind, in the shape that a `World` has: to be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from unswept.adapters.sql.rows import (
    EVENT_COLUMNS,
    INSTANCE_COLUMNS,
    JOB_COLUMNS,
    RESULT_COLUMNS,
    chunk_of,
    event_of,
    instance_of,
    job_of,
    request_of,
    result_of,
)
from unswept.core.world import Birth, DedupKey, World

COLUMNS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "jobs": JOB_COLUMNS,
        "job_ids": ("id", "first_owner", "born_at", "joined_to"),
        "dedup_keys": ("principal", "request_key", "job_id", "admitted_at"),
        "requests": ("job_id", "payload", "principal", "request_key"),
        "results": ("job_id", *RESULT_COLUMNS),
        "output": ("job_id", "epoch", "chunk", "stream", "data"),
        "instances": INSTANCE_COLUMNS,
        "events": EVENT_COLUMNS,
    }
)
"""What is read of each table. Of the events in the order of `seq`; the others in any."""


def tables_from(rows: Mapping[str, Iterable[tuple[Any, ...]]]) -> dict[str, Any]:
    """The rows of all tables, with those columns, under the names that a world has for them."""
    output: dict[str, dict[tuple[int, int], Any]] = {}
    for job_id, epoch, *chunk in rows["output"]:
        output.setdefault(job_id, {})[epoch, chunk[0]] = chunk_of(tuple(chunk))
    return {
        "jobs": {row[0]: job_of(row) for row in rows["jobs"]},
        "ids": {row[0]: Birth(*row[1:]) for row in rows["job_ids"]},
        "keys": {(row[0], row[1]): DedupKey(*row[2:]) for row in rows["dedup_keys"]},
        "requests": {row[0]: request_of(row[1:]) for row in rows["requests"]},
        "results": {row[0]: result_of(row[1:]) for row in rows["results"]},
        "output": output,
        "instances": {row[0]: instance_of(row) for row in rows["instances"]},
        "events": [event_of(row) for row in rows["events"]],
    }


def tables_in(world: World) -> dict[str, Any]:
    """The same of a world."""
    return {
        "jobs": dict(world.jobs),
        "ids": dict(world.ids),
        "keys": dict(world.keys),
        "requests": dict(world.requests),
        "results": dict(world.results),
        "output": {job_id: dict(chunks) for job_id, chunks in world.output.items()},
        "instances": dict(world.instances),
        "events": list(world.events.values()),
    }
