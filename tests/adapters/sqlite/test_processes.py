"""Several real processes on one file, some killed: nothing is lost, no live job is swept."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from attrs import frozen

from tests.adapters.sqlite import worker
from tests.adapters.sqlite.helpers import environment
from unswept.adapters.sqlite import SqliteStore, system_clock
from unswept.core import commands as c
from unswept.core.lease import ACTIVE, Kind, Status
from unswept.core.replies import OutputPage
from unswept.core.values import Event

WORKERS = 3
KILLS = 5
SEED = 20_240


@frozen
class Run:
    """One worker's process and its diary."""

    owner: str
    process: subprocess.Popen[str]
    diary: Path


@contextmanager
def workers() -> Iterator[dict[str, Run]]:
    """All runs by their owner; none of them outlives the test."""
    runs: dict[str, Run] = {}
    try:
        yield runs
    finally:
        for run in runs.values():
            if run.process.poll() is None:
                run.process.kill()  # only after a failure; our own children, by their pids
            run.process.communicate()


def spawn(folder: Path, owner: str) -> Run:
    diary = folder / f"{owner}.diary"
    process = subprocess.Popen(
        [sys.executable, worker.__file__, str(folder / "jobs.db"), str(diary), owner],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    return Run(owner, process, diary)


def wait_until(folder: Path, owner: str, lines: int) -> None:
    """Until the worker has written so much, so that each one runs some jobs before it dies."""
    give_up = time.monotonic() + 30
    diary = folder / f"{owner}.diary"
    while not diary.exists() or diary.read_text().count("\n") < lines:
        assert time.monotonic() < give_up, f"{owner} does nothing"
        time.sleep(0.02)


def test_processes_that_are_killed_lose_nothing_and_sweep_nobody(tmp_path: Path) -> None:
    """What was acknowledged is there; what died is orphaned; what lived was left alone."""
    random = Random(SEED)
    SqliteStore(tmp_path / "jobs.db").close()
    killed: dict[str, int] = {}  # owner to the store time just before
    with workers() as runs:
        alive = []
        for number in range(WORKERS + KILLS):
            run = runs[f"w{number}"] = spawn(tmp_path, f"w{number}")
            alive.append(run)
            if len(alive) > WORKERS:
                wait_until(tmp_path, run.owner, 3)
                time.sleep(random.uniform(0.1, 0.5))
                victim = alive.pop(random.randrange(WORKERS))
                wait_until(tmp_path, victim.owner, 3)
                killed[victim.owner] = system_clock()
                victim.process.kill()
                victim.process.wait()
        wait_for_the_sweeps(tmp_path, killed)
        for run in alive:
            _, complaints = run.process.communicate(timeout=30)
            assert (run.process.returncode, complaints) == (0, "")
        check(tmp_path, runs, killed)


def wait_for_the_sweeps(folder: Path, killed: dict[str, int]) -> None:
    """The living sweep the dead: ttl and window after the last kill nothing of theirs is active."""
    give_up = time.monotonic() + 20
    with SqliteStore(folder / "jobs.db") as store:
        while held_by_the_dead(store, killed):
            assert time.monotonic() < give_up, "the dead are not swept"
            time.sleep(0.1)


def held_by_the_dead(store: SqliteStore, killed: dict[str, int]) -> list[Event]:
    """The last events of the jobs that dead workers still hold."""
    last = {event.job_id: event for event in all_events(store)}
    return [event for event in last.values() if event.status in ACTIVE and event.owner in killed]


def all_events(store: SqliteStore) -> list[Event]:
    events: list[Event] = []
    after = 0
    while True:
        page = store.execute(c.ReadEvents(after, limit=10_000))
        if not page.events:
            return events
        events += page.events
        after = page.next_after


def check(folder: Path, runs: dict[str, Run], killed: dict[str, int]) -> None:
    """Diaries against events: acknowledged is kept (L14), swept was dead (L1, L12)."""
    with SqliteStore(folder / "jobs.db") as store:
        events = all_events(store)
        admits = [event.job_id for event in events if event.kind is Kind.ADMIT]
        assert len(admits) == len(set(admits))
        keys = [(event.job_id, event.epoch, event.kind) for event in events]
        assert len(keys) == len(set(keys))
        ends = {event.job_id: event.status for event in events}
        orphans = [event for event in events if event.kind is Kind.ORPHAN]
        for event in orphans:
            assert event.owner in killed, f"{event} although its owner lived"
            assert event.beat_at is not None
            assert event.at > event.beat_at + worker.TERMS.lease_ttl_ms
            assert event.at >= killed[event.owner]
            assert event.actor != event.owner
        acknowledged = 0
        for run in runs.values():
            for line in run.diary.read_text().splitlines():
                verb, job_id, *rest = line.split()
                acknowledged += 1
                assert job_id in ends, f"{run.owner}: {line} was lost"
                if verb == "completed":
                    assert ends[job_id] is Status.COMPLETED, line
                if verb == "output":
                    page = store.execute(c.ReadOutput(job_id, epoch=1, first=int(rest[0])))
                    assert isinstance(page, OutputPage)
                    assert page.chunks, f"{run.owner}: {line} was lost"
        assert set(ends.values()) <= {Status.COMPLETED, Status.ORPHANED}
        assert acknowledged > 100
        assert orphans, "nobody died with a job in hand"
    database = sqlite3.connect(folder / "jobs.db")
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    database.close()
    print(f"{acknowledged} acknowledged, {len(orphans)} orphaned, {len(killed)} killed")
