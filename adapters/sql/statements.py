"""The statement table: for each transition its one guard and its one list of assignments.

Rules that hold everywhere:

* a guard is a condition on the columns of the row that is updated, and on named parameters; NULL
  counts as false, so each comparison with a column that may be NULL says what NULL means;
* assignments read the row as it was before;
* `:now` is the store clock, read with the row's lock held; `deadline = :now` is still alive;
* fragments are plain SQL that every database reads alike (no scalar MAX, no functions but
  COALESCE), so that they can be parsed and proved equal to the functions of `unswept.core.job`.

`unswept.adapters.sql.queries` assembles statements from this table and from nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from attrs import frozen

from unswept.core.lease import Kind

Assignment = tuple[str, str]
"""(column, expression over the row before)."""


@frozen
class Transition:
    """One way in which a row may change."""

    name: str
    kind: Kind
    says: str
    """One sentence; the laws that it carries stand in `laws`."""
    laws: tuple[str, ...]
    guard: str
    sets: tuple[Assignment, ...] = ()

    @property
    def parameters(self) -> frozenset[str]:
        """The names of the parameters that guard and assignments read."""
        return parameters(self.guard, *(expression for _, expression in self.sets))


@frozen
class Birth:
    """One way in which a row begins; a column that is not named here starts as its default."""

    name: str
    kind: Kind
    says: str
    laws: tuple[str, ...]
    sets: tuple[Assignment, ...]

    @property
    def parameters(self) -> frozenset[str]:
        """The names of the parameters that the values read."""
        return parameters(*(expression for _, expression in self.sets))


def parameters(*fragments: str) -> frozenset[str]:
    """The names of the parameters in fragments of SQL."""
    return frozenset(re.findall(r":([a-z_]+)", " ".join(fragments)))


# What the guards share --------------------------------------------------------------------------

ACTIVE: Final = "status IN ('queued', 'running')"
TERMINAL: Final = "status IN ('completed', 'failed', 'canceled', 'expired')"
NOBODYS: Final = "status = 'queued' AND owner IS NULL"
OWNED: Final = f"{ACTIVE} AND owner IS NOT NULL"
HERE: Final = "gone_at IS NULL"
"""Active and owned; an instance that is registered. The partial indexes are made with these very
words."""

_FENCE = "epoch = :epoch AND owner = :owner"
"""Every write by an owner: the very epoch, and the very owner; an owner of NULL equals nobody."""
_SUSPECT = f"epoch = :epoch AND beats = :beats AND {OWNED} AND deadline < :now"
"""The stamp that was seen, still past; `<`, for a deadline equal to now is alive."""
_ORPHAN_SEEN = "epoch = :epoch AND status = 'orphaned'"

# What the assignments share ---------------------------------------------------------------------

_TTL = "CASE WHEN transport = 'http' THEN :http_grace_ms ELSE :lease_ttl_ms END"

_STAMP: Final[tuple[Assignment, ...]] = (
    ("beats", "beats + 1"),
    ("deadline", f":now + {_TTL}"),
    ("ttl_ms", f"CASE WHEN ttl_ms IS NULL OR ttl_ms < {_TTL} THEN {_TTL} ELSE ttl_ms END"),
    ("confirm_ms", ":confirm_ms"),
    ("beat_at", ":now"),
)
"""A deadline stamped anew by its owner: it overwrites, and never takes the greater."""

_LET_GO: Final[tuple[Assignment, ...]] = (
    ("owner", "NULL"),
    ("epoch", "epoch + 1"),
    ("deadline", "NULL"),
    ("delayed_at", "NULL"),
    ("ttl_ms", "NULL"),
    ("confirm_ms", "NULL"),
)
"""The epoch moves on to nobody: whatever the old owner still sends is fenced."""

_PROCESS: Final[tuple[Assignment, ...]] = (
    ("pid", ":pid"),
    ("process_start", ":process_start"),
    ("boot_id", ":boot_id"),
)


def _unless_canceled(value: str, otherwise: str) -> str:
    return f"CASE WHEN cancel_requested_at IS NULL THEN {value} ELSE {otherwise} END"


_BACK_TO_QUEUE: Final[tuple[Assignment, ...]] = (
    ("status", _unless_canceled("'queued'", "'canceled'")),
    *_LET_GO,
    ("finished_at", _unless_canceled("finished_at", ":now")),
    ("not_before", _unless_canceled(":not_before", "not_before")),
    *(
        (column, _unless_canceled("NULL", column))
        for column in (
            "claim_no",
            "beat_at",
            "started_at",
            "orphaned_at",
            "pid",
            "process_start",
            "boot_id",
        )
    ),
)
"""Back in the queue without the marks of the hold that was; under a pending cancel, canceled."""

_ENDED: Final[tuple[Assignment, ...]] = (
    ("status", ":outcome"),
    ("deadline", "NULL"),
    ("finished_at", ":now"),
)

# The table --------------------------------------------------------------------------------------

ADMIT: Final = Birth(
    "admit",
    Kind.ADMIT,
    "A job owned from birth by the instance that will run it.",
    ("L1", "L6"),
    (
        ("id", ":id"),
        ("status", "'queued'"),
        ("owner", ":owner"),
        ("epoch", "1"),
        ("beats", "1"),
        (
            "deadline",
            ":now + CASE WHEN :transport = 'http' THEN :http_grace_ms ELSE :lease_ttl_ms END",
        ),
        ("ttl_ms", "CASE WHEN :transport = 'http' THEN :http_grace_ms ELSE :lease_ttl_ms END"),
        ("confirm_ms", ":confirm_ms"),
        ("requeue", ":requeue"),
        ("on_orphan", ":on_orphan"),
        ("max_attempts", ":max_attempts"),
        ("transport", ":transport"),
        ("admitted_at", ":now"),
        ("attempts", "1"),
        ("beat_at", ":now"),
    ),
)

ENQUEUE: Final = Birth(
    "enqueue",
    Kind.ENQUEUE,
    "A job that nobody owns until a claim.",
    ("L6",),
    (
        ("id", ":id"),
        ("status", "'queued'"),
        ("epoch", "0"),
        ("beats", "0"),
        ("requeue", ":requeue"),
        ("on_orphan", ":on_orphan"),
        ("max_attempts", ":max_attempts"),
        ("transport", ":transport"),
        ("admitted_at", ":now"),
        ("attempts", "0"),
        ("partition", ":partition"),
        ("label_set", ":label_set"),
        ("priority", ":priority"),
        ("queue_deadline", ":queue_deadline"),
        ("not_before", ":not_before"),
    ),
)

CLAIM: Final = Transition(
    "claim",
    Kind.CLAIM,
    "A queued job that is nobody's starts to run for its claimer, until the first beat's ttl.",
    ("L1", "L7"),
    f"{NOBODYS} AND cancel_requested_at IS NULL AND (not_before IS NULL OR not_before <= :now)",
    (
        ("status", "'running'"),
        ("owner", ":owner"),
        ("epoch", "epoch + 1"),
        ("beats", "beats + 1"),
        ("deadline", ":now + :first_beat_ttl_ms"),
        ("delayed_at", "NULL"),
        ("ttl_ms", ":first_beat_ttl_ms"),
        ("confirm_ms", ":confirm_ms"),
        ("claim_no", ":claim_no"),
        ("attempts", "attempts + 1"),
        ("queue_deadline", "NULL"),
        ("beat_at", ":now"),
        ("started_at", ":now"),
        ("pid", "NULL"),
        ("process_start", "NULL"),
        ("boot_id", "NULL"),
    ),
)

START: Final = Transition(
    "start",
    Kind.START,
    "The owner's queued job starts to run, unless a cancel request came first.",
    ("L1", "L3", "L7"),
    f"{_FENCE} AND status = 'queued' AND cancel_requested_at IS NULL",
    (("status", "'running'"), *_STAMP, ("started_at", ":now"), *_PROCESS),
)

RECORD_PROCESS: Final = Transition(
    "record_process",
    Kind.START,
    "A start of a job that runs already records its process, once, and stamps nothing.",
    ("L3",),
    f"{_FENCE} AND status = 'running' AND pid IS NULL",
    _PROCESS,
)

RENEW: Final = Transition(
    "renew",
    Kind.RENEW,
    "One hold's part of a heartbeat; a lease past its deadline revives, for it was not swept.",
    ("L1", "L3", "L8"),
    f"{_FENCE} AND {ACTIVE}",
    _STAMP,
)

DELAY: Final = Transition(
    "delay",
    Kind.DELAY,
    "Process evidence stamps a suspect once more in its epoch, by the row's own ttl.",
    ("L2", "L9"),
    f"{_SUSPECT} AND delayed_at IS NULL",
    (("beats", "beats + 1"), ("deadline", ":now + ttl_ms"), ("delayed_at", ":now")),
)

ORPHAN: Final = Transition(
    "orphan",
    Kind.ORPHAN,
    "The sweep of a confirmed suspect, every condition tested in this very write.",
    ("L1", "L2"),
    _SUSPECT,
    (("status", "'orphaned'"), ("deadline", "NULL"), ("orphaned_at", ":now")),
)

COMPLETE: Final = Transition(
    "complete",
    Kind.COMPLETE,
    "The owner's terminal write.",
    ("L3", "L4"),
    f"{_FENCE} AND {ACTIVE}",
    _ENDED,
)

HEAL: Final = Transition(
    "heal",
    Kind.HEAL,
    "The owner's terminal write comes after the sweep, still under the same epoch.",
    ("L3", "L4"),
    f"{_FENCE} AND status = 'orphaned'",
    _ENDED,
)

RELEASE: Final = Transition(
    "release",
    Kind.RELEASE,
    "The owner gives a requeueable job back; under a pending cancel that cancels it.",
    ("L3", "L7"),
    f"{_FENCE} AND {ACTIVE} AND requeue = 'allowed'",
    _BACK_TO_QUEUE,
)

REQUEST_CANCEL: Final = Transition(
    "request_cancel",
    Kind.REQUEST_CANCEL,
    "The first wish to end an owned job stays on its row; its owner is asked.",
    ("L7",),
    f"{OWNED} AND cancel_requested_at IS NULL",
    (("cancel_requested_at", ":now"),),
)

CANCEL: Final = Transition(
    "cancel",
    Kind.CANCEL,
    "A wish to end nobody's job, queued or orphaned, ends it at once.",
    ("L4", "L7"),
    f"status = 'orphaned' OR ({NOBODYS})",
    (
        ("status", "'canceled'"),
        ("cancel_requested_at", "COALESCE(cancel_requested_at, :now)"),
        *_LET_GO,
        ("finished_at", ":now"),
    ),
)

REQUEUE: Final = Transition(
    "requeue",
    Kind.REQUEUE,
    "An orphan goes back to the queue, fencing its old owner; `force` overrides requeue = never.",
    ("L3", "L7"),
    f"{_ORPHAN_SEEN} AND (requeue = 'allowed' OR :force = 1)",
    _BACK_TO_QUEUE,
)

SETTLE: Final = Transition(
    "settle",
    Kind.SETTLE,
    "An authority ends an orphan, fencing its old owner.",
    ("L3", "L4"),
    _ORPHAN_SEEN,
    (("status", ":outcome"), *_LET_GO, ("finished_at", ":now")),
)

EXPIRE: Final = Transition(
    "expire",
    Kind.EXPIRE,
    "A queued job that is nobody's and past its queue deadline is over; equal is not past.",
    ("L4",),
    f"{NOBODYS} AND queue_deadline < :now",
    (("status", "'expired'"), *_LET_GO, ("finished_at", ":now")),
)

WITHDRAW: Final = Transition(
    "withdraw",
    Kind.WITHDRAW,
    "Whoever gave up an admit takes it back: their own queued job fails at once.",
    ("L6",),
    "status = 'queued' AND owner = :owner",
    (("status", "'failed'"), ("deadline", "NULL"), ("finished_at", ":now")),
)

OUTPUT: Final = Transition(
    "output",
    Kind.OUTPUT,
    "The fence of a chunk: also while orphaned, and a little after the job's own end.",
    ("L3", "L4"),
    f"{_FENCE} AND (finished_at IS NULL OR finished_at + :late_output_ms >= :now)",
)

EVICT: Final = Transition(
    "evict",
    Kind.EVICT,
    "Only a terminal row goes, and only after its retention.",
    ("L14",),
    f"epoch = :epoch AND {TERMINAL} AND finished_at + :retention_ms < :now",
)

EVENTS_PAST: Final = (
    "kind = 'evict' AND at + :event_retention_ms < :now AND seq <= :behind AND seq < :newest"
)
"""The event of an eviction after which the job's events may go; its row went in the same
transaction. That none of them is a dead letter stands beside it."""
EVENTS_PAST_BY_INDEX: Final = (
    "kind = 'evict' AND at < :now - :event_retention_ms AND seq <= :behind AND seq < :newest"
)
"""The same for a look: the index over evictions is made with its first words."""

BIRTHS: Final[Mapping[str, Birth]] = MappingProxyType({b.name: b for b in (ADMIT, ENQUEUE)})

TRANSITIONS: Final[Mapping[str, Transition]] = MappingProxyType(
    {
        transition.name: transition
        for transition in (
            CLAIM,
            START,
            RECORD_PROCESS,
            RENEW,
            DELAY,
            ORPHAN,
            COMPLETE,
            HEAL,
            RELEASE,
            REQUEST_CANCEL,
            CANCEL,
            REQUEUE,
            SETTLE,
            EXPIRE,
            WITHDRAW,
            OUTPUT,
            EVICT,
        )
    }
)
