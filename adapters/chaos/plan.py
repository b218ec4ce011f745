"""What befalls whom and when, drawn from one seed before anything has begun.

A run is a row of rounds, each long enough for a dead owner's job to be swept in it. In each round
one gateway is spared, so that somebody is there to sweep; the others each meet one fault. In every
second round there is also one that befalls all. Faults come from a shuffled deck, so that even a
short run has some of each. When the processes feel them is no part of the plan.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final, TypeVar

from attrs import frozen

from unswept.core.checks import check_whole
from unswept.core.errors import MisuseError
from unswept.core.policy import LeasePolicy
from unswept.core.units import Ms

T = TypeVar("T")

POLICY: Final = LeasePolicy(
    heartbeat_interval_ms=Ms(500),
    operation_timeout_ms=Ms(250),
    lease_ttl_ms=Ms(2_500),
    http_grace_ms=Ms(3_000),
    confirm_after_ms=Ms(1_500),
    sweep_interval_ms=Ms(500),
    stall_limit_ms=Ms(2_500),
)
"""Short, so that a minute holds many leases; the operation timeout leaves a busy host its time."""

ROUND_MS: Final = 8_000
FIRST_MS: Final = 2_000
"""The gateways work undisturbed before the first round."""
FEWEST: Final = 2
"""With one gateway alone nobody would be there to sweep."""


class Fault(StrEnum):
    """Every kind of fault."""

    KILL = "kill"
    """SIGKILL; another gateway is started."""
    STOP = "stop"
    """SIGSTOP for longer than a dead owner's job needs to be swept, then SIGCONT."""
    PAUSE = "pause"
    """SIGSTOP and SIGCONT, within the lease."""
    TERM = "term"
    """SIGTERM: a drain under load; another gateway is started."""
    BLOCK = "block"
    """The event loop stands still for longer than the stall limit and a lease."""
    CUT = "cut"
    """All connections of one gateway are killed, again and again for a while."""
    LOCK = "lock"
    """The lease table (on SQLite, the file) is locked against writes for longer than a lease."""
    RESTART = "restart"
    """The server is restarted."""


ONE: Final = (Fault.KILL, Fault.STOP, Fault.TERM, Fault.BLOCK, Fault.CUT, Fault.PAUSE)
"""Faults that befall one gateway, in the order of how much a short run needs them."""
ALL: Final = (Fault.RESTART, Fault.LOCK)
"""Faults that befall all of them at once."""


@frozen
class Step:
    """One fault of the plan."""

    at_ms: Ms
    """After the beginning of the faults."""
    fault: Fault
    slot: int | None
    """Which of the gateways that run at a time; None: all."""
    lasts_ms: Ms


def plan(seed: int, length_ms: int, instances: int, faults: Sequence[Fault]) -> tuple[Step, ...]:
    """The steps, in the order of their times."""
    check_whole("seed", seed, 0, 2**63 - 1)
    check_whole("instances", instances, FEWEST, 100)
    if not any(fault in ONE for fault in faults):
        raise MisuseError(f"faults must have some of {', '.join(ONE)}")
    draw = random.Random(seed)
    ones = _deck([fault for fault in ONE if fault in faults], draw)
    alls = _deck([fault for fault in ALL if fault in faults], draw)
    rounds = max(1, length_ms // ROUND_MS)
    span_ms = length_ms / rounds
    steps: list[Step] = []
    for number in range(rounds):
        began_ms = FIRST_MS + number * span_ms
        slots = list(range(instances))
        draw.shuffle(slots)
        for slot in slots[1:]:
            at_ms = began_ms + draw.uniform(0, span_ms / 3)
            steps.append(_step(at_ms, next(ones), slot, draw))
        # Each round with one of these is followed by one in which L13 has its premises.
        if number % 2 == 1 and any(fault in ALL for fault in faults):
            at_ms = began_ms + draw.uniform(0, span_ms / 2)
            steps.append(_step(at_ms, next(alls), None, draw))
    return tuple(sorted(steps, key=lambda step: step.at_ms))


def _deck(cards: list[T], draw: random.Random) -> Iterator[T]:
    """Cards without end: each of them once, then all of them again in an order that is drawn."""
    yield from cards
    while cards:
        shuffled = list(cards)
        draw.shuffle(shuffled)
        yield from shuffled


def _step(at_ms: float, fault: Fault, slot: int | None, draw: random.Random) -> Step:
    least, most = LASTS_MS[fault]
    return Step(Ms(round(at_ms)), fault, slot, Ms(round(draw.uniform(least, most))))


_SWEPT_MS: Final = POLICY.detection_ms(POLICY.http_grace_ms)
LASTS_MS: Final = {
    Fault.KILL: (0, 0),
    Fault.TERM: (0, 0),
    Fault.RESTART: (0, 0),
    Fault.STOP: (_SWEPT_MS, _SWEPT_MS + 1_500),
    Fault.PAUSE: (200, POLICY.lease_ttl_ms - 2 * POLICY.heartbeat_interval_ms),
    Fault.BLOCK: (POLICY.stall_limit_ms + _SWEPT_MS, POLICY.stall_limit_ms + _SWEPT_MS + 1_000),
    Fault.CUT: (0, 2 * POLICY.heartbeat_interval_ms),
    Fault.LOCK: (POLICY.lease_ttl_ms // 2, POLICY.http_grace_ms + POLICY.heartbeat_interval_ms),
}
"""The least and the most that each fault lasts, in milliseconds."""
