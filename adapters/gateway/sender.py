"""Sends commands to the store again and again until there is an answer.

Every command may be repeated after an unknown outcome, so a failure is only a reason to wait. What
the heart forbids now is not sent now; that is tested in the thread that sends, right before. (L10)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from unswept.adapters.gateway.errors import DrainingError, GatewayError
from unswept.adapters.gateway.lane import Call, Lane, NotNowError, Sent
from unswept.adapters.gateway.waiting import first_of
from unswept.core.commands import Command, Store
from unswept.core.errors import StoreError
from unswept.core.heart import Act
from unswept.core.policy import LeasePolicy

R = TypeVar("R")

log: Final = logging.getLogger(__name__)

FIRST_PAUSE_MS: Final = 100
"""The pause after the first failure; each one after that is twice as long, up to the policy's."""
ASKING_THREADS: Final = 4


class NotAnsweredError(GatewayError):
    """A command was given up without an answer; what it did, if it was sent, is unknown."""


class StoppedError(GatewayError):
    """Somebody did not want the answer any more; what the command did, if it was sent, is
    unknown."""


class Sender:
    """Commands of one instance, but for those of its pulse."""

    def __init__(self, store: Store, policy: LeasePolicy, may: Callable[[Act], bool]) -> None:
        """Of the running loop; `may` says what the heart allows."""
        self._store = store
        self._policy = policy
        self._lane = Lane(store, may)
        # Stores have connections for reads, so that these need not wait for a writer that waits.
        self._asks = ThreadPoolExecutor(ASKING_THREADS, thread_name_prefix="unswept-ask")
        self._closed = False

    async def ask(self, question: Callable[[Store], R]) -> R:
        """Ask once, whatever the phase: for reads, which may fail as the store does."""
        self._check_open()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._asks, question, self._store)

    async def send(
        self,
        command: Command[R],
        *,
        act: Act | None = None,
        tries: int | None = None,
        until: Callable[[], bool] = lambda: False,
        on_reply: Callable[[Sent[R]], None] | None = None,
        unless: asyncio.Future[None] | None = None,
    ) -> Sent[R]:
        """Send until it is answered; `NotAnsweredError` after that many tries, or once `until`;
        `StoppedError` at once when `unless` is done.

        `on_reply` is called by the thread that got the answer, before the loop knows of it.
        """
        call = Call(command, act, on_reply)
        pause_ms = min(FIRST_PAUSE_MS, self._policy.retry_ms)
        cause: Exception | None = None
        warned = False
        while tries != 0 and not until():
            self._check_open()
            try:
                return await _unless(unless, self._lane.post(call))
            except NotNowError:
                cause = cause or NotAnsweredError("this instance may not send it now")
            except StoreError as error:
                cause = error
                if not warned and pause_ms >= self._policy.retry_ms:
                    warned = True
                    log.warning(
                        "%s is still not stored, and is tried again: %s", _named(command), error
                    )
            tries = None if tries is None else tries - 1
            if tries != 0:
                await self._pause(pause_ms, unless)
                pause_ms = min(2 * pause_ms, self._policy.retry_ms)
        name = type(command).__name__
        raise NotAnsweredError(f"{name} was given up: {cause or 'too late'}") from cause

    async def _pause(self, pause_ms: int, unless: asyncio.Future[None] | None) -> None:
        if unless is None:
            await asyncio.sleep(pause_ms / 1000)
            return
        await asyncio.wait({unless}, timeout=pause_ms / 1000)
        if unless.done():
            raise StoppedError("stopped between two tries")

    async def close(self) -> None:
        """Send nothing more; returns when what is on its way has been answered."""
        self._closed = True
        await self._lane.close()
        await asyncio.to_thread(self._asks.shutdown, wait=True, cancel_futures=True)

    def _check_open(self) -> None:
        if self._closed:
            raise DrainingError("This instance has ended and asks its store nothing more")


def _named(command: Command[Any]) -> str:
    job_id = getattr(command, "job_id", None)
    name = type(command).__name__
    return name if job_id is None else f"{name} of {job_id}"


async def _unless(stopped: asyncio.Future[None] | None, answer: asyncio.Future[R]) -> R:
    """The answer, unless that is stopped first; then it is taken back, if it is not under way."""
    if stopped is None:
        return await answer
    try:
        await first_of(answer, stopped)
    finally:
        if not answer.done():
            answer.cancel()
    if answer.cancelled():
        raise StoppedError("stopped before the store answered")
    return answer.result()
