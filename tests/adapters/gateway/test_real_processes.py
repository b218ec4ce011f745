"""Gateways in processes of their own that are killed, stopped and told to end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.adapters.gateway.helpers import (
    PATIENCE_S,
    environment,
    find,
    line_of,
    open_store,
    policy,
    sh,
    stand_still,
)
from unswept.adapters.gateway import ProcessWork, SyncGateway
from unswept.core import commands as c
from unswept.core.lease import Kind, Status
from unswept.core.values import Event

ROOT = Path(__file__).parents[3]


class Worker:
    """One gateway process."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.adapters.gateway.worker", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=environment(),
            text=True,
        )

    def submit(self, script: str) -> str:
        """The id of the job that runs this script."""
        assert self.process.stdin is not None
        self.process.stdin.write(script + "\n")
        self.process.stdin.flush()
        return self.line()

    def line(self) -> str:
        return line_of(self.process)

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)


@contextmanager
def worker(folder: Path) -> Iterator[Worker]:
    """A gateway process that does not outlive the test."""
    started = Worker(folder)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.wait()
        for pipe in (started.process.stdin, started.process.stdout):
            assert pipe is not None
            pipe.close()


def until(what: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < give_up_at, "it did not come to pass"
        time.sleep(0.02)


def events_of(store: c.Store, job_id: str) -> list[Event]:
    return [e for e in store.execute(c.ReadEvents()).events if e.job_id == job_id]


def test_the_job_of_a_killed_gateway_is_orphaned(tmp_path: Path) -> None:
    """Its child lives on and buys one delay; then, two observations and a window later, the job
    is orphaned, never sooner than its ttl allows. (L1, L9, L13)"""
    with open_store(tmp_path) as store, SyncGateway(store, policy=policy()), worker(tmp_path) as a:
        job_id = a.submit("exec sleep 40")
        until(lambda: find(store, job_id).job.process is not None)
        process = find(store, job_id).job.process
        assert process is not None
        a.send(signal.SIGKILL)
        until(lambda: find(store, job_id).job.lease.status is Status.ORPHANED)
        os.kill(process.pid, signal.SIGKILL)
        events = events_of(store, job_id)
        assert [e.kind for e in events] == [Kind.ADMIT, Kind.START, Kind.DELAY, Kind.ORPHAN]
        delayed, orphaned = events[-2:]
        assert orphaned.beat_at is not None
        assert orphaned.first_seen_at is not None
        assert delayed.at > orphaned.beat_at + policy().lease_ttl_ms
        assert orphaned.at > delayed.at + policy().lease_ttl_ms
        assert orphaned.at >= orphaned.first_seen_at + policy().confirm_after_ms


def test_a_dead_child_of_a_dead_gateway_delays_nothing(tmp_path: Path) -> None:
    """There is no process, so that the lease decides alone."""
    with open_store(tmp_path) as store, SyncGateway(store, policy=policy()), worker(tmp_path) as a:
        job_id = a.submit("exec sleep 40")
        until(lambda: find(store, job_id).job.process is not None)
        process = find(store, job_id).job.process
        assert process is not None
        a.send(signal.SIGKILL)
        os.kill(process.pid, signal.SIGKILL)
        until(lambda: find(store, job_id).job.lease.status is Status.ORPHANED)
        assert [e.kind for e in events_of(store, job_id)] == [Kind.ADMIT, Kind.START, Kind.ORPHAN]


def test_a_gateway_that_was_stopped_past_its_ttl_heals_its_jobs(tmp_path: Path) -> None:
    """SIGSTOP, a sweep, SIGCONT: the job goes on, completes, and heals; it sweeps nobody. (W-01)"""
    with (
        open_store(tmp_path) as store,
        worker(tmp_path) as a,
        SyncGateway(store, policy=policy()) as other,
    ):
        mine = a.submit("sleep 9; echo survived")
        until(lambda: find(store, mine).job.lease.status is Status.RUNNING)
        stand_still(a.process, store)
        until(lambda: find(store, mine).job.lease.status is Status.ORPHANED)
        theirs = other.submit(_long(), provider="shell")
        a.send(signal.SIGCONT)
        until(lambda: find(store, mine).job.lease.status is Status.COMPLETED)
        assert other.output(mine).stdout == "survived\n"
        assert not other.snapshot(theirs.id).over
        kinds = [e.kind for e in events_of(store, mine)]
        assert kinds[-2:] == [Kind.ORPHAN, Kind.HEAL]


def test_a_gateway_that_is_told_to_end_drains(tmp_path: Path) -> None:
    """What can finish in time completes, what cannot fails, the row of the instance goes, and a
    second signal changes nothing. (C63, F-13)"""
    with open_store(tmp_path) as store, worker(tmp_path) as a:
        soon = a.submit("sleep 1")
        never = a.submit("sleep 100")
        until(lambda: find(store, never).job.lease.status is Status.RUNNING)
        a.send(signal.SIGTERM)
        a.send(signal.SIGINT)
        time.sleep(0.2)
        a.send(signal.SIGTERM)
        assert a.line() == "clean"
        assert a.process.wait(timeout=PATIENCE_S) == 0
        assert find(store, soon).job.lease.status is Status.COMPLETED
        found = find(store, never)
        assert found.job.lease.status is Status.FAILED
        assert found.result is not None
        assert found.result.exit_code == 1
        assert store.execute(c.ListInstances()).instances == ()


def test_results_outlive_the_gateway(tmp_path: Path) -> None:
    """Another instance reads what a dead one left behind, and joins it. (W-34)"""
    with open_store(tmp_path) as store, worker(tmp_path) as a:
        job_id = a.submit("echo kept; exit 4")
        until(lambda: find(store, job_id).job.lease.status is Status.FAILED)
        a.send(signal.SIGKILL)
        a.process.wait()
        with SyncGateway(store, policy=policy()) as other:
            snapshot = other.wait(job_id)
            assert (snapshot.status, snapshot.exit_code) == (Status.FAILED, 4)
            assert other.output(job_id).stdout == "kept\n"


def _long() -> ProcessWork:
    return sh("sleep 100")
