"""Rows as the core's values, and the core's values as the parameters of statements."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from unswept.adapters.sql.steps import Params, Row
from unswept.core.job import Job, OnOrphan, Process, Terms, Transport
from unswept.core.lease import Kind, Lease, RequeueRule, Status
from unswept.core.outbox import Consumer, DeadLetter
from unswept.core.replies import Standing, Suspect
from unswept.core.units import StoreMs
from unswept.core.values import Cause, Chunk, Event, Instance, Request, Result, Stream

NO_LABELS: Final = 0
"""The number of the empty set of labels: it needs no look-up."""
_NO_LABELS: Final = "[]"

LEASE_COLUMNS: Final = (
    "status",
    "owner",
    "epoch",
    "beats",
    "deadline",
    "cancel_requested_at",
    "delayed_at",
    "ttl_ms",
    "confirm_ms",
    "requeue",
)
PROCESS_COLUMNS: Final = ("pid", "process_start", "boot_id")
JOB_COLUMNS: Final = (
    "id",
    *LEASE_COLUMNS,
    "transport",
    "admitted_at",
    "partition",
    "label_set",
    "priority",
    "attempts",
    "max_attempts",
    "on_orphan",
    "queue_deadline",
    "not_before",
    "claim_no",
    "beat_at",
    "started_at",
    "finished_at",
    "orphaned_at",
    *PROCESS_COLUMNS,
)
STANDING_COLUMNS: Final = (
    "id",
    "status",
    "owner",
    "epoch",
    "beats",
    "deadline",
    "cancel_requested_at",
)
BEFORE_COLUMNS: Final = (
    "id",
    "status",
    "owner",
    "epoch",
    "deadline",
    "beat_at",
    "requeue",
    "on_orphan",
    "attempts",
    "max_attempts",
    "cancel_requested_at",
)
SUSPECT_COLUMNS: Final = (
    "id",
    "owner",
    "epoch",
    "beats",
    "deadline",
    "ttl_ms",
    "confirm_ms",
    "requeue",
    "delayed_at",
    *PROCESS_COLUMNS,
)
RESULT_COLUMNS: Final = ("exit_code", "http_status", "error", "body")
EVENT_COLUMNS: Final = (
    "job_id",
    "epoch",
    "kind",
    "at",
    "status",
    "owner",
    "actor",
    "beats",
    "deadline",
    "beat_at",
    "first_seen_at",
    "forced",
    "cause",
)
INSTANCE_COLUMNS: Final = (
    "id",
    "role",
    "host",
    "pid",
    "registered_at",
    "seen_at",
    "claim_no",
    "max_held",
    "gone_at",
)

CONSUMER_COLUMNS: Final = ("name", "position", "token", "holder", "expires_at", "attempts")
LETTER_COLUMNS: Final = ("consumer", "number", "at", "attempts", "error")

# Looking a member up by its text is several times as fast as calling the enum.
_STATUS: Final = {member.value: member for member in Status}
_REQUEUE: Final = {member.value: member for member in RequeueRule}
_TRANSPORT: Final = {member.value: member for member in Transport}
_ON_ORPHAN: Final = {member.value: member for member in OnOrphan}
_CAUSE: Final = {member.value: member for member in Cause}
_KIND: Final = {member.value: member for member in Kind}
_STREAM: Final = {member.value: member for member in Stream}


class Before(NamedTuple):
    """A row with BEFORE_COLUMNS: what scripts and events read of a job before its transition. The
    texts are as they stand in the row; each equals the member of the core's enum."""

    id: str
    status: str
    owner: str | None
    epoch: int
    deadline: StoreMs | None
    beat_at: StoreMs | None
    requeue: str
    on_orphan: str
    attempts: int
    max_attempts: int | None
    cancel_requested_at: StoreMs | None

    @property
    def policy(self) -> OnOrphan:
        """What a sweep does after it."""
        return _ON_ORPHAN[self.on_orphan]

    @property
    def nobodys(self) -> bool:
        """No owner is to be asked: queued and unowned, or orphaned."""
        return self.owner is None or self.status == Status.ORPHANED


def job_list(label_sets: str, of: str = "") -> str:
    """JOB_COLUMNS for a SELECT, with the labels in place of their set's number."""
    labels = f"(SELECT s.labels FROM {label_sets} AS s WHERE s.id = label_set)"
    return ", ".join(
        labels if column == "label_set" else listed((column,), of) for column in JOB_COLUMNS
    )


def labels_text(labels: Iterable[str]) -> str:
    """A set of labels as it is kept: JSON, so that equal sets are equal texts."""
    return json.dumps([*labels], ensure_ascii=False, separators=(",", ":"))


def _labels_of(text: str) -> tuple[str, ...]:
    return () if text == _NO_LABELS else tuple(json.loads(text))


