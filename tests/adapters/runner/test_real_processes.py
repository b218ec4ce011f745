"""Runners in processes of their own that are killed, stopped and told to end."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.adapters.gateway.helpers import (
    PATIENCE_S,
    environment,
    find,
    line_of,
    policy,
    stand_still,
    status,
)
from tests.adapters.runner.helpers import events_of
from unswept.adapters.runner import open_queue
from unswept.core import commands as c
from unswept.core.job import OnOrphan
from unswept.core.lease import Kind, RequeueRule, Status
from unswept.core.values import Request

ROOT = Path(__file__).parents[3]


class Fleet:
    """One queue, and runner processes on it."""

    def __init__(self, url: str, schema: str, store: c.Store, stack: ExitStack) -> None:
        self.store = store
        self._where = (url, schema)
        self._stack = stack

    def runner(self) -> subprocess.Popen[str]:
        return self._stack.enter_context(_process(*self._where))

    def enqueue(self, job_id: str, seconds: float) -> None:
        self.store.execute(
            c.Enqueue(
                job_id,
                request=Request(str(seconds).encode()),
                requeue=RequeueRule.ALLOWED,
                on_orphan=OnOrphan.REQUEUE,
                max_attempts=5,
            )
        )


@contextmanager
def _process(url: str, schema: str) -> Iterator[subprocess.Popen[str]]:
    started = subprocess.Popen(
        [sys.executable, "-m", "tests.adapters.runner.worker", url, schema],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=environment(),
        text=True,
    )
    try:
        yield started
    finally:
        started.kill()
        started.wait()
        assert started.stdout is not None
        started.stdout.close()


@pytest.fixture(params=["sqlite", "postgres"])
def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fleet]:
    url, schema = f"sqlite:{tmp_path}/jobs.db", ""
    if request.param == "postgres":
        pytest.importorskip("psycopg_pool")
        url = request.getfixturevalue("postgres_url")
        schema = request.getfixturevalue("postgres_schema")
    with open_queue(url, schema=schema or None) as store, ExitStack() as stack:
        yield Fleet(url, schema, store, stack)


def until(what: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < give_up_at, "it did not come to pass"
        time.sleep(0.02)


def test_the_job_of_a_killed_runner_is_run_by_another(fleet: Fleet) -> None:
    """Two observations and a window later it is requeued, never sooner than its lease allows; the
    next claim has an epoch of its own, and the job completes once. (L1, L13)"""
    fleet.enqueue("a", 0.1)
    one = fleet.runner()
    assert line_of(one) == "a/1"
    until(lambda: status(fleet.store, "a") is Status.COMPLETED)
    fleet.enqueue("b", 100)
    assert line_of(one) == "b/1"
    two = fleet.runner()
    one.send_signal(signal.SIGKILL)
    assert line_of(two) == "b/3"
    events = events_of(fleet.store, "b")
    assert [e.kind for e in events] == [
        Kind.ENQUEUE,
        Kind.CLAIM,
        Kind.ORPHAN,
        Kind.REQUEUE,
        Kind.CLAIM,
    ]
    orphaned = events[2]
    assert orphaned.beat_at is not None
    assert orphaned.at > orphaned.beat_at + policy().lease_ttl_ms
    fleet.store.execute(c.RequestCancel("b"))
    until(lambda: status(fleet.store, "b") is Status.CANCELED)
    assert find(fleet.store, "b").job.attempts == 2


def test_a_runner_that_is_told_to_end_drains(fleet: Fleet) -> None:
    """Twice told is told once: what finishes in time completes, the rest goes back to the queue."""
    one = fleet.runner()
    fleet.enqueue("short", 1.0)
    fleet.enqueue("long", 100)
    assert {line_of(one), line_of(one)} == {"short/1", "long/1"}
    one.send_signal(signal.SIGTERM)
    time.sleep(0.1)
    one.send_signal(signal.SIGINT)
    assert line_of(one) == "clean"
    assert one.wait(PATIENCE_S) == 0
    assert status(fleet.store, "short") is Status.COMPLETED
    long = find(fleet.store, "long").job
    assert (long.lease.status, long.lease.epoch) == (Status.QUEUED, 2)
    assert fleet.store.execute(c.ListInstances()).instances == ()


def test_a_runner_that_was_stopped_past_its_lease_is_fenced(fleet: Fleet) -> None:
    """SIGSTOP, a sweep, SIGCONT: another has the job, and this one's handler leaves nothing."""
    one = fleet.runner()
    fleet.enqueue("a", 12)
    assert line_of(one) == "a/1"
    until(lambda: find(fleet.store, "a").job.process is not None)
    two = fleet.runner()
    stand_still(one, fleet.store)
    assert line_of(two) == "a/3"
    one.send_signal(signal.SIGCONT)
    until(lambda: status(fleet.store, "a") is Status.COMPLETED)
    one.send_signal(signal.SIGTERM)
    assert line_of(one) == "clean"
    kinds = [event.kind for event in events_of(fleet.store, "a")]
    # The evidence of a living process has bought it one delay. (L9)
    expected = [Kind.CLAIM, Kind.DELAY, Kind.ORPHAN, Kind.REQUEUE, Kind.CLAIM, Kind.COMPLETE]
    assert kinds == [Kind.ENQUEUE, *expected]
