"""The check of L13: the jobs of the dead are found in time, if somebody was there to find them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from unswept.adapters.chaos.evidence import Judge
from unswept.adapters.chaos.history import FOREVER, Cause, Deeds, History
from unswept.adapters.chaos.plan import POLICY
from unswept.adapters.chaos.records import Act
from unswept.core.lease import ACTIVE

LATE_MS: Final = 250
"""What a busy host may add to the bound of L13, which knows no scheduler."""
_THREAD_MS: Final = 25
"""An answer comes to the heart a little later than to the file; to the file it may be in time."""
_PULSE: Final = ("Heartbeat", "Suspects", "Delay", "Sweep", "LookOverdue", "Register")
"""What a steady gateway has answered in time."""


def the_dead_are_found_in_time(judge: Judge) -> Iterator[str]:
    """A job that nobody renews any more is orphaned within the bound, if another gateway was steady
    all the while. (L13)"""
    for job_id, since, deadline, swept_at in _neglected(judge):
        due = deadline + POLICY.sweep_interval_ms + POLICY.confirm_after_ms
        due += 2 * POLICY.operation_timeout_ms + LATE_MS
        if swept_at <= due:
            judge.counts["dead owners' jobs orphaned in time"] += 1
            continue
        reason = _why_not_due(judge, job_id, since, deadline, due)
        if reason is None:
            late = "never" if swept_at == FOREVER else f"{swept_at - due} ms late"
            yield (
                f"{job_id}: its deadline was {deadline}, so it was due at {due}, and was orphaned"
                f" {late}"
            )
        else:
            judge.counts[f"apart: orphaned late or not at all, {reason}"] += 1


def _neglected(judge: Judge) -> Iterator[tuple[str, int, int, int]]:
    """Job, last stamp, deadline, and when it was swept: of owners that died, and never since."""
    for case in judge.cases:
        event = case.event
        gone_at = judge.evidence.deeds.gone_at(case.owner.number)
        dead = gone_at <= judge.clock.boot(event.at)
        if dead and event.beat_at is not None and event.deadline is not None:
            yield event.job_id, event.beat_at, event.deadline, event.at
    for job_id, found in judge.evidence.found.items():
        if found is None or found.job.lease.owner not in judge.by_instance:
            continue
        job = found.job
        if (
            job.lease.status in ACTIVE
            and job.beat_at is not None
            and job.lease.deadline is not None
        ):
            yield job_id, job.beat_at, job.lease.deadline, FOREVER


def _why_not_due(judge: Judge, job_id: str, since: int, deadline: int, due: int) -> str | None:
    """Why L13 promises nothing here; None: it does."""
    if due > judge.evidence.judged_at:
        return "the run ended before"
    if judge.clock.stepped:
        return "a clock was set"
    clock, deeds = judge.clock, judge.evidence.deeds
    found = judge.evidence.found[job_id]
    owner = None if found is None else found.job.lease.owner
    seen_by = clock.boot(deadline) + POLICY.sweep_interval_ms + POLICY.operation_timeout_ms
    for history in judge.evidence.histories.values():
        if history.instance != owner and _was_steady(
            history, deeds, clock.boot(since), seen_by, clock.boot(due)
        ):
            return None
    for begin, end, cause in (
        (Act.DOWN, Act.UP, Cause.DOWN),
        (Act.LOCK, Act.UNLOCK, Cause.LOCKED),
    ):
        for began, ended in deeds.spans(begin, end):
            if began < clock.boot(due) and ended > clock.boot(since):
                return f"the {cause} meanwhile"
    return "no gateway was steady all the while"


def _was_steady(history: History, deeds: Deeds, since: int, hurried_from: int, until: int) -> bool:
    """Was this gateway steady, not draining and without a gap between these times? From
    `hurried_from` on it has seen the suspect, so that its beats must come closely."""
    if min(deeds.told_to_end_at(history.number), deeds.gone_at(history.number)) <= until:
        return False
    if history.longest_gap(since, until) > POLICY.steady_ms:
        return False
    if history.longest_gap(hurried_from, until) > POLICY.gap_ms:
        return False
    return all(
        exchange.answer is not None and exchange.took_ms < POLICY.operation_timeout_ms - _THREAD_MS
        for exchange in history.exchanges
        if since <= exchange.sent.at <= until and exchange.sent.command in _PULSE
    )
