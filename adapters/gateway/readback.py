"""Reads any instance's job from the store, each time anew: another's row is never kept."""

from __future__ import annotations

import json
from typing import Final

from attrs import frozen

from unswept.adapters.gateway.errors import JobNotFoundError
from unswept.core import commands as c
from unswept.core.checks import shown
from unswept.core.lease import TERMINAL, Kind, Status
from unswept.core.replies import Accepted, OutputPage, Refused
from unswept.core.units import StoreMs
from unswept.core.values import Result, Stream

LOCAL: Final = "local"
"""The principal of whoever runs on the gateway's own host; jobs without a principal are theirs."""
MAX_CHARS: Final = 200_000
_PAGE: Final = 64


@frozen
class Snapshot:
    """A job as it stands in the store."""

    job_id: str
    status: Status
    epoch: int
    owner: str | None
    correlation_id: str | None
    admitted_at: StoreMs
    started_at: StoreMs | None
    finished_at: StoreMs | None
    orphaned_at: StoreMs | None
    cancel_requested_at: StoreMs | None
    exit_code: int | None
    http_status: int | None
    error: str | None
    body: bytes

    @property
    def over(self) -> bool:
        """Will it never change again? An orphaned job may still heal."""
        return self.status in TERMINAL


@frozen
class Output:
    """What a job has written so far."""

    stdout: str
    stderr: str
    truncated: bool
    """The beginning of a stream was left off, for there were more characters than asked for."""


def read_snapshot(store: c.Store, job_id: str, principal: str) -> Snapshot:
    """The job, if it is this principal's; `JobNotFoundError` otherwise."""
    found = store.execute(c.Find(job_id))
    if isinstance(found, Refused) or (found.principal or LOCAL) != principal:
        raise JobNotFoundError(f"there is no job {shown(job_id)} for {shown(principal)}")
    asked = store.execute(c.ReadRequest(job_id))
    payload = b"" if isinstance(asked, Refused) else asked.request.payload
    job, result = found.job, found.result
    return Snapshot(
        job_id,
        job.lease.status,
        job.lease.epoch,
        job.lease.owner,
        _correlation_id(payload),
        job.admitted_at,
        job.started_at,
        job.finished_at,
        job.orphaned_at,
        job.lease.cancel_requested_at,
        None if result is None else result.exit_code,
        None if result is None else result.http_status,
        None if result is None else result.error,
        b"" if result is None else result.body,
    )


def ended_snapshot(
    correlation_id: str,
    admitted_at: StoreMs | None,
    started_at: StoreMs | None,
    completed: Accepted,
    result: Result,
) -> Snapshot | None:
    """A job that this instance admitted, started and completed without a break, by the store's own
    replies: it never changes again, so that reading it would bring nothing else. (L4)

    None where the replies do not tell all of it."""
    standing = completed.standing
    if admitted_at is None or started_at is None or completed.transition is not Kind.COMPLETE:
        return None
    return Snapshot(
        standing.job_id,
        standing.status,
        standing.epoch,
        standing.owner,
        correlation_id,
        admitted_at,
        started_at,
        finished_at=completed.at,
        orphaned_at=None,
        cancel_requested_at=standing.cancel_requested_at,
        exit_code=result.exit_code,
        http_status=result.http_status,
        error=result.error,
        body=result.body,
    )


def read_output(store: c.Store, job_id: str, principal: str, max_chars: int) -> Output:
    """The output of the job's present epoch, each stream cut to its last `max_chars`."""
    read_snapshot(store, job_id, principal)
    streams = {stream: bytearray() for stream in Stream}
    first = 0
    while True:
        page = store.execute(c.ReadOutput(job_id, None, first, _PAGE))
        if not isinstance(page, OutputPage):
            raise JobNotFoundError(f"there is no job {shown(job_id)}")
        for chunk in page.chunks:
            streams[chunk.stream] += chunk.data
        if not page.more:
            break
        first = page.chunks[-1].chunk + 1
    texts = {stream: data.decode("utf-8", "replace") for stream, data in streams.items()}
    cut = {stream: text[max(0, len(text) - max_chars) :] for stream, text in texts.items()}
    return Output(cut[Stream.STDOUT], cut[Stream.STDERR], truncated=cut != texts)


def _correlation_id(payload: bytes) -> str | None:
    """What a gateway has put into the payload; others put there what they like."""
    try:
        found = json.loads(payload)
    except ValueError:
        return None
    value = found.get("correlation_id") if isinstance(found, dict) else None
    return value if isinstance(value, str) else None
