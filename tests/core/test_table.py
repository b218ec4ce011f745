"""Every cell of (transition × status × owned or not × fence), by eye and against `MOVES`.

`queued+` is a queued job with an owner, `queued-` one that is nobody's. `ok` is the true epoch and
owner; the other two fences name another epoch (older or newer) or another owner. `!reason` is a
refusal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from types import MappingProxyType
from typing import Final

import pytest

from unswept.core import lease as rules
from unswept.core.lease import (
    ACTIVE,
    MOVES,
    TERMINAL,
    Kind,
    Lease,
    RequeueRule,
    Status,
    well_formed,
)
from unswept.core.records import changed
from unswept.core.refusal import Refusal
from unswept.core.units import Ms, StoreMs

# `*` is every cell that the lines above it with the same transition and fence leave.
TABLE: Final = """
claim          ok           running           queued-
claim          ok           !owned            queued+
claim          ok           !already_running  running+
claim          ok           !orphaned         orphaned+
claim          ok           !already_terminal *

start          ok           running           queued+ running+
start          ok           !orphaned         orphaned+
start          ok           !already_terminal completed+ failed+ canceled+ expired+
start          ok           !not_owner        *
start          other_epoch  !stale_epoch      *
start          other_owner  !not_owner        *

renew          ok           queued            queued+
renew          ok           running           running+
renew          ok           !orphaned         orphaned+
renew          ok           !already_terminal completed+ failed+ canceled+ expired+
renew          ok           !not_owner        *
renew          other_epoch  !stale_epoch      *
renew          other_owner  !not_owner        *

complete       ok           completed         queued+ running+ orphaned+
complete       ok           !already_terminal completed+ failed+ canceled+ expired+
complete       ok           !not_owner        *
complete       other_epoch  !stale_epoch      *
complete       other_owner  !not_owner        *

release        ok           queued            queued+ running+
release        ok           !orphaned         orphaned+
release        ok           !already_terminal completed+ failed+ canceled+ expired+
release        ok           !not_owner        *
release        other_epoch  !stale_epoch      *
release        other_owner  !not_owner        *

delay          ok           queued            queued+
delay          ok           running           running+
delay          ok           !orphaned         orphaned+
delay          ok           !not_owner        queued-
delay          ok           !already_terminal *
delay          other_epoch  !stale_epoch      *

orphan         ok           orphaned          queued+ running+
orphan         ok           !orphaned         orphaned+
orphan         ok           !not_owner        queued-
orphan         ok           !already_terminal *
orphan         other_epoch  !stale_epoch      *

request_cancel ok           canceled          queued- orphaned+
request_cancel ok           queued            queued+
request_cancel ok           running           running+
request_cancel ok           !already_terminal *

requeue        ok           queued            orphaned+
requeue        ok           !not_orphaned     queued- queued+ running+
requeue        ok           !already_terminal *
requeue        other_epoch  !stale_epoch      *

settle         ok           failed            orphaned+
settle         ok           !not_orphaned     queued- queued+ running+
settle         ok           !already_terminal *
settle         other_epoch  !stale_epoch      *

expire         ok           expired           queued-
expire         ok           !owned            queued+
expire         ok           !already_running  running+
expire         ok           !orphaned         orphaned+
expire         ok           !already_terminal *

withdraw       ok           failed            queued+
withdraw       ok           canceled          queued- orphaned+
withdraw       ok           running           running+
withdraw       ok           !already_terminal *
withdraw       other_owner  canceled          queued- orphaned+
withdraw       other_owner  queued            queued+
withdraw       other_owner  running           running+
withdraw       other_owner  !already_terminal *

evict          ok           may_go            completed+ failed+ canceled+ expired+ completed- failed- canceled- expired-
evict          ok           !not_terminal     *
evict          other_epoch  !stale_epoch      *

