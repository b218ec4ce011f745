"""Who stops a handler, how it learns of it, and what is written then."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.gateway.helpers import Faulty, find, policy, run, status
from tests.adapters.runner.helpers import (
    Clock,
    ended,
    enqueue,
    error,
    events_of,
    open_store,
    runner,
    soon,
)
from unswept.adapters.runner import AbortedError, Cause, RunnerJob
from unswept.core import commands as c
from unswept.core.lease import Kind, RequeueRule, Status


class Long:
    """Handlers that go on until they are stopped, and the causes that they saw."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.causes: list[Cause | None] = []

    async def on_loop(self, job: RunnerJob) -> bytes:
        self.begun.append(job.epoch)
        try:
            await asyncio.sleep(600)
        finally:
            self.causes.append(job.aborted.cause)
        return b"done"

    def on_thread(self, job: RunnerJob) -> bytes:
        self.begun.append(job.epoch)
        job.aborted.wait(100)
        self.causes.append(job.aborted.cause)
        return b"what a handler returns after that does not count"

    def by(self, kind: str) -> Any:
        return self.on_loop if kind == "loop" else self.on_thread


@pytest.mark.parametrize("kind", ["loop", "thread"])
def test_a_cancel_request_comes_with_the_next_heartbeat(tmp_path: Path, kind: str) -> None:
    """The handler is stopped, and the job is canceled whatever it returns. (L7)"""

    async def scenario() -> None:
        long = Long()
        with open_store(tmp_path) as store:
            enqueue(store, "a")
            async with runner(store, long.by(kind)):
                await soon(lambda: bool(long.begun))
                store.execute(c.RequestCancel("a"))
                await ended(store, "a")
            assert (status(store, "a"), error(store, "a")) == (Status.CANCELED, "Canceled")
        assert long.causes == [Cause.CANCELED]

    run(scenario)


def test_a_cancel_before_the_claim_is_answered_begins_nothing(tmp_path: Path) -> None:
    """Its answer was lost, and the one that comes says what has happened since."""

    async def scenario() -> None:
        long = Long()
        with open_store(tmp_path) as store:
            line = Faulty(store)
            line.lossy = (c.Claim,)
            enqueue(store, "a")
            async with runner(line, long.on_loop):
                await soon(lambda: status(store, "a") is Status.RUNNING)
                store.execute(c.RequestCancel("a"))
                line.lossy = ()
                await ended(store, "a")
            assert status(store, "a") is Status.CANCELED
        assert long.begun == []

    run(scenario)


def test_a_job_that_was_canceled_in_the_queue_is_never_claimed(tmp_path: Path) -> None:
    """Nor one whose cancel came before it."""

    async def scenario() -> None:
        long = Long()
        with open_store(tmp_path) as store:
            store.execute(c.RequestCancel("early"))
            enqueue(store, "early", "late")
            store.execute(c.RequestCancel("late"))
            async with runner(store, long.on_loop) as mine:
                await mine.run(until_empty=True, signals=False)
            assert status(store, "late") is Status.CANCELED
            assert status(store, "early") is None
        assert long.begun == []

    run(scenario)


@pytest.mark.parametrize("kind", ["loop", "thread"])
def test_a_fenced_handler_is_stopped_and_writes_nothing(tmp_path: Path, kind: str) -> None:
    """Its job was swept and requeued behind its back, by a store clock that was wrong for a while:
    the new owner's result stands, and the old one leaves not even a stale result. (L3)"""
    clock = Clock()

    async def scenario() -> None:
        old, new = Long(), Long()
        with open_store(tmp_path, clock) as store:
            enqueue(store, "a")
            line = Faulty(store)
            async with runner(line, old.by(kind)) as mine:
                await soon(lambda: bool(old.begun))
                line.down = (c.Heartbeat,)
                take_away(store, clock, "a")
                line.down = (c.Claim,)
                await soon(lambda: bool(old.causes))
                async with runner(store, new.on_loop):
                    await soon(lambda: new.begun == [3])
                    await soon(lambda: mine.health().running == 0)
                    assert status(store, "a") is Status.RUNNING
                    store.execute(c.RequestCancel("a"))
                    await ended(store, "a")
                line.down = ()  # a drain would wait for the answer to the claim
            kinds = [event.kind for event in events_of(store, "a")]
            assert kinds == [
                Kind.ENQUEUE,
                Kind.CLAIM,
                Kind.ORPHAN,
                Kind.REQUEUE,
                Kind.CLAIM,
                Kind.REQUEST_CANCEL,
                Kind.COMPLETE,
            ]
        assert old.causes == [Cause.FENCED]

    run(scenario)


