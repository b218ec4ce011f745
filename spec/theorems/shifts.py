"""The time-shift theorems: all store times moved by the same amount change nothing but the times.

They carry the explorer, which keeps store times relative to now: two worlds that differ only by
what the store clock read when they began have the same future.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import evolve

from unswept.core import lease as rules
from unswept.core import outbox
from unswept.core.job import Job, Transport
from unswept.core.lease import Lease, RequeueRule
from unswept.core.records import changed
from unswept.core.refusal import Refusal
from unswept.core.units import Ms, StoreMs
from unswept.core.world import may_claim, may_join
from unswept.spec.theorems.drawn import Asked, Name
from unswept.spec.theorems.steps import MOVES, Move
from unswept.spec.theorems.theorem import Edit, Theorem, theorem

SHIFT: Final = "shift"


def _later(time: StoreMs | None, by: Ms) -> StoreMs | None:
    return None if time is None else StoreMs(time + by)


def _shifted(lease: Lease, by: Ms) -> Lease:
    return changed(
        lease,
        deadline=_later(lease.deadline, by),
        cancel_requested_at=_later(lease.cancel_requested_at, by),
        delayed_at=_later(lease.delayed_at, by),
    )


def _shifts(move: Move) -> Theorem:
    def claim(lease: Lease, asked: Asked, by: Ms) -> bool | None:
        after = move.ask(lease, asked)
        moved = evolve(
            asked,
            now=StoreMs(asked.now + by),
            queue_deadline_at=StoreMs(asked.queue_deadline_at + by),
        )
        other = move.ask(_shifted(lease, by), moved)
        if isinstance(after, Refusal):
            return other is after
        return not isinstance(other, Refusal) and other == _shifted(after, by)

    return Theorem(
        f"{move.name}_shifts",
        SHIFT,
        f"A {move.name} does the same at any other store time, but for the times.",
        claim,
        _FIXED[move.name],
    )


_FIXED: Final[Mapping[str, Edit]] = {
    "claim": Edit(rules._grant, "StoreMs(now + ttl_ms)", "StoreMs(ttl_ms)"),
    "start": Edit(rules._stamp, "StoreMs(now + ttl_ms)", "StoreMs(ttl_ms)"),
    "renew": Edit(rules._stamp, "StoreMs(now + ttl_ms)", "StoreMs(now + ttl_ms if now > 0 else 0)"),
    "delay": Edit(rules.delay, "delayed_at=now", "delayed_at=StoreMs(0)"),
    "orphan": Edit(rules._seen_suspect, "lease.deadline >= now", "lease.deadline >= 0"),
    "complete": Edit(rules.complete, "deadline=None", "deadline=StoreMs(0)"),
    "release": Edit(rules._let_go, "deadline=None", "deadline=StoreMs(0)"),
    "request_cancel": Edit(rules.request_cancel, "=now if", "=StoreMs(0) if"),
    "requeue": Edit(rules._let_go, "delayed_at=None", "delayed_at=StoreMs(0)"),
    "settle": Edit(rules._let_go, "delayed_at=None", "delayed_at=StoreMs(0)"),
    "expire": Edit(rules.expire, "queue_deadline >= now", "queue_deadline >= 0"),
    "withdraw": Edit(rules.withdraw, "deadline=None", "deadline=StoreMs(0)"),
}


def an_admit_shifts(
    owner: Name, ttl_ms: Ms, confirm_ms: Ms, requeue: RequeueRule, now: StoreMs, by: Ms
) -> bool:
    """An admit does the same at any other store time, but for the times."""
    lease = rules.admit(owner, ttl_ms, confirm_ms, requeue, now)
    other = rules.admit(owner, ttl_ms, confirm_ms, requeue, StoreMs(now + by))
    return other == _shifted(lease, by)


def suspicion_shifts(lease: Lease, now: StoreMs, by: Ms) -> bool:
    """Who is a suspect is the same at any other store time."""
    return rules.is_suspect(_shifted(lease, by), StoreMs(now + by)) == rules.is_suspect(lease, now)


def output_shifts(
    lease: Lease, asked: Asked, finished_at: StoreMs, late_output_ms: Ms, by: Ms
) -> bool:
    """What output is too late is the same at any other store time."""
    owner, epoch, now = asked.owner, asked.epoch, asked.now
    said = rules.may_append(lease, owner, epoch, finished_at, late_output_ms, now)
    other = rules.may_append(
        _shifted(lease, by),
        owner,
        epoch,
        StoreMs(finished_at + by),
        late_output_ms,
        StoreMs(now + by),
    )
    return other is said


def eviction_shifts(
    lease: Lease, epoch: int, finished_at: StoreMs, retention_ms: Ms, now: StoreMs, by: Ms
) -> bool:
    """What may be evicted is the same at any other store time."""
    said = rules.may_evict(lease, epoch, finished_at, retention_ms, now)
    other = rules.may_evict(
        _shifted(lease, by), epoch, StoreMs(finished_at + by), retention_ms, StoreMs(now + by)
    )
    return other is said


def the_events_end_shifts(
    number: int,
    at: StoreMs,
    newest: int,
    behind: int,
    event_retention_ms: Ms,
    now: StoreMs,
    by: Ms,
) -> bool:
    """Which events may go is the same at any other store time."""
    bounds = (newest, behind, False, event_retention_ms)
    other = outbox.may_forget(number, StoreMs(at + by), *bounds, StoreMs(now + by))
    return other == outbox.may_forget(number, at, *bounds, now)


def dedup_shifts(lease: Lease, admitted_at: StoreMs, window_ms: Ms, now: StoreMs, by: Ms) -> bool:
    """Which job an equal request gets is the same at any other store time."""
    job = Job("j", lease, Transport.PROCESS, admitted_at)
    moved = changed(job, lease=_shifted(lease, by), admitted_at=StoreMs(admitted_at + by))
    return may_join(moved, window_ms, StoreMs(now + by)) == may_join(job, window_ms, now)


def readiness_shifts(lease: Lease, not_before: StoreMs, now: StoreMs, by: Ms) -> bool:
    """Which job may be claimed is the same at any other store time."""
    job = Job("j", lease, Transport.PROCESS, StoreMs(0), not_before=not_before)
    moved = changed(job, lease=_shifted(lease, by), not_before=StoreMs(not_before + by))
    return may_claim(moved, "", StoreMs(now + by)) == may_claim(job, "", now)


THEOREMS: Final = (
    theorem(SHIFT, an_admit_shifts, Edit(rules._grant, "StoreMs(now + ttl_ms)", "StoreMs(ttl_ms)")),
    *(_shifts(move) for move in MOVES),
    theorem(SHIFT, suspicion_shifts, Edit(rules.is_suspect, "lease.deadline < now", "now > 0")),
    theorem(
        SHIFT, output_shifts, Edit(rules.may_append, "late_output_ms < now", "late_output_ms < 0")
    ),
    theorem(
        SHIFT, eviction_shifts, Edit(rules.may_evict, "retention_ms >= now", "retention_ms >= 0")
    ),
    theorem(
        SHIFT,
        the_events_end_shifts,
        Edit(outbox.may_forget, "event_retention_ms < now", "event_retention_ms < 0"),
    ),
    theorem(SHIFT, dedup_shifts, Edit(may_join, "window_ms >= now", "window_ms >= 0")),
    theorem(
        SHIFT, readiness_shifts, Edit(may_claim, "job.not_before <= now", "job.not_before < 0")
    ),
)