def job_of(row: Row) -> Job:
    """The job of a row that `job_list` selects."""
    status, owner, epoch, beats, deadline, asked, delayed, ttl_ms, confirm_ms, requeue = row[1:11]
    lease = Lease(
        _STATUS[status],
        owner,
        epoch,
        beats,
        deadline,
        asked,
        delayed,
        ttl_ms,
        confirm_ms,
        _REQUEUE[requeue],
    )
    transport, admitted_at, partition, labels, *ranked = row[11:18]
    facts: Any = (admitted_at, partition, _labels_of(labels), *ranked)
    marks: Any = (_ON_ORPHAN[row[18]], *row[19:26], process_of(row[26:29]))
    return Job(row[0], lease, _TRANSPORT[transport], *facts, *marks)


def process_of(row: Row) -> Process | None:
    """The process of three columns, of which all or none are NULL."""
    pid, start, boot_id = row
    return None if pid is None else Process(pid, start, boot_id)


def standing_of(row: Row) -> Standing:
    """What stands, of a row with STANDING_COLUMNS."""
    return Standing(row[0], _STATUS[row[1]], *row[2:7])


def suspect_of(row: Row) -> Suspect:
    """The suspect of a row with SUSPECT_COLUMNS."""
    delayed = row[8] is not None
    stamp: Any = (*row[1:7], _REQUEUE[row[7]], delayed, process_of(row[9:12]))
    return Suspect(row[0], *stamp)


def request_of(row: Row) -> Request:
    """The request of (payload, principal, request_key)."""
    return Request(*row)


def result_of(row: Row) -> Result:
    """The result of a row with RESULT_COLUMNS."""
    return Result(*row)


def chunk_of(row: Row) -> Chunk:
    """The chunk of (chunk, stream, data)."""
    return Chunk(row[0], _STREAM[row[1]], row[2])


def instance_of(row: Row) -> Instance:
    """The instance of a row with INSTANCE_COLUMNS."""
    return Instance(*row)


def consumer_of(row: Row) -> Consumer:
    """The consumer of a row with CONSUMER_COLUMNS."""
    return Consumer(*row)


def letter_of(row: Row) -> DeadLetter:
    """The dead letter of a row with LETTER_COLUMNS."""
    return DeadLetter(*row)


def transport_of(text: str) -> Transport:
    """The transport that a column names."""
    return _TRANSPORT[text]


def requeue_of(text: str) -> RequeueRule:
    """The rule that a column names."""
    return _REQUEUE[text]


def event_of(row: Row) -> Event:
    """The event of a row with EVENT_COLUMNS."""
    cause = None if row[12] is None else _CAUSE[row[12]]
    marks: Any = (*row[5:11], bool(row[11]), cause)
    return Event(row[0], row[1], _KIND[row[2]], row[3], _STATUS[row[4]], *marks)


def event_params(
    kind: Kind,
    before: Before | None,
    after: Row,
    now: StoreMs,
    actor: str | None,
    *,
    first_seen_at: StoreMs | None = None,
    forced: bool = False,
    cause: Cause | None = None,
) -> Params:
    """What a transition leaves behind, as the parameters of its INSERT: who held the job, and how
    its lease stood before. `after` is a row with STANDING_COLUMNS."""
    job_id, status, owner, epoch, beats, _, _ = after
    deadline = beat_at = None
    if before is not None:
        owner = owner if before.owner is None else before.owner
        deadline, beat_at = before.deadline, before.beat_at
    return {
        "job_id": job_id,
        "epoch": epoch,
        "kind": kind.value,
        "at": now,
        "status": status,
        "owner": owner,
        "actor": actor,
        "beats": beats,
        "deadline": deadline,
        "beat_at": beat_at,
        "first_seen_at": first_seen_at,
        "forced": int(forced),
        "cause": None if cause is None else cause.value,
    }


def params_of(event: Event) -> Params:
    """An event of the core's as the same parameters."""
    return {
        **vars(event),
        "kind": event.kind.value,
        "status": event.status.value,
        "forced": int(event.forced),
    }


def terms_params(terms: Terms) -> dict[str, Any]:
    """The durations that an owner's policy stamps."""
    return {
        "lease_ttl_ms": terms.lease_ttl_ms,
        "http_grace_ms": terms.http_grace_ms,
        "first_beat_ttl_ms": terms.first_beat_ttl_ms,
        "confirm_ms": terms.confirm_ms,
    }


def process_params(process: Process | None) -> dict[str, Any]:
    """A process, or three NULLs."""
    if process is None:
        return {"pid": None, "process_start": None, "boot_id": None}
    return {"pid": process.pid, "process_start": process.start, "boot_id": process.boot_id}


def listed(columns: Iterable[str], of: str = "") -> str:
    """Columns for a SELECT or RETURNING, each of table `of` where one is named."""
    return ", ".join(f"{of}.{column}" if of else column for column in columns)
