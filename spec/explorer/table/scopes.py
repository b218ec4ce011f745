"""What one search of the table allows, as data: how jobs are born, and what may be said to them."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from attrs import frozen

from unswept.core.job import OnOrphan, Terms, Transport
from unswept.core.lease import RequeueRule
from unswept.core.units import Ms

LATE_OUTPUT: Final = Ms(1)
RETENTION: Final = Ms(1)
DEDUP_WINDOW: Final = Ms(3)
"""Longer than it takes a job to be orphaned, and in ticks like the others."""
QUEUE_TIME: Final = 1
"""How long after its birth a job may be expired, or claimed at last."""
STEP_BACK: Final = 2
"""A step back makes a lease alive that had run out."""


class Verb(StrEnum):
    """What may be said; each is one command of the core, or a way to use one."""

    ADMIT = "admit"
    ENQUEUE = "enqueue"
    CLAIM = "claim"
    START = "start"
    BEAT = "heartbeat"
    COMPLETE = "complete"
    RELEASE = "release"
    CANCEL = "cancel"
    WITHDRAW = "withdraw"
    SWEEP = "sweep"
    DELAY = "delay"
    REQUEUE = "requeue"
    FORCE = "forced requeue"
    SETTLE = "settle"
    EXPIRE = "expire"
    EVICT = "evict"
    OUTPUT = "output"
    REGISTER = "deregister and register"


@frozen
class Profile:
    """How a job is born."""

    name: str
    transport: Transport = Transport.PROCESS
    requeue: RequeueRule = RequeueRule.NEVER
    on_orphan: OnOrphan = OnOrphan.MARK
    max_attempts: int | None = None
    keyed: bool = False
    """Its request has a principal and a key, the same for all; so that it may have a twin."""
    queue_deadline: bool = False
    """It may be expired a tick after its birth."""
    not_before: bool = False
    """It may be claimed a tick after its birth, not before."""


PLAIN: Final = Profile("plain")
AGAIN: Final = Profile("requeueable", requeue=RequeueRule.ALLOWED)
HTTP: Final = Profile("http", Transport.HTTP)
FAILS: Final = Profile("on_orphan=fail", on_orphan=OnOrphan.FAIL)
HELD: Final = Profile("on_orphan=hold", on_orphan=OnOrphan.HOLD)
TWICE: Final = Profile(
    "on_orphan=requeue",
    requeue=RequeueRule.ALLOWED,
    on_orphan=OnOrphan.REQUEUE,
    max_attempts=2,
)
TWIN: Final = Profile("keyed", keyed=True)
TIMED: Final = Profile("with a queue deadline", queue_deadline=True)
LATER: Final = Profile("not before a tick", not_before=True)

TERMS: Final = Terms(Ms(1), Ms(2), Ms(1), Ms(1))
"""In ticks: a lease is before its deadline, at it, or past it."""
LONGER: Final = Terms(Ms(2), Ms(3), Ms(2), Ms(2))
"""Of an instance whose policy is another."""


@frozen
class Scope:
    """One search: what may be said, about jobs of which kinds."""

    name: str
    verbs: frozenset[Verb]
    profiles: tuple[Profile, ...]
    terms: tuple[Terms, ...] = (TERMS,)
    outcomes: bool = False
    """Jobs end as completed, failed or canceled, and are settled as canceled or failed; else they
    are completed, and fail."""
    steps_back: int = 0
    """How often the store clock may step back."""
    max_held: int | None = None
    """Each instance's budget of claimed jobs."""
    of_pairs: bool = False
    """With fewer than two jobs there is nothing to see."""
    quick: bool = False
    """Small enough to be searched with two jobs in every run."""


_LIFE: Final = frozenset({Verb.BEAT, Verb.COMPLETE, Verb.SWEEP})
_ORDERS: Final = frozenset({Verb.REQUEUE, Verb.SETTLE, Verb.CANCEL})

SCOPES: Final = (
    # The largest first, so that the processes end together.
    Scope(
        "output of two epochs",
        frozenset({Verb.ADMIT, Verb.CLAIM, Verb.COMPLETE, Verb.RELEASE, Verb.OUTPUT}),
        (AGAIN,),
    ),
    Scope(
        "an authority",
        _ORDERS | {Verb.ADMIT, Verb.CLAIM, Verb.COMPLETE, Verb.SWEEP},
        (AGAIN,),
    ),
    Scope(
        "a fleet",
        _LIFE | {Verb.ENQUEUE, Verb.CLAIM, Verb.START, Verb.RELEASE, Verb.DELAY},
        (AGAIN,),
    ),
    Scope(
        "the store clock",
        _LIFE | {Verb.ADMIT, Verb.DELAY},
        (PLAIN, HTTP),
        steps_back=1,
    ),
    Scope(
        "policies",
        frozenset({Verb.ENQUEUE, Verb.CLAIM, Verb.SWEEP, Verb.COMPLETE, Verb.CANCEL}),
        (FAILS, TWICE, HELD),
    ),
    Scope(
        "ends",
        frozenset({Verb.ADMIT, Verb.START, Verb.COMPLETE, Verb.SWEEP})
        | {Verb.CANCEL, Verb.SETTLE, Verb.RELEASE},
        (AGAIN,),
        outcomes=True,
    ),
    Scope(
        "a gateway",
        _LIFE | {Verb.ADMIT, Verb.START, Verb.CANCEL, Verb.WITHDRAW},
        (PLAIN, HTTP),
        quick=True,
    ),
    Scope(
        "two policies",
        _LIFE | {Verb.ADMIT, Verb.DELAY},
        (HTTP,),
        terms=(TERMS, LONGER),
        quick=True,
    ),
    Scope(
        "force",
        _ORDERS | {Verb.ADMIT, Verb.COMPLETE, Verb.SWEEP, Verb.RELEASE, Verb.FORCE},
        (PLAIN, AGAIN),
        quick=True,
    ),
    Scope(
        "budgets",
        frozenset({Verb.ENQUEUE, Verb.CLAIM, Verb.RELEASE, Verb.REGISTER}),
        (AGAIN,),
        max_held=1,
        quick=True,
    ),
    Scope(
        "waiting",
        frozenset({Verb.ENQUEUE, Verb.CLAIM, Verb.RELEASE, Verb.COMPLETE}),
        (AGAIN, LATER),
        quick=True,
    ),
    Scope(
        "ids",
        frozenset({Verb.ADMIT, Verb.ENQUEUE, Verb.COMPLETE, Verb.CANCEL, Verb.WITHDRAW})
        | {Verb.EXPIRE, Verb.EVICT},
        (PLAIN, TIMED),
        quick=True,
    ),
    Scope(
        "twins",
        frozenset({Verb.ADMIT, Verb.COMPLETE, Verb.SWEEP, Verb.SETTLE, Verb.EVICT}),
        (TWIN,),
        of_pairs=True,
    ),
    Scope(
        "output",
        frozenset({Verb.ADMIT, Verb.COMPLETE, Verb.SWEEP, Verb.OUTPUT, Verb.EVICT}),
        (PLAIN,),
        quick=True,
    ),
)
