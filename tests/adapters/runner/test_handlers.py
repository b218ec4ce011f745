"""What handlers are given, how they run, and what their ends come to."""

from __future__ import annotations

import asyncio
import functools
import os
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.gateway.helpers import Faulty, find, run, status
from tests.adapters.runner.helpers import body, ended, enqueue, error, open_store, runner, soon
from unswept.adapters.runner import Cause, Fail, Retries, RunnerJob
from unswept.core import commands as c
from unswept.core.errors import MisuseError
from unswept.core.lease import RequeueRule, Status
from unswept.core.values import Result, Stream


class Upper:
    """A handler that is an object."""

    async def __call__(self, job: RunnerJob) -> bytes:
        return job.payload.upper()


async def on_the_loop(job: RunnerJob) -> bytes:
    return job.payload.upper()


async def with_more(suffix: bytes, job: RunnerJob) -> bytes:
    return job.payload.upper() + suffix


def on_a_thread(job: RunnerJob) -> bytes:
    assert threading.current_thread() is not threading.main_thread()
    return job.payload.upper()


@pytest.mark.parametrize(
    "handle", [on_the_loop, on_a_thread, Upper(), functools.partial(with_more, b"")]
)
def test_a_handler_gets_the_job_and_its_bytes_are_the_result(tmp_path: Path, handle: Any) -> None:
    """Coroutine, function, object or partial: the job is completed with what it returned."""

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            enqueue(store, "a", "b", "c")
            async with runner(store, handle, concurrency=2) as mine:
                await ended(store, "a", "b", "c")
                assert mine.health().claimed == 3
            assert [body(store, job_id) for job_id in "abc"] == [b"A", b"B", b"C"]
            job = find(store, "a").job
            assert (job.lease.status, job.attempts) == (Status.COMPLETED, 1)
            assert store.execute(c.ListInstances()).instances == ()

    run(scenario)


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (None, Result()),
        (b"x", Result(body=b"x")),
        (Result(exit_code=3, body=b"x"), Result(exit_code=3, body=b"x")),
    ],
)
def test_what_a_handler_returns_is_kept(tmp_path: Path, returned: Any, expected: Result) -> None:
    """Nothing, bytes, or a whole result."""

    async def handle(job: RunnerJob) -> Any:
        return returned

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            enqueue(store, "a")
            async with runner(store, handle):
                await ended(store, "a")
            assert (status(store, "a"), find(store, "a").result) == (Status.COMPLETED, expected)

    run(scenario)


def test_what_a_handler_must_not_return_fails_the_job(tmp_path: Path) -> None:
    """It is no success, and the message says what was expected."""

    async def handle(job: RunnerJob) -> Any:
        return "text"

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            enqueue(store, "a")
            async with runner(store, handle, retries=Retries(max_attempts=1)):
                await ended(store, "a")
            assert status(store, "a") is Status.FAILED
            assert "must return bytes, a Result or None, got 'text'" in error(store, "a")

    run(scenario)


@pytest.mark.parametrize("kind", ["loop", "thread"])
def test_as_many_run_at_once_as_may(tmp_path: Path, kind: str) -> None:
    """Never more than `concurrency`, and all of that where there is work."""
    running, most = Counter[str](), [0]
    lock = threading.Lock()

    def enter(by: int) -> None:
        with lock:
            running["now"] += by
            most[0] = max(most[0], running["now"])

    async def on_loop(job: RunnerJob) -> None:
        enter(1)
        await asyncio.sleep(0.1)
        enter(-1)

    def on_thread(job: RunnerJob) -> None:
        enter(1)
        time.sleep(0.1)
        enter(-1)

    async def scenario() -> None:
        ids = [f"job-{n}" for n in range(12)]
        with open_store(tmp_path) as store:
            enqueue(store, *ids)
            handle = on_loop if kind == "loop" else on_thread
            async with runner(store, handle, concurrency=3) as mine:
                assert await mine.run(until_empty=True, signals=False)
            assert {status(store, job_id) for job_id in ids} == {Status.COMPLETED}
        assert most[0] == 3

    run(scenario)


def test_a_handler_that_fails_for_good_is_not_tried_again(tmp_path: Path) -> None:
    """`Fail` says so, whatever the policy, and what it carries is the result."""

    async def handle(job: RunnerJob) -> None:
        raise Fail("no such user", body=b"details", exit_code=4)

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            enqueue(store, "a")
            async with runner(store, handle):
                await ended(store, "a")
            found = find(store, "a")
            assert (found.job.lease.status, found.job.attempts) == (Status.FAILED, 1)
            assert found.result == Result(exit_code=4, error="no such user", body=b"details")

    run(scenario)


