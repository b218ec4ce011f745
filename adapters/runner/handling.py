"""Runs a handler: a coroutine on the event loop, anything else on a thread of its own.

A handler that is stopped is told so, and waited for: while it runs, its job is nobody else's.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from typing import Any

from unswept.adapters.gateway.to_loop import tell
from unswept.adapters.runner.ending import Returned
from unswept.adapters.runner.job import Cause, Handler, RunnerJob
from unswept.adapters.runner.live_run import LiveRun
from unswept.core.units import Ms


def is_async(handle: Handler) -> bool:
    """Does it run on the event loop?"""
    call = getattr(handle, "__call__", None)  # noqa: B004 - an object may have an async one
    return inspect.iscoroutinefunction(handle) or inspect.iscoroutinefunction(call)


async def handled(handle: Handler, job: RunnerJob, run: LiveRun, timeout_ms: Ms | None) -> Returned:
    """What the handler returned in the end, by itself or because it was stopped."""
    timeout_s = None if timeout_ms is None else timeout_ms / 1000
    if is_async(handle):
        work = asyncio.ensure_future(_returned(handle, job))
        try:
            await first_of(work, run, timeout_s)
            if not work.done():
                run.abort(Cause.TIMEOUT)  # if nobody else has stopped it
                work.cancel()
                await asyncio.wait({work})
        finally:
            work.cancel()  # where this itself is cancelled
        if work.cancelled():
            return Returned(error=asyncio.CancelledError("the handler was cancelled"))
        return work.result()
    done = on_thread(handle, job, run)
    await first_of(done, run, timeout_s)
    if not done.done():
        run.abort(Cause.TIMEOUT)
    return await done


async def _returned(handle: Handler, job: RunnerJob) -> Returned:
    try:
        return Returned(await handle(job))
    except Exception as error:
        return Returned(error=error)


def on_thread(handle: Handler, job: RunnerJob, run: LiveRun) -> asyncio.Future[Returned]:
    """The handler on a thread that keeps no process from its end: one that is stuck cannot be
    stopped from outside."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Returned] = loop.create_future()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            returned = Returned(context.run(handle, job))
        except BaseException as error:  # nobody else would hear of it
            returned = Returned(error=error)
        tell(loop, _set, done, returned)

    run.thread = threading.Thread(target=work, name=f"unswept-{job.id}", daemon=True)
    run.thread.start()
    return done


def _set(done: asyncio.Future[Returned], returned: Returned) -> None:
    if not done.done():
        done.set_result(returned)


async def first_of(
    future: asyncio.Future[Any], run: LiveRun, timeout_s: float | None = None
) -> None:
    """Wait for it until the run is stopped; it is not cancelled, only not waited for any longer."""
    if not future.done():
        await asyncio.wait(
            {future, run.interrupted}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
        )
