"""What is told of a job: each fact once, also when a job that was told dead comes to its end."""

from __future__ import annotations

from pathlib import Path

from tests.adapters.gateway.helpers import Faulty, eventually, find, open_store, policy, run, sh
from unswept.adapters.gateway import Fact, Gateway
from unswept.core import commands as c
from unswept.core.lease import Kind, Status


class Recorder:
    """A flight recorder."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []

    def observe(self, fact: Fact) -> None:
        self.facts.append(fact)

    def kinds(self, job_id: str) -> list[Kind]:
        return [fact.kind for fact in self.facts if fact.job_id == job_id]


class Broken:
    """One that fails."""

    def observe(self, fact: Fact) -> None:
        raise RuntimeError("the recorder's disk is full")


def test_a_start_and_an_end_are_told_once_each(tmp_path: Path) -> None:
    """With the correlation id and the result, also where the answers of the store were lost."""

    async def scenario() -> None:
        recorder = Recorder()
        with open_store(tmp_path) as real:
            store = Faulty(real)
            async with Gateway(store, policy=policy(), observer=recorder) as gateway:
                store.lossy = (c.Complete,)
                job = await gateway.submit(sh("exit 2"), provider="shell", correlation_id="mine")
                await eventually(lambda: store.count(c.Complete) > 1)
                store.lossy = ()
                await eventually(lambda: gateway.health().held == 0)
                assert recorder.kinds(job.id) == [Kind.START, Kind.COMPLETE]
                start, end = recorder.facts
                assert (start.status, start.correlation_id) == (Status.RUNNING, "mine")
                assert (end.status, end.correlation_id) == (Status.FAILED, "mine")
                assert end.result is not None
                assert end.result.exit_code == 2

    run(scenario)


def test_a_sweep_is_told_by_the_sweeper_and_corrected_by_the_owner(tmp_path: Path) -> None:
    """One recorder for both sees orphaned, then healed. (W-33)"""

    async def scenario() -> None:
        recorder = Recorder()
        with open_store(tmp_path) as real, open_store(tmp_path) as other:
            store = Faulty(real)
            async with (
                Gateway(store, policy=policy(), observer=recorder) as gateway,
                Gateway(other, policy=policy(), observer=recorder),
            ):
                job = await gateway.submit(sh("sleep 7"), provider="shell")
                await eventually(lambda: find(real, job.id).job.lease.status is Status.RUNNING)
                store.down = (c.Heartbeat,)
                await eventually(lambda: find(real, job.id).job.orphaned_at is not None)
                store.down = ()
                assert (await job.wait()).status is Status.COMPLETED
                assert recorder.kinds(job.id) == [Kind.START, Kind.ORPHAN, Kind.HEAL]

    run(scenario)


def test_an_observer_that_fails_harms_no_job(tmp_path: Path) -> None:
    """Its error is logged."""

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            async with Gateway(store, policy=policy(), observer=Broken()) as gateway:
                job = await gateway.submit(sh("exit 0"), provider="shell")
                assert (await job.wait()).status is Status.COMPLETED

    run(scenario)
