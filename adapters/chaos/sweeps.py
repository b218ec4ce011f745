"""The checks of what was swept: no heartbeated job is, and every sweep says why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from unswept.adapters.chaos.evidence import Judge, told
from unswept.adapters.chaos.history import History, longest_rest, main_cause
from unswept.adapters.chaos.plan import POLICY
from unswept.adapters.chaos.records import HoldName
from unswept.core.lease import Kind
from unswept.core.values import Event

RECOVERY_MS: Final = (
    POLICY.heartbeat_interval_ms + POLICY.retry_ms + 2 * POLICY.operation_timeout_ms + 300
)
"""A gateway that nothing ails renews within this time: at worst the next beat is a whole heartbeat
away, or one has just begun to fail and is tried again; 300 ms are for a busy host."""
CLOCK_MS: Final = 5
"""By so much two clocks may part, or be rounded, within one window."""


def orphans_say_why(judge: Judge) -> Iterator[str]:
    """Each orphan event bears last beat, beats, deadline, sweeper and first sight, and they fit."""
    for event in judge.evidence.events:
        if event.kind is not Kind.ORPHAN:
            continue
        judge.counts["orphan events"] += 1
        if event.beat_at is None or event.deadline is None or event.first_seen_at is None:
            yield f"{told(event)}: something is missing"
        elif (
            not event.beat_at < event.deadline < event.first_seen_at <= event.at or not event.beats
        ):
            yield f"{told(event)}: beat, deadline, first sight and sweep are not in this order"
        if event.actor not in judge.by_instance or event.actor == event.owner:
            yield f"{told(event)}: the sweeper is no other gateway of this run"


def no_lease_was_cut_short(judge: Judge) -> Iterator[str]:
    """First sight, and so the sweep, comes later than the deadline of every acknowledged stamp.
    (L1, L2)"""
    for case in judge.cases:
        event = case.event
        seen_at = event.at if event.first_seen_at is None else min(event.at, event.first_seen_at)
        for stamp in case.stamps:
            if not stamp.deadline < seen_at:
                yield (
                    f"{told(event)}: its owner was told at {stamp.at} that the lease runs to"
                    f" {stamp.deadline}"
                )
                break
            judge.counts["acknowledged stamps of swept jobs"] += 1


def stamps_agree(judge: Judge) -> Iterator[str]:
    """(epoch, beats) and last beat of an orphan event are those of its owner's file. (L2)

    The store may have taken more stamps than were acknowledged, but only such as were sent.
    """
    for case in judge.cases:
        event, known = case.event, len(case.stamps)
        maybe = case.owner.unanswered.get(HoldName(event.job_id, event.epoch), 0)
        taken = event.beats - case.delays
        if not known <= taken <= known + maybe:
            yield (
                f"{told(event)}: {taken} stamps were taken, but {known} were acknowledged and"
                f" {maybe} more were sent"
            )
        elif taken == known and case.stamps:
            last = max(stamp.deadline for stamp in case.stamps)
            found = judge.evidence.found.get(event.job_id)
            ttl_ms = None if found is None else POLICY.terms().ttl_ms(found.job.transport)
            if event.beat_at is None or last - event.beat_at != ttl_ms:
                yield f"{told(event)}: the last acknowledged stamp is good until {last}"


def windows_stood(judge: Judge) -> Iterator[str]:
    """Between first sight and sweep lies the window, and in it the sweeper's beats were accepted
    closely, by the sweeper's own file. (L12a)"""
    for case in judge.cases:
        event = case.event
        sweeper = judge.by_instance.get(event.actor or "")
        if event.first_seen_at is None or sweeper is None:
            continue
        stood = event.at - event.first_seen_at
        if stood < POLICY.confirm_after_ms - CLOCK_MS:
            yield f"{told(event)}: it was suspected for only {stood} ms"
        elif judge.clock.stepped:
            judge.counts["apart: sweeps while a clock was set"] += 1
        else:
            sent_at = _sweep_sent_at(sweeper, event) or judge.clock.boot(event.at)
            gap = sweeper.longest_gap(sent_at - POLICY.confirm_after_ms + CLOCK_MS, sent_at)
            if gap > POLICY.gap_ms + CLOCK_MS:
                yield f"{told(event)}: the sweeper's own beats had a gap of {gap} ms in the window"


def no_healthy_owner_lost_a_job(judge: Judge) -> Iterator[str]:
    """Between its last stamp and the sweep the owner was never well for as long as a renewal takes:
    it was dead, stopped, blocked, or cut off. (L12)"""
    for case in judge.cases:
        event = case.event
        if judge.clock.stepped or event.beat_at is None:
            judge.counts["apart: sweeps while a clock was set"] += 1
            continue
        heard_at = case.stamps[-1].heard_at if case.stamps else 0
        since = max(heard_at, judge.clock.boot(event.beat_at))
        until = judge.clock.boot(event.at) - judge.clock.error_ms
        ailments = judge.ailments(case.owner, event.job_id)
        if not case.stamps and event.job_id not in case.owner.granted:
            judge.counts["apart: sweeps of jobs whose admission was never acknowledged"] += 1
        elif (well := longest_rest(ailments, since, until)) >= RECOVERY_MS:
            yield (
                f"{told(event)}: between its last stamp and the sweep gateway"
                f" {case.owner.number} was well for {well} ms, and renews within {RECOVERY_MS}"
            )
        else:
            cause = main_cause(ailments, since, until) or "well, but not for long enough"
            judge.counts[f"swept, the owner: {cause}"] += 1


def _sweep_sent_at(sweeper: History, event: Event) -> int | None:
    """When the sweeper sent the sweep that orphaned it, by its own file."""
    hold = HoldName(event.job_id, event.epoch)
    return max(
        (
            exchange.sent.at
            for exchange in sweeper.exchanges
            if exchange.sent.command == "Sweep"
            and hold in exchange.sent.holds
            and (exchange.answer is None or exchange.answer.store_at >= event.at)
        ),
        default=None,
    )
