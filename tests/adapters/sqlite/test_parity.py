"""The SQLite store equals the pure one, reply for reply and row for row, whichever clock it has."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.adapters.sqlite.drawn import Drawer, Seen, outcomes
from tests.adapters.sqlite.helpers import Clock, tables_of
from tests.adapters.tables import tables_in
from unswept.adapters.sql.queries import Queries
from unswept.adapters.sqlite import SqliteStore
from unswept.adapters.sqlite import store as store_module
from unswept.adapters.sqlite.dialect import SqliteDialect
from unswept.core.errors import StoreError
from unswept.core.memory import MemoryStore
from unswept.core.world import all_commands

SEEDS = range(60)
STEPS = 250

# What must have happened, or the parity says little. `release, canceled` is a release under a
# pending cancel.
REQUIRED = """
Register         registered
Deregister       deregistered
ListInstances    instances
Admit            admit; joined; repeated; id_used; spent
Enqueue          enqueue; repeated; id_used; spent
Withdraw         withdraw; cancel; request_cancel; withdrawn; repeated; already_terminal
Claim            took 0; took 1; took 2; again 0; again 1; again 2; not_registered; budget
Start            start; repeated; absent; spent; stale_epoch; not_owner; cancel_pending; orphaned;
                 already_terminal
Heartbeat        renewed; orphaned; terminal; fenced; absent; registered; unregistered
Output           output; repeated; absent; spent; stale_epoch; not_owner; too_late
Complete         complete; heal; repeated; absent; spent; stale_epoch; not_owner; already_terminal
Release          release, queued; release, canceled; repeated; absent; spent; stale_epoch;
                 not_owner; not_requeueable; orphaned; already_terminal
RequestCancel    request_cancel; cancel; repeated; withdrawn; already_terminal
Requeue          requeue, queued; requeue, canceled; repeated; absent; spent; stale_epoch;
                 not_orphaned; not_requeueable; already_terminal
Settle           settle; repeated; absent; spent; stale_epoch; not_orphaned; already_terminal
ExpireQueued     expire; repeated; absent; spent; not_due; owned; already_running; orphaned;
                 already_terminal
Suspects         none; some; more
Delay            delay; absent; spent; stale_epoch; not_owner; beats_moved; not_expired; orphaned;
                 already_terminal; delayed_before
Sweep            done; repeated; absent; spent; stale_epoch; not_owner; beats_moved; not_expired;
                 orphaned; already_terminal
LookOverdue      evictable; expirable; silent; keys; events
Evict            done; repeated; absent; stale_epoch; not_terminal; not_due
ForgetInstances  none; some
ForgetKeys       none; some
ForgetEvents     none; some
Find             with result; without result; absent; spent
ReadRequest      requestread; absent; spent
ReadOutput       none; some; more; absent; spent
LeaseEvents      granted; renewed; leased
Acknowledge      moved; repeated; stale_token; ahead; absent
ForgetConsumer   none; some; leased
ListConsumers    consumers
ReadDeadLetters  none; some; more
Count            counts
ReadEvents       eventspage
"""


def required() -> set[tuple[str, str]]:
    pairs = set()
    name = ""
    for line in REQUIRED.strip().splitlines():
        name, said = (line[:17].strip() or name), line[17:]
        pairs |= {(name, outcome.strip()) for outcome in said.split(";") if outcome.strip()}
    return pairs


def run(
    seed: int, store: SqliteStore, clock: Clock, steps: int = STEPS
) -> tuple[MemoryStore, Seen]:
    pure = MemoryStore(clock)
    drawer = Drawer(seed, pure.world)
    seen: Seen = Counter()
    for step in range(steps):
        command = drawer.command()
        clock.now = drawer.moved(clock.now, command)
        expected = pure.execute(command)
        assert store.execute(command) == expected, f"seed {seed}, step {step}: {command}"
        seen.update(outcomes(command, expected))
    return pure, seen


def test_every_reply_and_every_row_equals_the_pure_store(tmp_path: Path) -> None:
    """Whatever is asked, in whatever order, and whichever way the clock steps."""
    seen: Seen = Counter()
    for seed in SEEDS:
        path, clock = tmp_path / f"{seed}.db", Clock()
        with SqliteStore(path, clock=clock, durability="normal") as store:
            pure, saw = run(seed, store, clock)
        seen += saw
        stands = tables_of(path)
        for name, rows in tables_in(pure.world).items():
            assert stands[name] == rows, f"seed {seed}: table {name}"
    print(table(seen))  # shown by `pytest -s`, and where this fails
    never = sorted(required() - seen.keys())
    assert not never, "these never happened, so that nothing was compared"
    assert {command.__name__ for command in all_commands()} == {name for name, _ in required()}


def table(seen: Seen) -> str:
    commands = sorted({name for name, _ in seen})
    return "\n".join(
        f"{name:16} "
        + ", ".join(f"{outcome}: {seen[name, outcome]}" for n, outcome in sorted(seen) if n == name)
        for name in commands
    )


def test_a_store_in_memory_gives_the_same_replies() -> None:
    """`sqlite::memory:` runs the same scripts on one connection."""
    clock = Clock()
    with SqliteStore("sqlite::memory:", clock=clock) as store:
        run(0, store, clock)


MUTANTS = (
    ("orphan", "deadline < :now", "deadline <= :now"),
    ("orphan", "epoch = :epoch AND", ""),
    ("orphan", "beats = :beats AND", ""),
    ("delay", "deadline < :now", "deadline <= :now"),
    ("delay", "AND delayed_at IS NULL", ""),
    ("complete", "epoch = :epoch AND", ""),
    ("complete", "AND owner = :owner", ""),
    ("heal", "epoch = :epoch AND", ""),
    ("start", "AND cancel_requested_at IS NULL", ""),
    ("release", "AND requeue = 'allowed'", ""),
    ("request_cancel", "AND cancel_requested_at IS NULL", ""),
    ("requeue", "requeue = 'allowed' OR", ""),
    ("expire", "queue_deadline < :now", "queue_deadline <= :now"),
    ("claim", "not_before <= :now", "not_before < :now"),
)


@pytest.mark.parametrize(("name", "old", "new"), MUTANTS)
def test_a_wrong_guard_is_noticed(
    name: str, old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement with one condition less, or one that is off by a millisecond, is no equal."""
    wrong = Queries(SqliteDialect())
    before = wrong.update[name]
    wrong.update = {**wrong.update, name: before.replace(old, new)}
    assert wrong.update[name] != before
    monkeypatch.setattr(store_module, "QUERIES", wrong)
    # A sweep whose policy the guard refuses misses the row that it asked for: KeyError.
    with pytest.raises((AssertionError, StoreError, KeyError)):
        run_all()


def run_all() -> None:
    for seed in SEEDS:
        clock = Clock()
        with SqliteStore("sqlite::memory:", clock=clock) as store:
            run(seed, store, clock)