output         ok           may_append        queued+ running+ orphaned+ completed+ failed+ canceled+ expired+
output         ok           !not_owner        *
output         other_epoch  !stale_epoch      *
output         other_owner  !not_owner        *
"""  # noqa: E501

NOW: Final = StoreMs(1_000)
TTL_MS: Final = Ms(100)
WINDOW_MS: Final = Ms(30)

Cell = tuple[str, str, str]
"""(transition, fence, shape)."""
Call = Callable[[Lease, str, int], object]


def lease_of(shape: str) -> Lease:
    """The lease of a shape, past its deadline, so that only status and owner can refuse."""
    status, owned = Status(shape[:-1]), shape[-1] == "+"
    return Lease(
        status=status,
        owner="A" if owned else None,
        epoch=3,
        beats=7,
        deadline=StoreMs(NOW - 1) if owned and status in ACTIVE else None,
        cancel_requested_at=None,
        delayed_at=None,
        ttl_ms=TTL_MS if owned else None,
        confirm_ms=WINDOW_MS if owned else None,
        requeue=RequeueRule.ALLOWED,
    )


SHAPES: Final = tuple(
    shape
    for shape in (f"{status.value}{owned}" for status, owned in product(Status, "+-"))
    if well_formed(lease_of(shape))
)

CALLS: Final = MappingProxyType[str, Call](
    {
        "claim": lambda lease, owner, epoch: rules.claim(lease, owner, TTL_MS, WINDOW_MS, NOW),
        "start": lambda lease, owner, epoch: rules.start(
            lease, owner, epoch, TTL_MS, WINDOW_MS, NOW
        ),
        "renew": lambda lease, owner, epoch: rules.renew(
            lease, owner, epoch, TTL_MS, WINDOW_MS, NOW
        ),
        "complete": lambda lease, owner, epoch: rules.complete(
            lease, owner, epoch, Status.COMPLETED
        ),
        "release": rules.release,
        "delay": lambda lease, owner, epoch: rules.delay(lease, epoch, lease.beats, NOW),
        "orphan": lambda lease, owner, epoch: rules.orphan(lease, epoch, lease.beats, NOW),
        "request_cancel": lambda lease, owner, epoch: rules.request_cancel(lease, NOW),
        "requeue": lambda lease, owner, epoch: rules.requeue(lease, epoch, force=False),
        "settle": lambda lease, owner, epoch: rules.settle(lease, epoch, Status.FAILED),
        "expire": lambda lease, owner, epoch: rules.expire(lease, StoreMs(NOW - 1), NOW),
        "withdraw": lambda lease, owner, epoch: rules.withdraw(lease, owner, NOW),
        "evict": lambda lease, owner, epoch: (
            rules.may_evict(lease, epoch, StoreMs(0), Ms(10), NOW) or "may_go"
        ),
        "output": lambda lease, owner, epoch: (
            rules.may_append(lease, owner, epoch, None, Ms(10), NOW) or "may_append"
        ),
    }
)
BY_OWNER: Final = frozenset({"start", "renew", "complete", "release", "output"})
BY_EPOCH: Final = BY_OWNER | {"delay", "orphan", "requeue", "settle", "evict"}

# Which moves of the table each function makes.
KINDS: Final = MappingProxyType(
    {
        "claim": {Kind.CLAIM},
        "start": {Kind.START},
        "renew": {Kind.RENEW},
        "complete": {Kind.COMPLETE, Kind.HEAL},
        "release": {Kind.RELEASE},
        "delay": {Kind.DELAY},
        "orphan": {Kind.ORPHAN},
        "request_cancel": {Kind.REQUEST_CANCEL, Kind.CANCEL},
        "requeue": {Kind.REQUEUE},
        "settle": {Kind.SETTLE},
        "expire": {Kind.EXPIRE},
        "withdraw": {Kind.WITHDRAW, Kind.REQUEST_CANCEL, Kind.CANCEL},
    }
)


def cells() -> Iterator[Cell]:
    """Every cell that there is."""
    for name in CALLS:
        fences = ["ok"]
        if name in BY_EPOCH:
            fences.append("other_epoch")
        if name in BY_OWNER or name == "withdraw":
            fences.append("other_owner")
        yield from product([name], fences, SHAPES)


def read(table: str) -> dict[Cell, str]:
    """The cells that the table names, each once."""
    known: dict[Cell, str] = {}
    for line in table.split("\n"):
        if line:
            name, fence, outcome, *shapes = line.split()
            if shapes == ["*"]:
                shapes = [shape for shape in SHAPES if (name, fence, shape) not in known]
            for shape in shapes:
                assert (name, fence, shape) not in known, f"twice in the table: {line}"
                known[name, fence, shape] = outcome
    return known


EXPECTED: Final = read(TABLE)


def found(cell: Cell) -> Iterator[object]:
    """What the function says in this cell; under another epoch, for an older and a newer one."""
    name, fence, shape = cell
    lease = lease_of(shape)
    owner = "B" if fence == "other_owner" else "A"
    epochs = [lease.epoch - 1, lease.epoch + 1] if fence == "other_epoch" else [lease.epoch]
    return (CALLS[name](lease, owner, epoch) for epoch in epochs)


def test_the_table_has_every_cell_and_no_other() -> None:
    """A transition, a status or a fence that nobody thought of is a missing cell."""
    assert set(EXPECTED) == set(cells())
    assert set(MOVES) == set().union(*KINDS.values()) | {Kind.EVICT}
    assert set(Kind) - set(MOVES) == {Kind.ADMIT, Kind.ENQUEUE, Kind.OUTPUT, Kind.STALE_RESULT}


@pytest.mark.parametrize("cell", [*cells()], ids="/".join)
def test_a_cell(cell: Cell) -> None:
    """A transition does what its cell says, and refuses with the reason that stands there. (L3)"""
    for outcome in found(cell):
        if isinstance(outcome, Lease):
            assert EXPECTED[cell] == outcome.status.value
            assert well_formed(outcome)
        else:
            assert EXPECTED[cell] == (f"!{outcome}" if isinstance(outcome, Refusal) else outcome)


def test_what_is_not_refused_is_a_move_of_the_status_table() -> None:
    """Each accepted cell is one move of `MOVES`: the status left, reached, and the epoch's step."""
    for cell in cells():
        before = lease_of(cell[2])
        for after in found(cell):
            if isinstance(after, Lease) and after != before:
                assert sum(is_move(kind, before, after) for kind in KINDS[cell[0]]) == 1, cell


