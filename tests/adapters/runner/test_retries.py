"""When a job that failed is tried again: by policy, by the handler's word, by the store's clock."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.adapters.gateway.helpers import find, run, status
from tests.adapters.runner.helpers import (
    Clock,
    body,
    ended,
    enqueue,
    error,
    events_of,
    open_store,
    runner,
    soon,
)
from unswept.adapters.runner import Retries, Retry, RunnerJob
from unswept.core.errors import MisuseError
from unswept.core.lease import Kind, Status
from unswept.core.units import Ms


def test_a_job_that_fails_is_tried_again_until_it_succeeds(tmp_path: Path) -> None:
    """Each attempt is a claim of its own, not before its pause, on the store's clock: one that is
    days ahead of this host's moves nothing."""
    clock = Clock()
    clock.offset_ms = 3 * 24 * 3_600_000
    begun: list[int] = []

    async def handle(job: RunnerJob) -> bytes:
        begun.append(job.attempts)
        if job.attempts < 3:
            raise OSError("not yet")
        return b"at last"

    async def scenario() -> None:
        retries = Retries(max_attempts=3, first_pause_ms=Ms(300), factor=2.0)
        with open_store(tmp_path, clock) as store:
            enqueue(store, "a")
            began = time.monotonic()
            async with runner(store, handle, retries=retries):
                await ended(store, "a")
            assert time.monotonic() - began < 60
            assert (begun, body(store, "a")) == ([1, 2, 3], b"at last")
            events = events_of(store, "a")
            released = [e.at for e in events if e.kind is Kind.RELEASE]
            claimed = [e.at for e in events if e.kind is Kind.CLAIM]
            # A round trip may pass between the stamp that a pause is reckoned from and the release.
            assert claimed[1] - released[0] > 200
            assert claimed[2] - released[1] > 500

    run(scenario)


def test_the_last_attempt_fails_the_job(tmp_path: Path) -> None:
    """With its own error."""

    async def handle(job: RunnerJob) -> None:
        raise OSError(f"attempt {job.attempts}")

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            enqueue(store, "a")
            retries = Retries(max_attempts=2, first_pause_ms=Ms(0))
            async with runner(store, handle, retries=retries):
                await ended(store, "a")
            assert (status(store, "a"), error(store, "a")) == (Status.FAILED, "OSError: attempt 2")

    run(scenario)


def test_a_handler_may_name_the_pause(tmp_path: Path) -> None:
    """`Retry` says how long; how often is still the policy's."""

    async def handle(job: RunnerJob) -> None:
        raise Retry(after_ms=0, reason="the service is busy")

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            enqueue(store, "a")
            retries = Retries(max_attempts=4, first_pause_ms=Ms(60_000))
            async with runner(store, handle, retries=retries):
                await ended(store, "a")
            assert (find(store, "a").job.attempts, error(store, "a")) == (4, "the service is busy")

    run(scenario)


def test_a_cancel_that_comes_meanwhile_ends_the_job(tmp_path: Path) -> None:
    """Given back under a pending cancel it is canceled, and tried no more. (L7)"""
    from unswept.core import commands as c

    async def scenario() -> None:
        with open_store(tmp_path) as store:

            async def handle(job: RunnerJob) -> None:
                store.execute(c.RequestCancel("a"))
                raise OSError("broken")

            enqueue(store, "a")
            async with runner(store, handle):
                await soon(lambda: status(store, "a") is Status.CANCELED)
            assert find(store, "a").job.attempts == 1

    run(scenario)


def test_pauses_grow_up_to_a_bound() -> None:
    """And the last attempt has none."""
    retries = Retries(max_attempts=6, first_pause_ms=Ms(100), factor=3.0, max_pause_ms=Ms(1_000))
    assert [retries.pause_ms(n) for n in range(1, 8)] == [100, 300, 900, 1_000, 1_000, None, None]
    assert Retries(max_attempts=10**6).pause_ms(10**5) == 300_000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_attempts": 0}, "max_attempts must be 1 to"),
        ({"first_pause_ms": -1}, "first_pause_ms must be 0 to"),
        ({"max_pause_ms": True}, "max_pause_ms must be a whole number"),
        ({"factor": 0.5}, "factor must be 1 to 1000, got 0.5"),
        ({"factor": float("nan")}, "factor must be 1 to 1000, got nan"),
    ],
)
def test_a_policy_that_cannot_work_is_refused(change: dict[str, int], message: str) -> None:
    """With the name, the value and the bound."""
    with pytest.raises(MisuseError, match=message):
        Retries(**change)  # type: ignore[arg-type]
