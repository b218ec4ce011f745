"""What the gateway runtime costs, as a ratio to the same processes spawned with asyncio alone.

    python -m pytest tests/benchmarks/test_gateway.py --benchmark-only -n 0 -s

A ratio of 1 is as fast as no gateway at all. Both sides run the same command 1 000 times, at most
32 at once (the gateway's default limits), each in a session of its own with pipes for input, output
and errors, and are done with it when its output was read to the end and its exit code is known. All
jobs are there from the beginning, and each side takes them as it can: the bare side 32 at a time,
which is all that it knows of; the gateway as many as have a slot or a place in its queue.

The bare side keeps nothing. The gateway has stored, for each job, its request before its process is
there, its start with the process before that gets its input, and its end before it says so; and it
beats for what runs and waits.
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Final

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from tests.benchmarks.turns import taking_turns
from unswept.adapters.gateway import Gateway, ProcessWork
from unswept.adapters.sqlite import SqliteStore
from unswept.core.lease import Status
from unswept.core.limiter import Limits

JOBS: Final = 1_000
COMMAND: Final = ("/bin/true",)
LIMITS: Final = Limits()
PROVIDERS: Final = LIMITS.max_running // LIMITS.max_running_per_provider


async def bare() -> None:
    """As a gateway without leases would do it."""
    slots = asyncio.Semaphore(LIMITS.max_running)

    async def job() -> None:
        async with slots:
            process = await asyncio.create_subprocess_exec(
                *COMMAND, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True
            )
            stdout, stderr = await process.communicate(b"")
            assert (process.returncode, stdout, stderr) == (0, b"", b"")

    await asyncio.gather(*(job() for _ in range(JOBS)))


async def through(gateway: Gateway) -> None:
    """As a gateway's callers do it: submit, and wait for the end."""
    places = asyncio.Semaphore(LIMITS.max_running + LIMITS.max_queued)
    work = ProcessWork(argv=COMMAND, stdin=b"")

    async def job(number: int) -> None:
        async with places:
            submitted = await gateway.submit(
                work, provider=f"provider-{number % PROVIDERS}", force_refresh=True
            )
            ended = await submitted.wait()
            assert (ended.status, ended.exit_code) == (Status.COMPLETED, 0)

    await asyncio.gather(*(job(number) for number in range(JOBS)))


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_a_thousand_trivial_jobs(
    benchmark: BenchmarkFixture, tmp_path: Path, durability: str
) -> None:
    """Against the bare processes, with commits that survive a power cut and without."""
    with (
        asyncio.Runner() as runner,
        SqliteStore(tmp_path / "jobs.db", durability=durability) as store,
    ):

        async def opened() -> Gateway:
            return await Gateway(store).__aenter__()

        gateway = runner.run(opened())
        ratio = taking_turns(
            benchmark,
            lambda: runner.run(bare()),
            lambda: runner.run(through(gateway)),
            rounds=3,
        )
        runner.run(gateway.drain())
    assert ratio >= 0.5  # aimed at: 0.7
