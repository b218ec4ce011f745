"""Http jobs, that is coroutines: their status is kept apart from the exit code."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.adapters.gateway.helpers import eventually, open_store, policy, run
from unswept.adapters.gateway import Answer, CallWork, CancelVerdict, Gateway, Snapshot
from unswept.core.lease import Status
from unswept.core.units import Ms


def outcome(
    folder: Path, call: Callable[[], Awaitable[Answer]], timeout_ms: Ms | None = None
) -> Snapshot:
    """How one call ends."""
    seen: list[Snapshot] = []

    async def scenario() -> None:
        with open_store(folder) as store:
            async with Gateway(store, policy=policy()) as gateway:
                job = await gateway.submit(
                    CallWork(call=call, wall_timeout_ms=timeout_ms), provider="api"
                )
                seen.append(await job.wait())

    run(scenario)
    return seen[0]


def test_an_answer_keeps_its_status_and_body(tmp_path: Path) -> None:
    """200 completes with exit code 0, 503 fails with 1; both keep what came back."""

    async def good() -> Answer:
        return Answer(b"body", 200)

    async def bad() -> Answer:
        return Answer(b"sorry", 503)

    found = outcome(tmp_path, good)
    assert (found.status, found.exit_code, found.http_status) == (Status.COMPLETED, 0, 200)
    assert found.body == b"body"
    found = outcome(tmp_path, bad)
    assert (found.status, found.exit_code, found.http_status) == (Status.FAILED, 1, 503)
    assert found.body == b"sorry"


def test_an_exception_is_a_failure_with_its_reason(tmp_path: Path) -> None:
    """Also one with characters that no store can keep."""

    async def call() -> Answer:
        raise ValueError("no \0 such \ud800 model")

    found = outcome(tmp_path, call)
    assert (found.status, found.exit_code, found.http_status) == (Status.FAILED, 1, None)
    assert found.error == "ValueError: no \ufffd such \ufffd model"


def test_a_call_that_cancels_itself_is_a_failure(tmp_path: Path) -> None:
    """It ends the job and nothing else."""

    async def call() -> Answer:
        raise asyncio.CancelledError

    assert outcome(tmp_path, call).status is Status.FAILED


def test_a_call_may_take_no_longer_than_its_wall_timeout(tmp_path: Path) -> None:
    """Then it is cancelled, and fails with 124."""
    cancelled: list[str] = []

    async def call() -> Answer:
        try:
            await asyncio.sleep(100)
        finally:
            cancelled.append("cancelled")
        return Answer()

    found = outcome(tmp_path, call, Ms(300))
    assert (found.status, found.exit_code) == (Status.FAILED, 124)
    assert cancelled == ["cancelled"]


def test_a_call_is_canceled_at_once_from_within(tmp_path: Path) -> None:
    """In-process, nobody waits for a heartbeat. (C101)"""

    async def call() -> Answer:
        await asyncio.sleep(100)
        return Answer()

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            slow = policy(
                heartbeat_interval_ms=600,
                lease_ttl_ms=3_000,
                http_grace_ms=3_000,
                confirm_after_ms=1_800,
            )
            async with Gateway(store, policy=slow) as gateway:
                job = await gateway.submit(CallWork(call=call), provider="api")

                async def running() -> bool:
                    return (await job.snapshot()).status is Status.RUNNING

                await eventually(running)
                assert await job.cancel() is CancelVerdict.STOPPING
                assert (await job.wait()).status is Status.CANCELED
                assert await job.cancel() is CancelVerdict.OVER

    run(scenario)