def take_away(store: c.Store, clock: Clock, job_id: str) -> None:
    """Sweep and requeue it, as an authority would whose store clock is an hour ahead."""
    clock.offset_ms = 3_600_000
    [suspect] = store.execute(c.Suspects()).suspects
    at = clock()
    target = c.Target(job_id, suspect.epoch, suspect.beats, at)
    store.execute(c.Sweep("somebody", (target,)))
    store.execute(c.Requeue(job_id, suspect.epoch))
    clock.offset_ms = 0


@pytest.mark.parametrize("kind", ["loop", "thread"])
def test_work_that_may_be_requeued_stops_at_its_local_deadline(tmp_path: Path, kind: str) -> None:
    """The store is out of reach, so that others may run it soon; here it goes back to the queue as
    soon as the store is there again. (L11)"""

    async def scenario() -> None:
        long = Long()
        with open_store(tmp_path) as store:
            line = Faulty(store)
            enqueue(store, "a")
            async with runner(line, long.by(kind)):
                await soon(lambda: bool(long.begun))
                line.down = (c.Command,)
                began = time.monotonic()
                await soon(lambda: bool(long.causes))
                assert time.monotonic() - began < 2 * policy().lease_ttl_ms / 1000 + 5
                assert status(store, "a") is Status.RUNNING
                line.down = (c.Claim,)
                await soon(lambda: status(store, "a") is Status.QUEUED)
            assert find(store, "a").job.lease.epoch == 2
        assert long.causes == [Cause.EXPIRED]

    run(scenario)


def test_work_that_may_not_be_requeued_goes_on(tmp_path: Path) -> None:
    """Nobody else will run it: it is orphaned meanwhile, and heals. (L11)"""

    async def scenario() -> None:
        over = asyncio.Event()

        async def handle(job: RunnerJob) -> bytes:
            await over.wait()
            return b"late but whole"

        with open_store(tmp_path) as store:
            line = Faulty(store)
            enqueue(store, "a", requeue=RequeueRule.NEVER)
            async with runner(line, handle), runner(store, handle, partition="sweeps"):
                await soon(lambda: status(store, "a") is Status.RUNNING)
                line.down = (c.Command,)
                await soon(lambda: status(store, "a") is Status.ORPHANED)
                over.set()
                line.down = ()
                await ended(store, "a")
            assert status(store, "a") is Status.COMPLETED
            assert events_of(store, "a")[-1].kind is Kind.HEAL

    run(scenario)


def test_a_handler_on_a_thread_asks_before_each_step(tmp_path: Path) -> None:
    """`check` reads the clock itself, and waits for no thread of the heart."""
    stopped: list[str] = []

    def handle(job: RunnerJob) -> None:
        try:
            while True:
                job.check()
                time.sleep(0.01)
        except AbortedError as found:
            stopped.append(str(found))
            raise

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            line = Faulty(store)
            enqueue(store, "a")
            async with runner(line, handle):
                await soon(lambda: status(store, "a") is Status.RUNNING)
                line.down = (c.Command,)
                await soon(lambda: bool(stopped))
                line.down = (c.Claim,)
                await soon(lambda: status(store, "a") is Status.QUEUED)
        assert stopped == ["a is stopped: expired"]

    run(scenario)


def test_a_thread_is_vouched_for_while_the_loop_stands_still(tmp_path: Path) -> None:
    """It will bring the job to its end; a sweeper leaves it alone for longer than a lease."""
    go = threading.Event()

    def handle(job: RunnerJob) -> bytes:
        go.wait(100)
        return b"done"

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            enqueue(store, "a", requeue=RequeueRule.NEVER)
            short = policy(stall_limit_ms=2_000)
            async with runner(store, handle, policy=short):
                await soon(lambda: status(store, "a") is Status.RUNNING)
                before = find(store, "a").job.lease.beats
                time.sleep(3 * short.lease_ttl_ms / 1000)
                assert find(store, "a").job.lease.beats > before + 3
                go.set()
                await ended(store, "a")
            assert status(store, "a") is Status.COMPLETED

    run(scenario)
