"""Drain: no new work, nothing lost, the heart last; and what is left over keeps its lease."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from tests.adapters.gateway.helpers import Faulty, eventually, find, open_store, policy, run, sh
from unswept.adapters.gateway import Answer, CallWork, DrainingError, Gateway, runner
from unswept.core import commands as c
from unswept.core.heart import Phase
from unswept.core.lease import Status
from unswept.core.limiter import Limits
from unswept.core.replies import OutputPage
from unswept.core.values import Stream


def test_what_waits_fails_and_what_runs_is_stopped(tmp_path: Path) -> None:
    """Also a process that ends with 0 when it is asked to: it did not finish. (F-20, F-24)"""
    limits = Limits(max_running=1, max_running_per_provider=1, max_queued=5)

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            gateway = Gateway(store, policy=policy(), limits=limits)
            await gateway.start()
            script = "trap 'echo bye; exit 0' TERM; echo ready; while true; do sleep 0.05; done"
            runs = await gateway.submit(sh(script), provider="shell")
            waits = await gateway.submit(sh(f"touch {tmp_path}/ran"), provider="shell")

            async def ready() -> bool:
                return (await runs.output()).stdout == "ready\n"

            await eventually(ready)
            assert await gateway.drain()
            for job, error in (
                (runs, "Stopped because the gateway is shutting down"),
                (waits, "Gateway is shutting down before execution"),
            ):
                found = find(store, job.id)
                assert found.job.lease.status is Status.FAILED
                assert found.result is not None
                assert (found.result.exit_code, found.result.error) == (1, error)
            chunks = store.execute(c.ReadOutput(runs.id))
            assert isinstance(chunks, OutputPage)
            written = [chunk.data for chunk in chunks.chunks if chunk.stream is Stream.STDOUT]
            assert b"".join(written) == b"ready\nbye\n"
            assert store.execute(c.ListInstances()).instances == ()
            with pytest.raises(DrainingError):
                await gateway.submit(sh("true"), provider="shell")
        assert not (tmp_path / "ran").exists()

    run(scenario)


def test_a_process_that_does_not_end_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has a while to end by itself; its whole group goes."""
    monkeypatch.setattr(runner, "KILL_AFTER_S", 0.3)

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            gateway = Gateway(store, policy=policy())
            await gateway.start()
            job = await gateway.submit(
                sh("trap '' TERM; while true; do sleep 0.05; done"), provider="shell"
            )
            await eventually(lambda: find(store, job.id).job.lease.status is Status.RUNNING)
            await asyncio.sleep(0.2)
            assert await gateway.drain()
            assert find(store, job.id).job.lease.status is Status.FAILED

    run(scenario)


def test_a_long_drain_is_never_swept(tmp_path: Path) -> None:
    """What finishes takes several ttls; the heart beats until the last of it is stored. (C63)"""

    async def scenario() -> None:
        with open_store(tmp_path) as store, open_store(tmp_path) as other:
            async with Gateway(other, policy=policy()):
                gateway = Gateway(store, policy=policy())
                await gateway.start()
                job = await gateway.submit(sh("sleep 5"), provider="shell")
                await eventually(lambda: find(store, job.id).job.lease.status is Status.RUNNING)
                draining = asyncio.ensure_future(gateway.drain(finish_ms=60_000))
                await asyncio.sleep(0.3)
                assert gateway.health().phase is Phase.DRAINING
                assert await draining
                assert gateway.health().phase is Phase.STOPPED
                found = find(store, job.id).job
                assert found.lease.status is Status.COMPLETED
                assert found.orphaned_at is None

    run(scenario)


def test_a_drain_that_times_out_leaves_the_lease_to_lapse(tmp_path: Path) -> None:
    """The terminal write cannot land: the instance is not deregistered, the job is orphaned in the
    end, and nothing of it runs on. (C67, F-22)"""

    async def scenario() -> None:
        with open_store(tmp_path) as real, open_store(tmp_path) as other:
            store = Faulty(real)
            gateway = Gateway(store, policy=policy())
            await gateway.start()
            job = await gateway.submit(sh("sleep 100"), provider="shell")
            await eventually(lambda: find(real, job.id).job.lease.status is Status.RUNNING)
            store.down = (c.Complete,)
            assert not await gateway.drain(timeout_ms=500)
            instances = [row.id for row in real.execute(c.ListInstances()).instances]
            assert instances == [gateway.identity.instance]
            async with Gateway(other, policy=policy()):
                await eventually(lambda: find(real, job.id).job.lease.status is Status.ORPHANED)

    run(scenario)


def test_a_process_that_nobody_may_kill_does_not_stop_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of one that has taken another user's rights: the drain gives up in its time, and whoever
    else runs on the loop goes on."""
    killpg = os.killpg

    def refused(group: int, number: int) -> None:
        raise PermissionError

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            gateway = Gateway(store, policy=policy())
            await gateway.start()
            job = await gateway.submit(sh("exec sleep 100"), provider="shell")
            await eventually(lambda: find(store, job.id).job.process is not None)
            process = find(store, job.id).job.process
            assert process is not None
            monkeypatch.setattr(os, "killpg", refused)
            began, turns = time.monotonic(), 0
            drained = asyncio.ensure_future(gateway.drain(timeout_ms=300))
            while not drained.done():
                turns += 1
                await asyncio.sleep(0.01)
            assert not drained.result()
            assert time.monotonic() - began < 20
            assert turns > 20
            killpg(process.pid, signal.SIGKILL)
            await eventually(lambda: not Path(f"/proc/{process.pid}").exists())

    run(scenario)


def test_calls_are_drained_too(tmp_path: Path) -> None:
    """A call is cancelled, and fails."""

    async def call() -> Answer:
        await asyncio.sleep(100)
        return Answer()

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            gateway = Gateway(store, policy=policy())
            await gateway.start()
            job = await gateway.submit(CallWork(call=call), provider="api")
            await eventually(lambda: find(store, job.id).job.lease.status is Status.RUNNING)
            assert all(await asyncio.gather(gateway.drain(), gateway.drain()))
            assert find(store, job.id).job.lease.status is Status.FAILED

    run(scenario)


def test_no_beat_is_sent_after_the_heart_has_stopped(tmp_path: Path) -> None:
    """Deregistering is the last word; a beat after it would register anew."""

    async def scenario() -> None:
        with open_store(tmp_path) as real:
            store = Faulty(real)
            async with Gateway(store, policy=policy()) as gateway:
                await (await gateway.submit(sh("true"), provider="shell")).wait()
            assert isinstance(store.sent[-1], c.Deregister)

    run(scenario)
