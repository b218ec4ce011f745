"""The status table as a state chart, run by another library, and compared with the functions.

The chart is a machine of the package `transitions` (extra `simulate`), built from the table alone.
The rules are the functions of `unswept.core.lease`, asked about every shape of lease. Both must
take the same steps: status by status, move by move, to the same status, under the same epoch.

How the table is read:

* a queued job that is nobody's is a state of its own;
* CLAIM, EXPIRE and CANCEL leave it, and every other move leaves only the owned one;
* a move that changes the epoch lets the owner go, so that it reaches nobody's queue;
* a move that reaches what it leaves (a renewal, a delay, a cancel request) keeps the status;
* a move that reaches nothing (an eviction) removes the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Final

from attrs import frozen

from unswept.core import lease as rules
from unswept.core.lease import ACTIVE, MOVES, Kind, Lease, Move, RequeueRule, Status
from unswept.core.refusal import Refusal
from unswept.core.units import Ms, StoreMs

if TYPE_CHECKING:
    from transitions import Machine

NOBODYS_QUEUE: Final = "queued, nobody's"
GONE: Final = "gone"
STATES: Final = (NOBODYS_QUEUE, *(status.value for status in Status), GONE)

_OF_NOBODYS_QUEUE: Final = frozenset({Kind.CLAIM, Kind.EXPIRE, Kind.CANCEL})


@frozen(order=True)
class Step:
    """One step from a state to a state."""

    kind: Kind
    leaves: str
    reaches: str
    epoch_step: int

    def __str__(self) -> str:
        """The step in words."""
        epoch = "under the next epoch" if self.epoch_step else "under the same epoch"
        return f"{self.kind} takes a job from {self.leaves} to {self.reaches}, {epoch}"


def differences(moves: Mapping[Kind, Move] = MOVES) -> tuple[str, ...]:
    """Where the chart of this table and the transition functions part, in sentences."""
    chart, functions = steps_of_chart(moves), steps_of_functions()
    return (
        *(f"only in the table: {step}" for step in sorted(chart - functions)),
        *(f"only in the functions: {step}" for step in sorted(functions - chart)),
    )


# The chart --------------------------------------------------------------------------------------


class Walker:
    """What the machine moves about."""

    state: str
    """Set by the machine."""
    trigger: Callable[[str], bool]
    """Set by the machine: does it move?"""

    def __init__(self) -> None:
        self.epoch = 0

    def next_epoch(self) -> None:
        """The hold that was has ended."""
        self.epoch += 1


def chart(walker: Walker, moves: Mapping[Kind, Move] = MOVES) -> Machine:
    """The machine of this table; a trigger is a move and the status that it reaches."""
    from transitions import Machine

    machine = Machine(
        walker,
        states=list(STATES),
        initial=NOBODYS_QUEUE,
        auto_transitions=False,
        ignore_invalid_triggers=True,
    )
    for kind, move in moves.items():
        after = "next_epoch" if move.epoch_step else None
        for leaves, reaches in _arrows(kind, move):
            machine.add_transition(_trigger(kind, reaches), leaves, reaches, after=after)
    return machine


def steps_of_chart(moves: Mapping[Kind, Move] = MOVES) -> frozenset[Step]:
    """Every step that the machine takes, found by trying every trigger in every state."""
    walker = Walker()
    machine = chart(walker, moves)
    steps = set()
    for kind, leaves, aim in product(Kind, STATES, STATES):
        trigger = _trigger(kind, aim)
        if trigger not in machine.events:
            continue
        walker.epoch = 0
        machine.set_state(leaves)
        if walker.trigger(trigger):
            steps.add(Step(kind, leaves, walker.state, walker.epoch))
    return frozenset(steps)


def _arrows(kind: Kind, move: Move) -> Iterator[tuple[str, str]]:
    for status in move.leaves:
        leaves = status.value
        if status is Status.QUEUED and kind in _OF_NOBODYS_QUEUE:
            leaves = NOBODYS_QUEUE
        if not move.reaches:
            yield leaves, GONE
        elif move.reaches == move.leaves:
            yield leaves, leaves
        else:
            for reached in move.reaches:
                yield leaves, _reached(reached, owned=move.epoch_step == 0)


def _reached(status: Status, owned: bool) -> str:
    return NOBODYS_QUEUE if status is Status.QUEUED and not owned else status.value


def _trigger(kind: Kind, reaches: str) -> str:
    return f"{kind}_to_{reaches}"


# The functions ----------------------------------------------------------------------------------

_NOW: Final = StoreMs(1_000)
_OWNER: Final = "owner"
_TTL: Final = Ms(100)


def steps_of_functions() -> frozenset[Step]:
    """Every step that a transition function takes, from any shape of lease. One that gives back the
    very lease has taken none: it answered a repeat."""
    steps = set()
    for lease in leases():
        leaves = _reached(lease.status, lease.owner is not None)
        for kind, after in _taken(lease):
            if after is None:
                steps.add(Step(kind, leaves, GONE, 0))
            elif not isinstance(after, Refusal) and after is not lease:
                reaches = _reached(after.status, after.owner is not None)
                steps.add(Step(kind, leaves, reaches, after.epoch - lease.epoch))
    return frozenset(steps)


def leases() -> Iterator[Lease]:
    """A lease of every well-formed shape, as far as a transition function may tell them apart."""
    some_time = (None, StoreMs(1))
    for status, owned, past, cancel, delayed, requeue in product(
        Status, (True, False), (True, False), some_time, some_time, RequeueRule
    ):
        active = status in ACTIVE
        deadline = StoreMs(_NOW - 1 if past else _NOW)
        lease = Lease(
            status,
            _OWNER if owned else None,
            epoch=1,
            beats=1,
            deadline=deadline if owned and active else None,
            cancel_requested_at=cancel,
            delayed_at=delayed,
            ttl_ms=_TTL if owned else None,
            confirm_ms=_TTL if owned else None,
            requeue=requeue,
        )
        if rules.well_formed(lease):
            yield lease


def _taken(lease: Lease) -> Iterator[tuple[Kind, Lease | Refusal | None]]:
    """What each function makes of this lease, by the move that it is; None: the row is gone."""
    yield Kind.CLAIM, rules.claim(lease, _OWNER, _TTL, _TTL, _NOW)
    yield Kind.START, rules.start(lease, _OWNER, lease.epoch, _TTL, _TTL, _NOW)
    yield Kind.RENEW, rules.renew(lease, _OWNER, lease.epoch, _TTL, _TTL, _NOW)
    yield Kind.DELAY, rules.delay(lease, lease.epoch, lease.beats, _NOW)
    yield Kind.ORPHAN, rules.orphan(lease, lease.epoch, lease.beats, _NOW)
    healing = Kind.HEAL if lease.status is Status.ORPHANED else Kind.COMPLETE
    for outcome in sorted(rules.OUTCOMES):
        yield healing, rules.complete(lease, _OWNER, lease.epoch, outcome)
    yield Kind.RELEASE, rules.release(lease, _OWNER, lease.epoch)
    yield _canceled(rules.request_cancel(lease, _NOW))
    for force in (True, False):
        yield Kind.REQUEUE, rules.requeue(lease, lease.epoch, force)
    for outcome in sorted(rules.SETTLEMENTS):
        yield Kind.SETTLE, rules.settle(lease, lease.epoch, outcome)
    yield Kind.EXPIRE, rules.expire(lease, StoreMs(_NOW - 1), _NOW)
    yield _withdrawn(rules.withdraw(lease, _OWNER, _NOW))
    evicted = rules.may_evict(lease, lease.epoch, StoreMs(0), _TTL, _NOW)
    yield Kind.EVICT, evicted


def _canceled(after: Lease | Refusal) -> tuple[Kind, Lease | Refusal]:
    """A cancel request ends the job that nobody would hear it for."""
    ends = isinstance(after, Lease) and after.status is Status.CANCELED
    return (Kind.CANCEL if ends else Kind.REQUEST_CANCEL), after


def _withdrawn(after: Lease | Refusal) -> tuple[Kind, Lease | Refusal]:
    """A withdrawal of what is not the caller's own queued job is a cancel request."""
    if isinstance(after, Lease) and after.status is Status.FAILED:
        return Kind.WITHDRAW, after
    return _canceled(after)