def is_move(kind: Kind, before: Lease, after: Lease) -> bool:
    move = MOVES[kind]
    stepped = after.epoch == before.epoch + move.epoch_step
    return before.status in move.leaves and after.status in move.reaches and stepped


def test_every_move_of_the_status_table_is_made() -> None:
    """`MOVES` names no status that its transition never leaves, and none that it never reaches."""
    left: Counter[tuple[Kind, Status]] = Counter()
    reached: Counter[tuple[Kind, Status]] = Counter()
    for name, shape, asked, outcome in product(
        KINDS, SHAPES, (None, StoreMs(5)), (Status.FAILED, *rules.OUTCOMES)
    ):
        before = changed(lease_of(shape), cancel_requested_at=asked)
        after = CALLS[name](before, "A", 3)
        if name == "complete":
            after = rules.complete(before, "A", 3, outcome)
        elif name == "settle" and outcome in rules.SETTLEMENTS:
            after = rules.settle(before, 3, outcome)
        if isinstance(after, Lease):
            for kind in KINDS[name]:
                if is_move(kind, before, after):
                    left[kind, before.status] += 1
                    reached[kind, after.status] += 1
    moves = {kind: move for kind, move in MOVES.items() if kind is not Kind.EVICT}
    assert set(left) == {(kind, status) for kind, move in moves.items() for status in move.leaves}
    assert set(reached) == {
        (kind, status) for kind, move in moves.items() for status in move.reaches
    }
    assert MOVES[Kind.EVICT].leaves == TERMINAL


def test_a_fence_looks_at_the_epoch_before_the_owner() -> None:
    """Under another epoch the hold has ended, whoever owns the job now. (L3)"""
    lease = lease_of("running+")
    assert rules.fence(lease, "A", 3) is None
    assert rules.fence(lease, "B", 3) is Refusal.NOT_OWNER
    assert rules.fence(lease, "B", 2) is Refusal.STALE_EPOCH
    assert rules.fence(lease_of("queued-"), "A", 3) is Refusal.NOT_OWNER
