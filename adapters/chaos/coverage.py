"""What a run must have had some of, to have put its promises to the test; the rest only counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from unswept.adapters.chaos.history import Cause, Deeds
from unswept.adapters.chaos.plan import POLICY, Fault
from unswept.adapters.chaos.records import Act
from unswept.core.lease import Status

MUST: tuple[str, ...] = (
    f"at the end: {Status.COMPLETED}",
    f"at the end: {Status.ORPHANED}",
    f"swept, the owner: {Cause.DEAD}",
    f"swept, the owner: {Cause.STOPPED}",
    "healed after a sweep",
    "dead owners' jobs orphaned in time",
    "acknowledged stamps of swept jobs",
    "completions acknowledged",
    "slots read at rest",
    "live rows among them",
    "slots read at the end",
)
"""Counts that must not be 0 after any run."""


def faults_done(deeds: Deeds) -> Counter[Fault]:
    """How often each fault was really done."""
    stops = [deed.detail or 0 for deed in deeds.of(Act.STOP)]
    long = sum(lasts_ms > POLICY.lease_ttl_ms for lasts_ms in stops)
    drained = {deed.gateway for deed in deeds.of(Act.TERM)}
    at_rest = min((deed.since for deed in deeds.of(Act.REST)), default=0)
    under_load = sum(deed.since < at_rest for deed in deeds.of(Act.TERM) if deed.gateway in drained)
    return Counter(
        {
            Fault.KILL: deeds.count(Act.KILL),
            Fault.STOP: long,
            Fault.PAUSE: len(stops) - long,
            Fault.TERM: under_load,
            Fault.BLOCK: deeds.count(Act.BLOCK),
            Fault.CUT: deeds.count(Act.CUT),
            Fault.LOCK: deeds.count(Act.LOCK),
            Fault.RESTART: deeds.count(Act.UP),
        }
    )


def missing(
    planned: Collection[Fault], done: Counter[Fault], counts: Counter[str]
) -> Iterator[str]:
    """What there was none of, though there should have been."""
    yield from (f"fault: {fault}" for fault in Fault if fault in planned and not done[fault])
    yield from (name for name in MUST if not counts[name])
