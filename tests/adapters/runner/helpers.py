"""What the runner's tests share: jobs in the queue, a store clock that can be moved, patience."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.adapters.gateway.helpers import eventually, find, policy
from unswept.adapters.runner import Polling, Runner, RunnerJob
from unswept.adapters.sqlite import SqliteStore
from unswept.core import commands as c
from unswept.core.lease import RequeueRule, Status
from unswept.core.units import Ms, StoreMs
from unswept.core.values import Event, Request

POLLING = Polling(first_ms=Ms(20), max_ms=Ms(100), listening_ms=Ms(100))

Handle = Callable[[RunnerJob], Any]


class Clock:
    """The store's clock, which a test may move."""

    def __init__(self) -> None:
        self.offset_ms = 0

    def __call__(self) -> StoreMs:
        return StoreMs(time.time_ns() // 1_000_000 + self.offset_ms)


def open_store(folder: Path, clock: Clock | None = None) -> SqliteStore:
    return SqliteStore(folder / "jobs.db", durability="normal", clock=clock)


def enqueue(store: c.Store, *ids: str, **more: Any) -> None:
    """Jobs that may be requeued, unless it is said otherwise."""
    more.setdefault("requeue", RequeueRule.ALLOWED)
    for job_id in ids:
        store.execute(c.Enqueue(job_id, request=Request(job_id.encode()), **more))


def runner(store: c.Store, handle: Handle, **options: Any) -> Runner:
    options.setdefault("policy", policy())
    options.setdefault("polling", POLLING)
    return Runner(store, handle, **options)


async def ended(store: c.Store, *ids: str) -> None:
    """Wait until all of these are over."""
    over = {Status.COMPLETED, Status.FAILED, Status.CANCELED}
    for job_id in ids:
        await eventually(lambda job_id=job_id: find(store, job_id).job.lease.status in over)  # type: ignore[misc]


def events_of(store: c.Store, job_id: str) -> list[Event]:
    return [e for e in store.execute(c.ReadEvents()).events if e.job_id == job_id]


def body(store: c.Store, job_id: str) -> bytes:
    result = find(store, job_id).result
    assert result is not None
    return result.body


def error(store: c.Store, job_id: str) -> str:
    result = find(store, job_id).result
    assert result is not None
    assert result.error is not None
    return result.error


async def soon(what: Callable[[], bool | Awaitable[bool]]) -> None:
    await eventually(what)
