"""All rows of a store, of whichever kind, in the shape that a `World` has: to be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from unswept.adapters.sql.rows import (
    CONSUMER_COLUMNS,
    EVENT_COLUMNS,
    INSTANCE_COLUMNS,
    JOB_COLUMNS,
    LETTER_COLUMNS,
    RESULT_COLUMNS,
    chunk_of,
    consumer_of,
    event_of,
    instance_of,
    job_list,
    job_of,
    letter_of,
    listed,
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
        "consumers": CONSUMER_COLUMNS,
        "dead_letters": LETTER_COLUMNS,
        "events": EVENT_COLUMNS,
    }
)
"""What is read of each table. Of the events in the order of `seq`; the others in any."""


def selected(table: str, label_sets: str) -> str:
    """Those columns for a SELECT; of a job its labels, which stand in table `label_sets`."""
    return job_list(label_sets) if table == "jobs" else listed(COLUMNS[table])


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
        "consumers": {row[0]: consumer_of(row) for row in rows["consumers"]},
        "letters": {(row[0], row[1]): letter_of(row) for row in rows["dead_letters"]},
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
        "consumers": dict(world.consumers),
        "letters": dict(world.letters),
        "events": list(world.events.values()),
    }
