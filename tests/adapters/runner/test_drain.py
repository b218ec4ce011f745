"""How a runner ends: nothing new, time to finish, the rest back to the queue, the heart last."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from tests.adapters.gateway.helpers import Faulty, find, run, status
from tests.adapters.runner.helpers import (
    body,
    ended,
    enqueue,
    error,
    events_of,
    open_store,
    runner,
    soon,
)
from unswept.adapters.runner import Cause, RunnerJob
from unswept.core import commands as c
from unswept.core.lease import Kind, RequeueRule, Status


def test_what_runs_may_finish(tmp_path: Path) -> None:
    """Within `finish_ms`; no claim is sent meanwhile."""

    async def scenario() -> None:
        over = asyncio.Event()

        async def handle(job: RunnerJob) -> bytes:
            await over.wait()
            return b"whole"

        with open_store(tmp_path) as store:
            line = Faulty(store)
            enqueue(store, "a")
            mine = runner(line, handle, concurrency=4)
            await mine.start()
            await soon(lambda: status(store, "a") is Status.RUNNING)
            draining = asyncio.ensure_future(mine.drain(finish_ms=60_000))
            await asyncio.sleep(0.3)
            sent = line.count(c.Claim)
            enqueue(store, "b")
            await asyncio.sleep(0.3)
            over.set()
            assert await draining
            assert line.count(c.Claim) == sent
            assert (body(store, "a"), status(store, "b")) == (b"whole", Status.QUEUED)
            assert isinstance(line.sent[-1], c.Deregister)

    run(scenario)


def test_what_does_not_finish_goes_back_to_the_queue(tmp_path: Path) -> None:
    """So that another runner takes it at once; what may not be requeued fails, and says why."""
    causes: list[Cause | None] = []

    async def scenario() -> None:
        async def stays(job: RunnerJob) -> None:
            try:
                await asyncio.sleep(600)
            finally:
                causes.append(job.aborted.cause)

        async def takes(job: RunnerJob) -> bytes:
            return b"by another"

        with open_store(tmp_path) as store:
            enqueue(store, "again")
            enqueue(store, "once", requeue=RequeueRule.NEVER)
            mine = runner(store, stays, concurrency=2)
            await mine.start()
            await soon(lambda: mine.health().running == 2)
            async with runner(store, takes):
                assert await mine.drain(finish_ms=100)
                await ended(store, "again", "once")
            assert body(store, "again") == b"by another"
            assert status(store, "once") is Status.FAILED
            assert "shutting down" in error(store, "once")
            kinds = [event.kind for event in events_of(store, "again")]
            assert kinds == [Kind.ENQUEUE, Kind.CLAIM, Kind.RELEASE, Kind.CLAIM, Kind.COMPLETE]
        assert causes == [Cause.DRAIN, Cause.DRAIN]

    run(scenario)


def test_a_handler_that_does_not_stop_keeps_its_lease_until_it_lapses(tmp_path: Path) -> None:
    """It is given to nobody by a runner that does not know what it still does."""
    begun, go = threading.Event(), threading.Event()

    def deaf(job: RunnerJob) -> None:
        begun.set()
        go.wait(100)

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            enqueue(store, "a")
            mine = runner(store, deaf)
            await mine.start()
            await soon(begun.is_set)
            assert not await mine.drain(timeout_ms=300)
            job = find(store, "a").job
            assert (job.lease.status, job.lease.epoch) == (Status.RUNNING, 1)
            assert len(store.execute(c.ListInstances()).instances) == 1
        go.set()

    run(scenario)


def test_a_terminal_write_is_repeated_until_it_is_stored(tmp_path: Path) -> None:
    """The store is away when the handler ends; the job is held, and the drain waits for it."""

    async def scenario() -> None:
        async def handle(job: RunnerJob) -> bytes:
            return b"kept"

        with open_store(tmp_path) as store:
            line = Faulty(store)
            line.lossy = (c.Complete,)
            enqueue(store, "a")
            mine = runner(line, handle)
            await mine.start()
            await soon(lambda: line.count(c.Complete) >= 2)
            assert mine.health().finishing == mine.health().held == 1
            draining = asyncio.ensure_future(mine.drain())
            await asyncio.sleep(0.3)
            assert not draining.done()
            line.lossy = ()
            assert await draining
            assert body(store, "a") == b"kept"
            ends = [e for e in events_of(store, "a") if e.kind is Kind.COMPLETE]
            assert len(ends) == 1

    run(scenario)


def test_a_second_drain_waits_for_the_first(tmp_path: Path) -> None:
    """And `run` ends with it."""

    async def handle(job: RunnerJob) -> None:
        return None

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            mine = runner(store, handle)
            await mine.start()
            running = asyncio.ensure_future(mine.run())
            await soon(lambda: mine.health().claiming)
            assert all(await asyncio.gather(mine.drain(), mine.drain(), running))

    run(scenario)


def test_a_runner_whose_store_never_answered_can_be_drained(tmp_path: Path) -> None:
    """It claims nothing, and ends in time."""

    async def handle(job: RunnerJob) -> None:
        return None

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            line = Faulty(store)
            line.down = (c.Command,)
            mine = runner(line, handle)
            await mine.start()
            await asyncio.sleep(0.3)
            assert line.count(c.Claim) == 0
            assert not mine.health().claiming
            await mine.drain(timeout_ms=300)

    run(scenario)
