"""What rides along with a job and what it leaves behind: no lease rule reads any of this."""

from __future__ import annotations

from enum import StrEnum

from attrs import frozen

from unswept.core.checks import (
    check_bytes,
    check_count,
    check_member,
    check_optional_id,
    check_whole,
    storable_text,
)
from unswept.core.errors import MisuseError
from unswept.core.lease import Kind, Status
from unswept.core.units import MAX_COUNT, StoreMs


@frozen
class Request:
    """What rides along with a job from its birth; no lease rule reads it but `Admit`'s dedup."""

    payload: bytes = b""
    principal: str | None = None
    request_key: str | None = None
    """With `principal`, names requests that are the same; None: this one has no twin."""

    def __attrs_post_init__(self) -> None:
        """A request key without a principal would join strangers."""
        check_bytes("payload", self.payload)
        check_optional_id("principal", self.principal)
        check_optional_id("request_key", self.request_key)
        if self.request_key is not None and self.principal is None:
            raise MisuseError("request_key needs a principal: dedup never joins strangers")


@frozen
class Result:
    """What rides along with a terminal write."""

    exit_code: int | None = None
    http_status: int | None = None
    error: str | None = None
    """Free text; NUL and lone surrogates become U+FFFD."""
    body: bytes = b""

    def __attrs_post_init__(self) -> None:
        """Numbers must fit a database's integer; text must be storable."""
        for name in ("exit_code", "http_status"):
            value = getattr(self, name)
            if value is not None:
                check_whole(name, value, -MAX_COUNT, MAX_COUNT)
        check_bytes("body", self.body)
        if self.error is not None:
            if not isinstance(self.error, str):
                raise MisuseError(f"error must be a string, got {self.error!r}")
            object.__setattr__(self, "error", storable_text(self.error))


class Stream(StrEnum):
    """Which of a process's outputs a chunk came from."""

    STDOUT = "stdout"
    STDERR = "stderr"


@frozen
class Chunk:
    """One numbered piece of a job's output."""

    chunk: int
    stream: Stream
    data: bytes

    def __attrs_post_init__(self) -> None:
        """A number, a stream, and at most 50 MiB."""
        check_count("chunk", self.chunk)
        check_member("stream", self.stream, Stream)
        check_bytes("data", self.data)


class Cause(StrEnum):
    """Why a sweep changed a job, for whoever reads its events; no rule reads it."""

    LEASE_EXPIRED = "lease_expired"
    """Its owner, which the store still knows, has not renewed it."""
    OWNER_LOST = "owner_lost"
    """Its owner is not registered (any more)."""
    CANCELED = "canceled"
    """Its owner had been asked to end it, and fell silent."""
    OUTCOME_UNKNOWN = "outcome_unknown"
    """Whatever the owner did: a person decides what became of the job (on_orphan = hold)."""
    ATTEMPTS_SPENT = "attempts_spent"
    """It was not requeued, for it had been attempted `max_attempts` times."""


@frozen(slots=False)
class Event:
    """What a transition that changed a status left behind, keyed by (job id, epoch, kind). (L5)"""

    job_id: str
    epoch: int
    """The epoch after the change; of a stale result, the caller's."""
    kind: Kind
    at: StoreMs
    status: Status
    """The status after the change; of a stale result and an eviction, the one that stands."""
    owner: str | None
    """Whose hold it was, before the change where that ended it."""
    actor: str | None = None
    """The instance that asked for it, where the command names one."""
    beats: int = 0
    deadline: StoreMs | None = None
    """The deadline before the change."""
    beat_at: StoreMs | None = None
    """The last accepted grant, start or renewal before the change."""
    first_seen_at: StoreMs | None = None
    """Of a sweep: the store time at which the sweeper first saw the suspect."""
    forced: bool = False
    """Of a requeue: requeue = never was overridden."""
    cause: Cause | None = None
    """Of a sweep: of the orphan, and of what its policy made of it."""


@frozen(slots=False)
class Instance:
    """A row that helps people and host checks; no lease decision reads it. One that has claimed
    keeps its row when it is gone, so that its last claim number outlives it. (F1)"""

    id: str
    role: str
    host: str
    pid: int | None
    registered_at: StoreMs
    seen_at: StoreMs
    claim_no: int
    max_held: int | None = None
    """How many claimed jobs it may hold at once; None: any number."""
    gone_at: StoreMs | None = None
    """Since when it is no longer registered; None: it is."""
