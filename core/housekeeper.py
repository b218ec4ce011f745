"""Nothing that cannot be undone happens at first sight: eviction, expiry of queued jobs, and the
cleaning up of instances, dedup keys and events wait until they have been due for a whole window.

A store clock that steps forward makes everything look old at once; what is only seen to be old on
both sides of a window of steady beats is old. Times are on the instance's own clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from unswept.core import heart as hearts
from unswept.core.commands import (
    Command,
    Evict,
    ExpireQueued,
    ForgetEvents,
    ForgetInstances,
    ForgetKeys,
    Hold,
    LookOverdue,
)
from unswept.core.heart import Act, Heart
from unswept.core.policy import LeasePolicy
from unswept.core.records import changed
from unswept.core.replies import Overdue
from unswept.core.units import MonoMs, Ms

BATCH: Final = 5_000
"""Rows of one kind that one look may name; they stand for a window before they go, so that this is
what one window can clean up."""
AT_ONCE: Final = 500
"""Rows that one command removes, or jobs whose events it removes: it holds the store's write lock
meanwhile."""
LOOK_EVERY: Final = 10
"""Sweep intervals between two looks: housekeeping is not urgent."""


@frozen
class Sighting:
    """One thing that was seen to be due, with the facts that must still hold when it goes."""

    kind: str
    facts: tuple[Any, ...]


@frozen(slots=False)
class Housekeeper:
    """What was seen to be due, and since when."""

    policy: LeasePolicy
    next_look_at: MonoMs
    seen: Mapping[Sighting, MonoMs]
    looked_at: MonoMs | None = None
    """When the look that is on its way was sent; None: none is."""


Step = tuple[Housekeeper, tuple[Command[Any], ...]]


def begin(policy: LeasePolicy, now: MonoMs) -> Housekeeper:
    """A housekeeper that has seen nothing; it looks first after one sweep interval."""
    return Housekeeper(policy, MonoMs(now + policy.sweep_interval_ms), {})


def tick(keeper: Housekeeper, heart: Heart, now: MonoMs) -> Step:
    """Look again if it is time; the answer goes to `answered`."""
    if now < keeper.next_look_at or not hearts.may(heart, Act.SWEEP, now):
        return keeper, ()
    policy = keeper.policy
    pause = LOOK_EVERY * policy.sweep_interval_ms if not keeper.seen else policy.confirm_after_ms
    look = LookOverdue(
        policy.retention_ms,
        policy.instance_gc_ms,
        _key_age_ms(policy),
        BATCH,
        policy.event_retention_ms,
    )
    return changed(keeper, next_look_at=MonoMs(now + pause), looked_at=now), (look,)


def answered(keeper: Housekeeper, overdue: Overdue, heart: Heart, now: MonoMs) -> Step:
    """What is still due after a window of steady beats may go; what is new is remembered. One look
    is one observation, however often or late its answer comes."""
    sent_at, keeper = keeper.looked_at, changed(keeper, looked_at=None)
    if sent_at is None or now - sent_at >= keeper.policy.operation_timeout_ms:
        return keeper, ()
    seen = {sighting: keeper.seen.get(sighting, now) for sighting in _sightings(overdue)}
    if heart.pulse is None or not hearts.may(heart, Act.SWEEP, now):
        return changed(keeper, seen=seen), ()
    steady_since = heart.pulse.steady_since
    ripe = [
        sighting
        for sighting, since in seen.items()
        if now >= max(since, steady_since) + keeper.policy.confirm_after_ms
    ]
    left = {sighting: since for sighting, since in seen.items() if sighting not in ripe}
    soon = min(keeper.next_look_at, MonoMs(now + keeper.policy.confirm_after_ms))
    keeper = changed(keeper, seen=left, next_look_at=soon if left else keeper.next_look_at)
    return keeper, _commands(ripe, keeper.policy)


def _sightings(overdue: Overdue) -> tuple[Sighting, ...]:
    return (
        *(Sighting("evict", facts) for facts in overdue.evictable),
        *(Sighting("expire", facts) for facts in overdue.expirable),
        *(Sighting("instance", facts) for facts in overdue.silent),
        *(Sighting("key", facts) for facts in overdue.keys),
        *(Sighting("events", (job_id,)) for job_id in overdue.events),
    )


def _commands(ripe: list[Sighting], policy: LeasePolicy) -> tuple[Command[Any], ...]:
    facts: dict[str, list[tuple[Any, ...]]] = {}
    for sighting in ripe:
        facts.setdefault(sighting.kind, []).append(sighting.facts)
    commands: list[Command[Any]] = []
    for old in _chunks(facts.get("evict", ())):
        holds = tuple(Hold(job_id, epoch) for job_id, epoch in old)
        commands.append(Evict(holds, policy.retention_ms))
    commands += [ExpireQueued(job_id) for job_id, _ in facts.get("expire", ())]
    for silent in _chunks(facts.get("instance", ())):
        commands.append(ForgetInstances(silent, policy.instance_gc_ms))
    for keys in _chunks(facts.get("key", ())):
        commands.append(ForgetKeys(keys, _key_age_ms(policy)))
    if policy.event_retention_ms is not None:
        for evicted in _chunks(facts.get("events", ())):
            job_ids = tuple(job_id for (job_id,) in evicted)
            commands.append(ForgetEvents(job_ids, policy.event_retention_ms))
    return tuple(commands)


def _chunks(rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[tuple[Any, ...], ...]]:
    for start in range(0, len(rows), AT_ONCE):
        yield tuple(rows[start : start + AT_ONCE])


def _key_age_ms(policy: LeasePolicy) -> Ms:
    """Dedup keys are kept as long as results are: a neighbour's dedup window may be the longer."""
    return Ms(max(policy.dedup_window_ms, policy.retention_ms))
