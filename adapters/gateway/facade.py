"""A gateway for programs without asyncio: its event loop runs in a thread, its calls block.

with SyncGateway(store) as gateway:
    job = gateway.submit(ProcessWork(argv=("echo", "hello")), provider="shell")
    print(gateway.wait(job.id).status)
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from attrs import frozen

from unswept.adapters.gateway.errors import DrainingError
from unswept.adapters.gateway.gateway import CancelVerdict, Gateway, Health
from unswept.adapters.gateway.readback import LOCAL, MAX_CHARS, Output, Snapshot
from unswept.adapters.gateway.work import Work
from unswept.core.commands import Store

R = TypeVar("R")

ENDED = "This gateway has been drained, and its event loop has ended"


@frozen
class Ticket:
    """A job that was admitted or joined."""

    id: str
    correlation_id: str | None
    deduped: bool


class SyncGateway:
    """Takes what `Gateway` takes; each call waits for its end. For any number of threads."""

    def __init__(self, store: Store, **options: Any) -> None:
        """Start the loop and the gateway; the same options as `Gateway`."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="unswept-loop", daemon=True
        )
        self._thread.start()
        self._lock = threading.Lock()
        self._ended = False
        """The loop takes nothing more; guarded by the lock."""
        self._draining = threading.Lock()
        """Held by whoever drains."""
        self._clean: bool | None = None
        """What the drain came to."""
        try:
            self._gateway = self._call(_started(store, options))
        except BaseException:
            self._close()
            raise

    def submit(self, work: Work, *, provider: str, **options: Any) -> Ticket:
        """As `Gateway.submit`."""
        job = self._call(self._gateway.submit(work, provider=provider, **options))
        return Ticket(job.id, job.correlation_id, job.deduped)

    def snapshot(self, job_id: str, principal: str = LOCAL) -> Snapshot:
        """As `Gateway.snapshot`."""
        return self._call(self._gateway.snapshot(job_id, principal))

    def output(self, job_id: str, principal: str = LOCAL, max_chars: int = MAX_CHARS) -> Output:
        """As `Gateway.output`."""
        return self._call(self._gateway.output(job_id, principal, max_chars))

    def wait(self, job_id: str, principal: str = LOCAL, timeout_s: float | None = None) -> Snapshot:
        """As `Gateway.wait`; `TimeoutError` if it takes longer."""

        async def bounded() -> Snapshot:
            async with asyncio.timeout(timeout_s):
                return await self._gateway.wait(job_id, principal)

        return self._call(bounded())

    def cancel(self, job_id: str, principal: str = LOCAL) -> CancelVerdict:
        """As `Gateway.cancel`."""
        return self._call(self._gateway.cancel(job_id, principal))

    def health(self) -> Health:
        """As `Gateway.health`; does not wait for the loop."""
        return self._gateway.health()

    def drain(self, *, finish_ms: int = 0, timeout_ms: int = 30_000) -> bool:
        """As `Gateway.drain`, and end the loop: whoever still waits for a job gets a
        `DrainingError`. A second call waits for the first, and finds nothing to do."""
        with self._draining:
            if self._clean is None:
                self._clean = self._call(
                    self._gateway.drain(finish_ms=finish_ms, timeout_ms=timeout_ms)
                )
                self._close()
            return self._clean

    def __enter__(self) -> SyncGateway:
        return self

    def __exit__(self, *exception: object) -> None:
        self.drain()

    def _call(self, coroutine: Coroutine[Any, Any, R]) -> R:
        with self._lock:
            if self._ended:
                coroutine.close()
                raise DrainingError(ENDED)
            asked = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return asked.result()
        except CancelledError:
            if self._ended:
                raise DrainingError(ENDED) from None
            raise

    def _close(self) -> None:
        with self._lock:
            self._ended = True  # from here on nothing is given to the loop
        asyncio.run_coroutine_threadsafe(_all_cancelled(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


async def _all_cancelled() -> None:
    """Whoever still waits for something on this loop would wait for ever."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def _started(store: Store, options: dict[str, Any]) -> Gateway:
    gateway = Gateway(store, **options)
    await gateway.start()
    return gateway
