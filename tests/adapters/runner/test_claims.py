"""How work is taken: what, how much, under which numbers, and what a lost answer costs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

from tests.adapters.gateway.helpers import Faulty, find, policy, run, status
from tests.adapters.runner.helpers import (
    Clock,
    Handle,
    body,
    ended,
    enqueue,
    open_store,
    runner,
    soon,
)
from unswept.adapters.runner import RunnerJob
from unswept.core import commands as c
from unswept.core.heart import Phase
from unswept.core.lease import Status


async def upper(job: RunnerJob) -> bytes:
    return job.payload.upper()


class Gate:
    """A handler that runs until the test lets it."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.begun: list[str] = []

    async def __call__(self, job: RunnerJob) -> bytes:
        self.begun.append(f"{job.id}/{job.epoch}")
        await self.open.wait()
        return job.payload


def claims(line: Faulty) -> list[c.Claim]:
    return [command for command in line.sent if isinstance(command, c.Claim)]


def test_only_what_fits_is_taken(tmp_path: Path) -> None:
    """The labels that the job requires are offered, and the partition is the runner's."""

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            enqueue(store, "plain")
            enqueue(store, "gpu", labels=("gpu",))
            enqueue(store, "tpu", labels=("tpu",))
            enqueue(store, "elsewhere", partition="other")
            async with runner(store, upper, labels=("gpu", "cpu")) as mine:
                await mine.run(until_empty=True, signals=False)
            assert [status(store, each) for each in ("plain", "gpu", "tpu", "elsewhere")] == [
                Status.COMPLETED,
                Status.COMPLETED,
                Status.QUEUED,
                Status.QUEUED,
            ]

    run(scenario)


def test_a_claim_asks_for_free_slots_only(tmp_path: Path) -> None:
    """Its numbers grow, and what runs is never more than the slots."""

    async def scenario() -> None:
        gate = Gate()
        with open_store(tmp_path) as store:
            line = Faulty(store)
            enqueue(store, *(f"job-{n}" for n in range(8)))
            async with runner(line, gate, concurrency=5) as mine:
                await soon(lambda: len(gate.begun) == 5)
                assert mine.health().held == mine.health().running == 5
                gate.open.set()
                await mine.run(until_empty=True, signals=False)
            sent = claims(line)
            assert sent[0].limit == 5
            numbers = [claim.claim_no for claim in sent]
            assert numbers == sorted(set(numbers))
            assert {status(store, f"job-{n}") for n in range(8)} == {Status.COMPLETED}

    run(scenario)


def test_a_claim_whose_answer_is_lost_leaks_no_job(tmp_path: Path) -> None:
    """It is asked again under its number, and gets what it took: each job runs once, epoch 1."""

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            line = Faulty(store)
            line.lossy = (c.Claim,)
            enqueue(store, "a", "b", "c")
            async with runner(line, upper, concurrency=2) as mine:
                await soon(lambda: line.count(c.Claim) >= 3)
                assert len({claim.claim_no for claim in claims(line)}) == 1
                line.lossy = ()
                await mine.run(until_empty=True, signals=False)
            for job_id in "abc":
                job = find(store, job_id).job
                assert (job.lease.status, job.lease.epoch) == (Status.COMPLETED, 1)

    run(scenario)


def test_a_lost_answer_counts_from_its_first_sending(tmp_path: Path) -> None:
    """The store stamped then; so a job that is heard of past its local deadline does not begin, and
    goes back to the queue. (L11)"""

    async def scenario() -> None:
        gate = Gate()
        with open_store(tmp_path) as store:
            line = Faulty(store)
            line.lossy = (c.Claim,)
            enqueue(store, "a")
            async with runner(line, gate, policy=policy(first_beat_ttl_ms=1_000)):
                await soon(lambda: status(store, "a") is Status.RUNNING)
                await asyncio.sleep(1.5)
                line.down = (c.Claim,)
                line.lossy = ()
                assert gate.begun == []
                line.down = ()
                # The next one to have it is a claim of its own, under the next epoch.
                await soon(lambda: bool(gate.begun))
                gate.open.set()
                await ended(store, "a")
            assert gate.begun[0] != "a/1"

    run(scenario)


def test_a_runner_that_drains_gives_back_what_its_lost_claim_took(tmp_path: Path) -> None:
    """It makes its number known first, so that the repetition takes nothing new."""

    async def scenario() -> None:
        gate = Gate()
        with open_store(tmp_path) as store:
            line = Faulty(store)
            line.lossy = (c.Claim,)
            enqueue(store, "a")
            mine = runner(line, gate)
            await mine.start()
            await soon(lambda: status(store, "a") is Status.RUNNING)
            draining = asyncio.ensure_future(mine.drain())
            await soon(lambda: line.sent[-1] == line.sent[-1] and line.count(c.Register) == 2)
            enqueue(store, "b")
            line.lossy = ()
            assert await draining
            assert gate.begun == []
            assert [status(store, each) for each in "ab"] == [Status.QUEUED, Status.QUEUED]
            assert find(store, "b").job.attempts == 0
            assert store.execute(c.ListInstances()).instances == ()

    run(scenario)


