"""A store that forgets the guard of its sweep is found out by the files and its own events.

No time has to pass: whoever sweeps without looking at the deadline sweeps what was just renewed.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, TypeVar

from unswept.adapters.chaos.books import Notebook
from unswept.adapters.chaos.plan import POLICY
from unswept.adapters.chaos.records import Born
from unswept.adapters.chaos.run import collect
from unswept.adapters.chaos.verdict import judged
from unswept.adapters.chaos.witness import Witness
from unswept.adapters.gateway.clock import boot_ms
from unswept.adapters.sqlite import SqliteStore
from unswept.core import commands as c
from unswept.core.lease import Status
from unswept.core.units import StoreMs

R = TypeVar("R")
OWNER, SWEEPER = "gateway-owner", "gateway-sweeper"

_UNGUARDED = """
UPDATE unswept_jobs SET status = 'orphaned', deadline = NULL, orphaned_at = :now WHERE id = :id;
"""
_EVENT = """
INSERT INTO unswept_events (job_id, epoch, kind, at, status, owner, actor, beats, deadline, beat_at,
    first_seen_at, forced)
SELECT id, epoch, 'orphan', :now, 'orphaned', owner, :sweeper, beats, deadline, beat_at, :seen, 0
FROM unswept_jobs WHERE id = :id
"""


class Unguarded:
    """The real store, but for a sweep that takes whatever it is told."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store

    def execute(self, command: c.Command[R]) -> R:
        reply: Any = self.store.execute(command)
        if isinstance(command, c.Sweep):
            with sqlite3.connect(self.store.path) as database:
                for target in command.targets:
                    told = {
                        "id": target.job_id,
                        "now": reply.at,
                        "sweeper": command.sweeper,
                        "seen": target.first_seen_at,
                    }
                    database.execute(_EVENT, told)
                    database.execute(_UNGUARDED, told)
            database.close()
        answer: R = reply
        return answer


def swept(store: c.Store, folder: Path) -> set[str]:
    """A job is renewed, and swept at once: the checks that fail."""
    books = {number: Notebook(folder / f"gateway-{number}.jsonl") for number in (1, 2)}
    Notebook(folder / "driver.jsonl").close()
    for number, instance in ((1, OWNER), (2, SWEEPER)):
        books[number].write(Born(boot_ms(), instance))
    owner, sweeper = Witness(store, books[1]), Witness(store, books[2])
    owner.execute(c.Admit("job", OWNER, POLICY.terms()))
    owner.execute(c.Start("job", OWNER, 1, POLICY.terms()))
    seen = sweeper.execute(c.Suspects()).at
    beaten = owner.execute(c.Heartbeat(OWNER, POLICY.terms(), (c.Hold("job", 1),)))
    target = c.Target("job", 1, 2, StoreMs(max(seen, beaten.at - 1)))
    sweeper.execute(c.Sweep(SWEEPER, (target,)))
    violations, _ = judged(collect(folder, store))
    return {violation.check for violation in violations}


def test_a_sweep_without_its_guard_is_noticed(tmp_path: Path) -> None:
    """The owner's file says until when the lease ran."""
    with SqliteStore(tmp_path / "jobs.db") as store:
        broken = swept(Unguarded(store), tmp_path)
        assert "no lease was cut short" in broken
        assert "a sweep takes a whole window" in broken


def test_the_real_store_passes_over_such_a_sweep(tmp_path: Path) -> None:
    """The same story, with nothing to find."""
    with SqliteStore(tmp_path / "jobs.db") as store:
        assert swept(store, tmp_path) == set()
        found = store.execute(c.Find("job"))
        assert found.job.lease.status is Status.RUNNING  # type: ignore[union-attr]
