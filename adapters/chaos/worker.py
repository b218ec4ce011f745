"""One gateway process of a chaos run: works without end, writes down what it is told, obeys.

Run as a program by `driver`. The first line on its input is its charge; each further one is an
order. When its input ends, the driver is gone, and it ends at once.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import asdict, frozen

from unswept.adapters.chaos.books import Notebook
from unswept.adapters.chaos.load import Task, tasks
from unswept.adapters.chaos.plan import POLICY
from unswept.adapters.chaos.records import Born, Drained, LoopStood, Stalled, Work
from unswept.adapters.chaos.witness import witnessed
from unswept.adapters.gateway import Gateway, GatewayError, drain_when_signaled
from unswept.adapters.gateway.clock import boot_ms
from unswept.adapters.sqlite import SqliteStore
from unswept.adapters.sqlite.opening import Durability
from unswept.adapters.urls import is_postgres
from unswept.core.errors import StoreError
from unswept.core.limiter import Limits
from unswept.core.units import MonoMs

if TYPE_CHECKING:
    from unswept.adapters.postgres import PostgresStore

FINISH_MS: Final = 500
"""How long a drain lets work finish."""
DRAIN_MS: Final = 10_000
"""How long it then has."""
_LIMITS: Final = Limits(max_running=12, max_running_per_provider=8, max_queued=8)
_PROVIDERS: Final = ("one", "two")
_PAUSE_MS: Final = (50, 250)
"""Between two jobs."""
_AGAIN_S: Final = 0.1
_LOOK_MS: Final = 25
_STALL_MS: Final = 100
"""Longer than this no thread should have to wait for the processor."""
_LOOP_STOOD_MS: Final = 300


@frozen
class Charge:
    """What one gateway is told first."""

    url: str
    schema: str | None
    book: str
    pipe: str
    seed: str


async def run(charge: Charge, orders: asyncio.StreamReader) -> None:
    """Until a signal, or the end of the orders."""
    book = Notebook(Path(charge.book))
    with await _opened(charge) as store:
        gateway = Gateway(witnessed(store, book), policy=POLICY, limits=_LIMITS)
        book.write(Born(boot_ms(), gateway.identity.instance))
        threading.Thread(target=_watch, args=(book,), daemon=True).start()
        await gateway.start()
        resting = asyncio.Event()
        chores = [
            asyncio.ensure_future(_watch_loop(book)),
            asyncio.ensure_future(_obey(orders, gateway, book, resting)),
            asyncio.ensure_future(_work(gateway, charge, book, resting)),
        ]
        clean = await drain_when_signaled(gateway, finish_ms=FINISH_MS, timeout_ms=DRAIN_MS)
        book.write(Drained(boot_ms(), clean))
        for chore in chores:
            chore.cancel()
        await asyncio.wait(chores)


async def _opened(charge: Charge) -> SqliteStore | PostgresStore:
    """The store, once it can be opened: a service would be started again and again."""
    while True:
        try:
            return _open(charge)
        except StoreError:
            await asyncio.sleep(_AGAIN_S)


def _open(charge: Charge) -> SqliteStore | PostgresStore:
    """The store, as patient as the policy. A run kills processes and no power, so that on SQLite
    nothing is lost by not waiting for the disk."""
    timeout_ms = POLICY.operation_timeout_ms
    if not is_postgres(charge.url):
        return SqliteStore(charge.url, durability=Durability.NORMAL, busy_timeout_ms=timeout_ms)
    from unswept.adapters.postgres import PostgresStore

    assert charge.schema is not None
    return PostgresStore(
        charge.url, schema=charge.schema, migrate=False, operation_timeout_ms=timeout_ms
    )


# What it does -----------------------------------------------------------------------------------


async def _work(gateway: Gateway, charge: Charge, book: Notebook, resting: asyncio.Event) -> None:
    draw = random.Random(charge.seed)
    jobs = tasks(draw, Path(charge.pipe))
    submits: set[asyncio.Task[None]] = set()
    while not resting.is_set():
        submit = asyncio.ensure_future(_submit(gateway, next(jobs), draw.choice(_PROVIDERS), book))
        submits.add(submit)
        submit.add_done_callback(submits.discard)
        await asyncio.sleep(draw.uniform(*_PAUSE_MS) / 1000)


async def _submit(gateway: Gateway, task: Task, provider: str, book: Notebook) -> None:
    try:
        job = await gateway.submit(task.work, provider=provider, force_refresh=True)
    except (GatewayError, StoreError):
        return  # nothing runs; there is more work where this came from
    if task.lasts_ms:
        book.write(Work(boot_ms(), job.id, task.lasts_ms))


async def _obey(
    orders: asyncio.StreamReader, gateway: Gateway, book: Notebook, resting: asyncio.Event
) -> None:
    while line := await orders.readline():
        order = json.loads(line)
        if order["do"] == "block":
            book.write(LoopStood(boot_ms()))
            time.sleep(order["ms"] / 1000)
        elif order["do"] == "rest":
            resting.set()
        else:
            health = gateway.health()
            tell(running=health.running, queued=health.queued, finishing=health.finishing)
    os._exit(0)  # the driver is gone: no drain, for there is nobody to wait for it


def tell(**what: Any) -> None:
    """Answer the driver."""
    print(json.dumps(what), flush=True)


# What it sees of itself -------------------------------------------------------------------------


def _watch(book: Notebook) -> None:
    """Notes when no thread of this process ran: its work cannot have gone on meanwhile."""
    last = boot_ms()
    while True:
        time.sleep(_LOOK_MS / 1000)
        now = boot_ms()
        if now - last > _STALL_MS:
            book.write(Stalled(now, last))
        last = now


async def _watch_loop(book: Notebook) -> None:
    """Notes when the event loop did not turn."""
    last: MonoMs = boot_ms()
    while True:
        await asyncio.sleep(_LOOK_MS / 1000)
        now = boot_ms()
        if now - last > _LOOP_STOOD_MS:
            book.write(LoopStood(last, now))
        last = now


# The process ------------------------------------------------------------------------------------


def end_with(parent: int) -> None:
    """Where the system can, be killed when the driver dies: a stopped process reads no orders."""
    if sys.platform == "linux":
        set_death_signal = 1  # PR_SET_PDEATHSIG of prctl(2)
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


async def main() -> None:
    """Read the charge, and do what it says."""
    orders = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(orders), sys.stdin
    )
    charge = Charge(**json.loads(await orders.readline()))
    await run(charge, orders)


def charge_line(charge: Charge) -> str:
    """The first line of the input."""
    return json.dumps(asdict(charge))


if __name__ == "__main__":
    end_with(int(sys.argv[1]))
    asyncio.run(main())
