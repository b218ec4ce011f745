"""The same request joins the job that is there, of one principal, also across instances."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.adapters.gateway.helpers import Faulty, eventually, open_store, policy, run, sh
from unswept.adapters.gateway import (
    AdmissionError,
    Answer,
    CallWork,
    Gateway,
    JobNotFoundError,
)
from unswept.core import commands as c
from unswept.core.lease import Status
from unswept.core.limiter import Limits


def test_the_same_request_joins_a_job_that_lives_or_has_completed(tmp_path: Path) -> None:
    """It runs once; whoever joins learns the first request's correlation id."""
    work = sh(f"echo x >> {tmp_path}/runs; sleep 0.3")

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            async with Gateway(store, policy=policy()) as gateway:
                first = await gateway.submit(work, provider="shell", correlation_id="the first")
                second = await gateway.submit(work, provider="shell")
                assert (second.id, second.deduped) == (first.id, True)
                assert second.correlation_id == "the first"
                assert (await second.wait()).status is Status.COMPLETED
                assert (await gateway.submit(work, provider="shell")).id == first.id
                assert gateway.health().running == 0
        assert (tmp_path / "runs").read_text() == "x\n"

    run(scenario)


def test_a_refresh_a_failure_and_another_request_run_anew(tmp_path: Path) -> None:
    """Failed jobs are not handed out; stdin, environment and folder make another request."""

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            async with Gateway(store, policy=policy()) as gateway:
                first = await gateway.submit(sh("exit 0"), provider="shell")
                await first.wait()
                others = [
                    await gateway.submit(sh("exit 0"), provider="shell", force_refresh=True),
                    await gateway.submit(sh("exit 0"), provider="other"),
                    await gateway.submit(sh("exit 0", stdin=b"x"), provider="shell"),
                    await gateway.submit(sh("exit 0", env={}), provider="shell"),
                    await gateway.submit(sh("exit 0", cwd="/"), provider="shell"),
                ]
                assert len({job.id for job in others} | {first.id}) == 6
                failing = await gateway.submit(sh("exit 1"), provider="shell")
                await failing.wait()
                again = await gateway.submit(sh("exit 1"), provider="shell")
                assert not again.deduped
                for job in (*others, again):
                    await job.wait()

    run(scenario)


def test_two_instances_in_a_race_run_the_request_once(tmp_path: Path) -> None:
    """The store decides, in one write. (W-20)"""
    work = sh(f"echo x >> {tmp_path}/runs; sleep 0.3")

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            async with (
                Gateway(store, policy=policy()) as one,
                Gateway(store, policy=policy()) as two,
            ):
                jobs = await asyncio.gather(
                    *(each.submit(work, provider="shell") for each in (one, two) * 4)
                )
                assert len({job.id for job in jobs}) == 1
                ends = await asyncio.gather(*(job.wait() for job in jobs))
                assert {end.status for end in ends} == {Status.COMPLETED}
                assert one.health().running == two.health().running == 0
        assert (tmp_path / "runs").read_text() == "x\n"

    run(scenario)


def test_principals_are_strangers_to_each_other(tmp_path: Path) -> None:
    """They neither join each other's jobs nor see, read or cancel them."""

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            async with Gateway(store, policy=policy()) as gateway:
                mine = await gateway.submit(sh("sleep 100"), provider="shell", principal="ann")
                other = await gateway.submit(sh("sleep 100"), provider="shell", principal="bob")
                assert mine.id != other.id
                for peek in (gateway.snapshot, gateway.output, gateway.wait, gateway.cancel):
                    with pytest.raises(JobNotFoundError):
                        await peek(mine.id, "bob")
                assert not (await mine.snapshot()).over

    run(scenario)


def test_calls_are_the_same_only_if_they_say_so(tmp_path: Path) -> None:
    """A coroutine does not show what it does."""
    calls: list[str] = []

    async def call() -> Answer:
        calls.append("call")
        return Answer(b"done", 200)

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            async with Gateway(store, policy=policy()) as gateway:
                for what in ({}, {}, {"model": "m"}, {"model": "m"}):
                    job = await gateway.submit(CallWork(call=call, what=what), provider="api")
                    assert (await job.wait()).body == b"done"
        assert len(calls) == 3

    run(scenario)


def test_a_job_that_runs_here_can_be_joined_without_a_slot(tmp_path: Path) -> None:
    """At capacity, or while the store is away, who asks for the same need not be refused."""
    limits = Limits(max_running=1, max_running_per_provider=1, max_queued=0)

    async def scenario() -> None:
        with open_store(tmp_path) as real:
            store = Faulty(real)
            async with Gateway(store, policy=policy(), limits=limits) as gateway:
                first = await gateway.submit(sh("sleep 100"), provider="shell")
                second = await gateway.submit(sh("sleep 100"), provider="shell")
                assert (second.id, second.deduped) == (first.id, True)
                store.down = (c.Heartbeat,)
                await eventually(lambda: not gateway.health().admitting)
                assert (await gateway.submit(sh("sleep 100"), provider="shell")).id == first.id
                with pytest.raises(AdmissionError):
                    await gateway.submit(sh("sleep 100"), provider="shell", principal="ann")
                with pytest.raises(AdmissionError):
                    await gateway.submit(sh("sleep 100"), provider="shell", force_refresh=True)
                store.down = ()

    run(scenario)