@pytest.mark.parametrize("kind", ["loop", "thread"])
def test_a_handler_that_takes_too_long_is_stopped(tmp_path: Path, kind: str) -> None:
    """On the loop it is cancelled; on a thread it is told, and waited for."""
    causes: list[Cause | None] = []

    async def on_loop(job: RunnerJob) -> None:
        try:
            await asyncio.sleep(600)
        finally:
            causes.append(job.aborted.cause)

    def on_thread(job: RunnerJob) -> bytes:
        assert job.aborted.wait(60)
        causes.append(job.aborted.cause)
        return b"too late to count"

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            enqueue(store, "a")
            handle = on_loop if kind == "loop" else on_thread
            retries = Retries(max_attempts=1)
            async with runner(store, handle, handler_timeout_ms=100, retries=retries):
                await ended(store, "a")
            assert status(store, "a") is Status.FAILED
            assert error(store, "a") == "Stopped after 100 ms"
        assert causes == [Cause.TIMEOUT]

    run(scenario)


@pytest.mark.parametrize("kind", ["loop", "thread"])
def test_output_is_stored_before_the_end(tmp_path: Path, kind: str) -> None:
    """Whoever sees the job ended sees all of its output, in order and under its epoch."""

    async def on_loop(job: RunnerJob) -> None:
        job.write(b"one ")
        await asyncio.sleep(0)
        job.write(b"two")
        job.write(b"oops", Stream.STDERR)

    def on_thread(job: RunnerJob) -> None:
        job.write(b"one ")
        job.write(b"two")
        job.write(b"oops", Stream.STDERR)

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            enqueue(store, "a")
            async with runner(store, on_loop if kind == "loop" else on_thread):
                await soon(lambda: status(store, "a") is Status.COMPLETED)
                page = store.execute(c.ReadOutput("a"))
            chunks = getattr(page, "chunks", ())
            said = {s: b"".join(k.data for k in chunks if k.stream is s) for s in Stream}
            assert said == {Stream.STDOUT: b"one two", Stream.STDERR: b"oops"}

    run(scenario)


def test_too_much_output_fails_the_job(tmp_path: Path) -> None:
    """It is no reason to try again, and the handler is stopped."""

    async def handle(job: RunnerJob) -> None:
        job.write(b"x" * 11)
        await asyncio.sleep(600)

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            enqueue(store, "a")
            async with runner(store, handle, max_output_bytes=10):
                await ended(store, "a")
            assert status(store, "a") is Status.FAILED
            assert "output" in error(store, "a")

    run(scenario)


def test_a_job_that_may_not_be_requeued_is_tried_once(tmp_path: Path) -> None:
    """Nobody may run it again, so that its failure is its end."""

    async def handle(job: RunnerJob) -> None:
        raise ValueError("broken")

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            enqueue(store, "a", requeue=RequeueRule.NEVER)
            async with runner(store, handle):
                await ended(store, "a")
            assert (status(store, "a"), error(store, "a")) == (Status.FAILED, "ValueError: broken")
            assert find(store, "a").job.attempts == 1

    run(scenario)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concurrency": 0}, "concurrency must be 1 to 10000, got 0"),
        ({"handler_timeout_ms": 0}, "handler_timeout_ms must be 1 to"),
        ({"max_output_bytes": 0}, "max_output_bytes must be 1 to"),
        ({"max_held": 0}, "max_held must be 1 to"),
        ({"labels": "gpu"}, "labels must be a collection of strings, got 'gpu'"),
        ({"partition": "\n"}, "partition must be printable"),
    ],
)
def test_what_cannot_work_is_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    """With the name, the value and the bound, before anything runs."""

    async def scenario() -> None:
        with open_store(tmp_path) as store, pytest.raises(MisuseError, match=message):
            runner(store, on_the_loop, **options)

    run(scenario)


def test_a_long_job_has_its_process_as_evidence(tmp_path: Path) -> None:
    """Recorded when the handler has run for a quarter of a heartbeat: before that a start would
    be one write more, and evidence of nothing that is needed yet."""

    async def scenario() -> None:
        over = asyncio.Event()

        async def handle(job: RunnerJob) -> None:
            if job.id == "long":
                await over.wait()

        with open_store(tmp_path) as store:
            line = Faulty(store)
            enqueue(store, "short", "long")
            async with runner(line, handle):
                await soon(lambda: find(store, "long").job.process is not None)
                process = find(store, "long").job.process
                assert process is not None
                assert process.pid == os.getpid()
                over.set()
                await ended(store, "short", "long")
            assert {each.job_id for each in line.sent if isinstance(each, c.Start)} == {"long"}

    run(scenario)
