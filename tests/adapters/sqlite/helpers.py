"""What the SQLite tests share: short terms, a clock that a test owns, and a look at all tables."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unswept.adapters.sql.rows import (
    CONSUMER_COLUMNS,
    EVENT_COLUMNS,
    INSTANCE_COLUMNS,
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
from unswept.core.job import Terms
from unswept.core.units import Ms, StoreMs
from unswept.core.world import Birth, DedupKey, World

TERMS = Terms(Ms(100), Ms(160), Ms(80), Ms(60))
"""Lease ttl 100, http grace 160, first beat 80, window 60."""


class Clock:
    """A store clock that stands until it is told to move, in either direction."""

    def __init__(self, now: int = 1_000_000) -> None:
        self.now = now

    def __call__(self) -> StoreMs:
        return StoreMs(self.now)


def tables_of(path: str | Path) -> Mapping[str, Any]:
    """All rows of a store's file, under the names and in the shape that a `World` has."""
    database = sqlite3.connect(path)
    try:
        read = database.execute
        output: dict[str, dict[tuple[int, int], Any]] = {}
        for job_id, epoch, *chunk in read(
            "SELECT job_id, epoch, chunk, stream, data FROM unswept_output"
        ):
            output.setdefault(job_id, {})[epoch, chunk[0]] = chunk_of(tuple(chunk))
        return {
            "jobs": {
                row[0]: job_of(row)
                for row in read(f"SELECT {job_list('unswept_label_sets')} FROM unswept_jobs")
            },
            "ids": {
                row[0]: Birth(row[1], row[2], row[3])
                for row in read("SELECT id, first_owner, born_at, joined_to FROM unswept_job_ids")
            },
            "keys": {
                (row[0], row[1]): DedupKey(row[2], row[3])
                for row in read(
                    "SELECT principal, request_key, job_id, admitted_at FROM unswept_dedup_keys"
                )
            },
            "requests": {
                row[0]: request_of(row[1:])
                for row in read(
                    "SELECT job_id, payload, principal, request_key FROM unswept_requests"
                )
            },
            "results": {
                row[0]: result_of(row[1:])
                for row in read(f"SELECT job_id, {listed(RESULT_COLUMNS)} FROM unswept_results")
            },
            "output": output,
            "instances": {
                row[0]: instance_of(row)
                for row in read(f"SELECT {listed(INSTANCE_COLUMNS)} FROM unswept_instances")
            },
            "consumers": {
                row[0]: consumer_of(row)
                for row in read(f"SELECT {listed(CONSUMER_COLUMNS)} FROM unswept_consumers")
            },
            "letters": {
                (row[0], row[1]): letter_of(row)
                for row in read(f"SELECT {listed(LETTER_COLUMNS)} FROM unswept_dead_letters")
            },
            "events": [
                event_of(row)
                for row in read(f"SELECT {listed(EVENT_COLUMNS)} FROM unswept_events ORDER BY seq")
            ],
        }
    finally:
        database.close()


def tables_in(world: World) -> Mapping[str, Any]:
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


def environment() -> dict[str, str]:
    """For another Python that imports what this one does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
