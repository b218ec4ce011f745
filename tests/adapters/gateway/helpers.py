"""What the gateway's tests share: a short policy, a store that fails when told to, and patience."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from unswept.adapters.gateway import ProcessWork
from unswept.adapters.sqlite import SqliteStore
from unswept.core import commands as c
from unswept.core.errors import StoreUnavailableError
from unswept.core.lease import Status
from unswept.core.policy import Breaker, LeasePolicy
from unswept.core.replies import Found

R = TypeVar("R")

PATIENCE_S = 60.0
"""How long a condition may take on a machine that has much else to do."""


def policy(**changes: int | Breaker) -> LeasePolicy:
    """Beats twice a second, and takes its time for each beat: the machine may have much else to
    do. A dead owner's job is orphaned some four seconds later."""
    values: dict[str, Any] = {
        "heartbeat_interval_ms": 500,
        "operation_timeout_ms": 450,
        "lease_ttl_ms": 2_000,
        "http_grace_ms": 2_000,
        "confirm_after_ms": 1_500,
        "sweep_interval_ms": 200,
        **changes,
    }
    return LeasePolicy(**values)


def open_store(folder: Path) -> SqliteStore:
    """The store under test. It need not survive a power cut."""
    return SqliteStore(folder / "jobs.db", durability="normal")


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a test's coroutine on a loop of its own, which it must not outlast."""

    async def bounded() -> None:
        async with asyncio.timeout(2 * PATIENCE_S):
            await test()

    asyncio.run(bounded())


async def eventually(what: Callable[[], bool | Awaitable[bool]]) -> None:
    """Wait until it is so."""
    give_up_at = time.monotonic() + PATIENCE_S
    while True:
        found = what()
        if found if isinstance(found, bool) else await found:
            return
        assert time.monotonic() < give_up_at, "it did not come to pass"
        await asyncio.sleep(0.02)


def sh(script: str, **more: Any) -> ProcessWork:
    """A shell script as work."""
    return ProcessWork(argv=("sh", "-c", script), **more)


def find(store: c.Store, job_id: str) -> Found:
    """The job's row, which must be there."""
    found = store.execute(c.Find(job_id))
    assert isinstance(found, Found), found
    return found


def status(store: c.Store, job_id: str) -> Status | None:
    """The job's status; None while it has no row."""
    found = store.execute(c.Find(job_id))
    return found.job.lease.status if isinstance(found, Found) else None


class Faulty:
    """The real store behind a line that can be cut, for all commands or for some kinds."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.down: tuple[type, ...] = ()
        """Commands of these kinds do not reach the store."""
        self.lossy: tuple[type, ...] = ()
        """Commands of these kinds reach it, and the answer is lost."""
        self.sent: list[c.Command[Any]] = []
        self._lock = threading.Lock()

    def execute(self, command: c.Command[R]) -> R:
        with self._lock:
            self.sent.append(command)
        if isinstance(command, self.down):
            raise StoreUnavailableError(f"{type(command).__name__} cannot reach the store")
        reply = self.store.execute(command)
        if isinstance(command, self.lossy):
            raise StoreUnavailableError(f"the answer to {type(command).__name__} is lost")
        return reply

    def count(self, kind: type) -> int:
        with self._lock:
            return sum(isinstance(command, kind) for command in self.sent)


def environment() -> dict[str, str]:
    """For another Python that imports what this one does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def line_of(process: subprocess.Popen[str]) -> str:
    """What it prints next; one that prints nothing more is killed, so that no test waits for
    ever."""
    assert process.stdout is not None
    watch = threading.Timer(PATIENCE_S, process.kill)
    watch.start()
    try:
        return process.stdout.readline().strip()
    finally:
        watch.cancel()


def stand_still(process: subprocess.Popen[str], store: c.Store) -> None:
    """SIGSTOP, outside of a transaction: who stands still in one keeps a SQLite file from all
    others, and what a lease allows cannot be seen."""
    for _ in range(20):
        process.send_signal(signal.SIGSTOP)
        try:
            store.execute(c.Deregister("nobody"))
        except StoreUnavailableError:
            process.send_signal(signal.SIGCONT)
        else:
            return
    raise AssertionError("it was in a transaction twenty times in a row")
