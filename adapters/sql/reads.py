"""The scripts of what readers ask; each is one statement, and so one look at a committed state."""

from __future__ import annotations

from itertools import count, takewhile
from typing import Any

from unswept.adapters.sql.queries import Queries
from unswept.adapters.sql.rows import (
    JOB_COLUMNS,
    chunk_of,
    event_of,
    job_of,
    request_of,
    result_of,
)
from unswept.adapters.sql.steps import Row, Script, Statement, Timed, read_clock
from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.refusal import Refusal
from unswept.core.world import counts_of

_JOB_WIDTH = len(JOB_COLUMNS)


def find(q: Queries, cmd: c.Find) -> Script[r.Found | r.Refused]:
    """One job as it stands, with its result."""
    rows = yield Timed(q.find, {"id": cmd.job_id})
    now = yield from read_clock()
    if not rows:
        return r.Refused(now, Refusal.ABSENT, None)
    job = rows[0][:_JOB_WIDTH]
    principal, request_key, has_result, *result = rows[0][_JOB_WIDTH:]
    if job[0] is None:
        return r.Refused(now, Refusal.SPENT, None)
    return r.Found(
        now,
        job_of(job),
        principal,
        request_key,
        None if has_result is None else result_of(tuple(result)),
    )


def read_request(q: Queries, cmd: c.ReadRequest) -> Script[r.RequestRead | r.Refused]:
    """A job's request with its payload."""
    rows = yield Timed(q.read_request, {"id": cmd.job_id})
    now = yield from read_clock()
    if not rows:
        return r.Refused(now, Refusal.ABSENT, None)
    if rows[0][0] is None:
        return r.Refused(now, Refusal.SPENT, None)
    return r.RequestRead(now, request_of(rows[0][1:]))


def read_output(q: Queries, cmd: c.ReadOutput) -> Script[r.OutputPage | r.Refused]:
    """The output of one epoch, from a chunk on."""
    params = {"id": cmd.job_id, "epoch": cmd.epoch, "first": cmd.first, "rows": cmd.limit + 1}
    rows = yield Timed(q.read_output, params)
    now = yield from read_clock()
    if not rows:
        return r.Refused(now, Refusal.ABSENT, None)
    current = rows[0][0]
    if current is None:
        return r.Refused(now, Refusal.SPENT, None)
    epoch = current if cmd.epoch is None else cmd.epoch
    chunks = tuple(chunk_of(row[1:]) for row in rows[: cmd.limit] if row[1] is not None)
    return r.OutputPage(now, epoch, chunks, more=len(rows) > cmd.limit)


def count_jobs(q: Queries, cmd: c.Count) -> Script[r.Counts]:
    """How many jobs are not over, by partition and where they stand."""
    rows = yield Timed(q.count_jobs, {})
    now = yield from read_clock()
    found: dict[str, dict[str, Any]] = {}
    for partition, stands, number, oldest_at in rows:
        counts = found.setdefault(partition, {})
        counts[stands] = number
        if oldest_at is not None:
            counts["oldest_at"] = oldest_at
    counted = {name: r.PartitionCount(name, **counts) for name, counts in found.items()}
    return r.Counts(now, counts_of(counted, cmd.partitions))


def read_events(q: Queries, cmd: c.ReadEvents) -> Script[r.EventsPage]:
    """Events in the order of their numbers. A number that is missing was rolled back, or belongs to
    a transaction that is still under way: then the page ends before it, so that no event is passed
    over that appears later."""
    rows = yield Timed(q.read_events, {"after": cmd.after, "rows": cmd.limit})
    now = yield from read_clock()
    if q.probe is not None and _whole(rows, cmd.after) < len(rows):
        mark = yield Statement(q.probe, {})
        params = {"after": cmd.after, "upto": rows[-1][0], "probe": mark[0][0]}
        rows = yield Statement(q.read_events_again, params)
        if not rows[-1][-1]:
            rows = rows[: _whole(rows, cmd.after)]
    next_after = rows[-1][0] if rows else cmd.after
    return r.EventsPage(now, tuple(event_of(row[1:]) for row in rows), next_after)


def _whole(rows: list[Row], after: int) -> int:
    """How many of the rows follow `after` without a gap."""
    wanted = count(after + 1)
    return sum(1 for _ in takewhile(lambda row: row[0] == next(wanted), rows))
