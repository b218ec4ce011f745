"""What the judge measures instances by: reckoned from the laws' sentences and from what it has seen
itself, never by the code that keeps the laws, so that a slip there does not move the measure too.

It takes the bare numbers of a policy and of a row; all times are on the instance's own clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from itertools import pairwise
from typing import Any, Final, NamedTuple

from attrs import define, field

from unswept.core import commands as c
from unswept.core.heart import Phase
from unswept.core.lease import Lease, RequeueRule
from unswept.core.policy import LeasePolicy
from unswept.core.replies import Overdue
from unswept.core.units import MonoMs, Ms
from unswept.spec.observations import Sight

HOUSEKEEPING: Final = (c.Evict, c.ExpireQueued, c.ForgetInstances, c.ForgetKeys, c.ForgetEvents)
"""What cannot be undone, so that an instance may not send it at first sight."""
MEMORY_MS: Final = 1_800_000
"""How far back beats and faults are remembered: longer than any lease, window and outage reach."""


class Thing(NamedTuple):
    """What may be cleaned up."""

    by: type
    """The command that does away with it."""
    name: str
    """The job, or the instance."""
    facts: Hashable = None
    """What else the command says of it; of an expiry and of events nothing."""


def window_ms(policy: LeasePolicy, lease: Lease) -> Ms:
    """How long a suspicion stands before a sweep: the longer of the sweeper's own window and the
    one on the row; where the job may be requeued, the row's ttl at least. (L12)"""
    assert lease.confirm_ms is not None and lease.ttl_ms is not None
    at_least = lease.ttl_ms if lease.requeue is not RequeueRule.NEVER else 0
    return Ms(max(policy.confirm_after_ms, lease.confirm_ms, at_least))


def close_ms(policy: LeasePolicy) -> Ms:
    """The longest gap in the beats of an instance that sweeps: a quarter of a heartbeat and an
    operation timeout. (L12)"""
    return Ms(max(1, policy.heartbeat_interval_ms // 4) + policy.operation_timeout_ms)


def steady_ms(policy: LeasePolicy) -> Ms:
    """The longest gap in the beats of a steady heart: a heartbeat and an operation timeout."""
    return Ms(policy.heartbeat_interval_ms + policy.operation_timeout_ms)


@define
class Watched:
    """What the judge has seen of one instance."""

    policy: LeasePolicy
    beats: deque[tuple[MonoMs, MonoMs]] = field(factory=deque)
    """Accepted beats, as far back as any window reaches: send and answer."""
    stamps: dict[tuple[str, int], tuple[MonoMs, Ms]] = field(factory=dict)
    """By (job, epoch): the first send of the last accepted stamp, and its ttl."""
    overdue: dict[Thing, MonoMs] = field(factory=dict)
    """What its last look found due, and since when every look before has found it so."""

    def beat(self, sent_at: MonoMs, now: MonoMs) -> None:
        """It took the answer to a beat."""
        self.beats.append((sent_at, now))
        while self.beats[0][1] < now - MEMORY_MS:
            self.beats.popleft()

    def phase(self, claimed: Phase, now: MonoMs) -> Phase:
        """What its heart is: who was steady and has had no answer in time is faint. (L10)"""
        if claimed is not Phase.STEADY:
            return claimed
        late = not self.beats or now - self.beats[-1][1] > steady_ms(self.policy)
        return Phase.FAINT if late else claimed

    def longest_gap(self, window: Ms, now: MonoMs) -> Ms:
        """From the send of one accepted beat to the answer of the next, within the window; as long
        as the window where the first of them came in it."""
        begin = now - window
        gaps = [
            answered - sent for (sent, _), (_, answered) in pairwise(self.beats) if answered > begin
        ]
        if not self.beats or self.beats[0][1] > begin:
            gaps.append(window)
        return Ms(max(gaps, default=0))

    def sight_of_sweep(self, job_id: str, lease: Lease, stood: int, now: MonoMs) -> Sight:
        """One target, whose stamp has stood still for so long. The gap runs on until the sweep."""
        window = window_ms(self.policy, lease)
        open_gap = now - self.beats[-1][0] if self.beats else now
        gap = max(self.longest_gap(window, now), open_gap)
        return Sight(job_id, window, Ms(stood), Ms(gap), close_ms(self.policy))

    def looked(self, overdue: Overdue, sent_at: MonoMs, now: MonoMs) -> None:
        """The answer to a look came; one that took as long as an operation timeout is no sight."""
        if now - sent_at < self.policy.operation_timeout_ms:
            self.overdue = {thing: self.overdue.get(thing, now) for thing in _found(overdue)}

    def sights_of(self, command: c.Command[Any], now: MonoMs) -> tuple[Sight, ...]:
        """What a command would do away with, each under the window that it has to have stood; none
        for a command that can be undone."""
        if not isinstance(command, HOUSEKEEPING):
            return ()
        window, steady = self.policy.confirm_after_ms, steady_ms(self.policy)
        open_gap = now - self.beats[-1][1] if self.beats else now
        gap = Ms(max(self.longest_gap(window, now), open_gap))
        return tuple(
            Sight(thing.name, window, Ms(now - self.overdue.get(thing, now)), gap, steady)
            for thing in _targets(command)
        )


def _found(overdue: Overdue) -> Iterator[Thing]:
    """What a look found due."""
    for job_id, epoch in overdue.evictable:
        yield Thing(c.Evict, job_id, epoch)
    for job_id, _ in overdue.expirable:
        yield Thing(c.ExpireQueued, job_id)
    for instance, seen_at in overdue.silent:
        yield Thing(c.ForgetInstances, instance, seen_at)
    for principal, key, job_id in overdue.keys:
        yield Thing(c.ForgetKeys, job_id, (principal, key))
    for job_id in overdue.events:
        yield Thing(c.ForgetEvents, job_id)


def _targets(command: c.Command[Any]) -> Iterator[Thing]:
    """What a command is to do away with."""
    if isinstance(command, c.Evict):
        for hold in command.targets:
            yield Thing(c.Evict, hold.job_id, hold.epoch)
    elif isinstance(command, c.ExpireQueued):
        yield Thing(c.ExpireQueued, command.job_id)
    elif isinstance(command, c.ForgetInstances):
        for instance, seen_at in command.seen:
            yield Thing(c.ForgetInstances, instance, seen_at)
    elif isinstance(command, c.ForgetKeys):
        for principal, key, job_id in command.seen:
            yield Thing(c.ForgetKeys, job_id, (principal, key))
    elif isinstance(command, c.ForgetEvents):
        for job_id in command.job_ids:
            yield Thing(c.ForgetEvents, job_id)
