"""Http jobs, that is coroutines: their status is kept apart from the exit code."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.gateway.helpers import eventually, open_store, policy, run
from unswept.adapters.gateway import Answer, CallWork, CancelVerdict, Gateway, Snapshot
from unswept.core.errors import MisuseError
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


def test_whatever_is_raised_is_a_failure(tmp_path: Path) -> None:
    """Also what is no `Exception`, and an error that cannot be printed: the job must not be left to
    lapse."""

    class Odd(BaseException):
        pass

    class MuteError(Exception):
        def __str__(self) -> str:
            raise ValueError

    async def odd() -> Answer:
        raise Odd("of its own kind")

    async def mute() -> Answer:
        raise MuteError

    found = outcome(tmp_path, odd)
    assert (found.status, found.error) == (Status.FAILED, "Odd: of its own kind")
    found = outcome(tmp_path, mute)
    assert (found.status, found.error) == (Status.FAILED, "MuteError")


def test_what_is_no_answer_is_a_failure(tmp_path: Path) -> None:
    """It says what came instead; a body that is no bytes is refused where it is made."""

    async def nothing() -> Any:
        return None

    async def text() -> Answer:
        return Answer("text")  # type: ignore[arg-type]

    found = outcome(tmp_path, nothing)
    assert found.status is Status.FAILED
    assert found.error == "The call must return an Answer, and returned None"
    found = outcome(tmp_path, text)
    assert found.error == "MisuseError: body must be bytes, got 'text'"


def test_a_call_that_json_cannot_describe_is_refused() -> None:
    """When it is made, with what is wrong."""

    async def call() -> Answer:
        return Answer()

    for what in ({1: "a", "b": 2}, {"a": {1, 2}}):
        with pytest.raises(MisuseError, match="what must be a mapping that JSON can say"):
            CallWork(call=call, what=what)  # type: ignore[arg-type]


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