def test_a_claim_that_never_comes_through_is_no_reason_to_stay(tmp_path: Path) -> None:
    """A drain gives it up at its end; the lease of what it took, if anything, lapses."""

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            line = Faulty(store)
            line.down = (c.Claim,)
            mine = runner(line, upper)
            await mine.start()
            await soon(lambda: line.count(c.Claim) >= 2)
            assert not await mine.drain(timeout_ms=300)

    run(scenario)


def test_a_budget_that_is_spent_is_waited_for(tmp_path: Path) -> None:
    """The store refuses, whatever the concurrency; the rest is taken when something has ended."""

    async def scenario() -> None:
        gate = Gate()
        with open_store(tmp_path) as store:
            enqueue(store, "a", "b", "c")
            async with runner(store, gate, concurrency=4, max_held=2) as mine:
                await soon(lambda: len(gate.begun) == 2)
                await asyncio.sleep(0.5)
                assert mine.health().held == 2
                gate.open.set()
                await ended(store, "a", "b", "c")

    run(scenario)


def test_a_quiesced_runner_claims_and_starts_nothing(tmp_path: Path) -> None:
    """What runs, runs on; when the beats are good again, so do the claims. (L10)"""

    async def scenario() -> None:
        gate = Gate()
        with open_store(tmp_path) as store:
            line = Faulty(store)
            enqueue(store, "a")
            # The local deadline is far away, so that the heart alone decides.
            steady = policy(lease_ttl_ms=60_000, http_grace_ms=60_000, first_beat_ttl_ms=60_000)
            async with runner(line, gate, concurrency=2, policy=steady) as mine:
                await soon(lambda: gate.begun == ["a/1"])
                line.down = (c.Heartbeat, c.Register)
                await soon(lambda: mine.health().phase is Phase.QUIESCED)
                assert not mine.health().claiming
                await asyncio.sleep(0.2)  # a claim that was on its way has arrived
                enqueue(store, "b")
                sent = line.count(c.Claim)
                await asyncio.sleep(0.5)
                assert line.count(c.Claim) == sent
                assert status(store, "b") is Status.QUEUED
                line.down = ()
                await soon(lambda: "b/1" in gate.begun)
                gate.open.set()
                await ended(store, "a", "b")
            registered = [each for each in line.sent if isinstance(each, c.Register)]
            assert registered[0].claim_no == 0
            assert registered[-1].claim_no > 0  # a claim that comes late takes nothing
            assert {each.role for each in registered} == {"runner"}

    run(scenario)


def test_a_forgotten_runner_registers_anew(tmp_path: Path) -> None:
    """Its claims are refused until then, and take nothing."""

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            async with runner(store, upper) as mine:
                await soon(lambda: mine.health().claiming)
                store.execute(c.Deregister(mine.identity.instance))
                enqueue(store, "a")
                await ended(store, "a")
            assert body(store, "a") == b"A"

    run(scenario)


def test_a_job_that_is_claimed_again_by_the_same_runner_is_held(tmp_path: Path) -> None:
    """The old handler is stopped by that, and its end must not take the new hold with it."""
    clock = Clock()

    async def scenario() -> None:
        with open_store(tmp_path, clock) as store:
            enqueue(store, "a")
            stuck, gate = asyncio.Event(), Gate()

            async def handle(job: RunnerJob) -> bytes:
                if job.epoch > 1:
                    return await gate(job)
                try:
                    await asyncio.sleep(600)
                except asyncio.CancelledError:
                    await stuck.wait()  # does not heed it at once
                return b"old"

            async with runner(store, cast(Handle, handle), concurrency=2) as mine:
                await soon(lambda: status(store, "a") is Status.RUNNING)
                store.execute(c.Release("a", mine.identity.instance, 1))
                await soon(lambda: bool(gate.begun))
                epoch = find(store, "a").job.lease.epoch
                assert mine.health().running == 2
                stuck.set()
                await soon(lambda: mine.health().running == 1)
                assert mine.health().held == 1
                beats = find(store, "a").job.lease.beats
                await soon(lambda: find(store, "a").job.lease.beats > beats + 1)
                gate.open.set()
                await ended(store, "a")
            assert find(store, "a").job.lease.epoch == epoch
            assert body(store, "a") == b"a"

    run(scenario)
