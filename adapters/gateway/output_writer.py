"""Brings a run's output to the store while it runs: one chunk after the other, never two at once.

Chunks are numbered and fenced by epoch, so that a repeated one is stored once and a late one cannot
overwrite anything.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from unswept.adapters.gateway.capture import MAX_CHUNK_BYTES, Capture
from unswept.adapters.gateway.sender import NotAnsweredError, Sender
from unswept.core.commands import Hold, Output
from unswept.core.replies import Refused
from unswept.core.units import Ms
from unswept.core.values import Chunk, Stream

FLUSH_MS: Final = 1_000
"""How long output waits for more of it."""

log: Final = logging.getLogger(__name__)


class OutputWriter:
    """The output of one run, from the pipes to the store."""

    def __init__(
        self,
        sender: Sender,
        owner: str,
        hold: Hold,
        late_output_ms: Ms,
        capture: Capture,
        until: Callable[[], bool],
    ) -> None:
        """Once `until`, what is left is given up."""
        self._sender = sender
        self._owner = owner
        self._hold = hold
        self._late_output_ms = late_output_ms
        self._capture = capture
        self._until = until
        self._writing = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._flushes: set[asyncio.Task[None]] = set()
        self._over = False
        self.last_at = 0.0
        """When the process last wrote something, on the loop's clock."""
        self.stdout_begun = False
        """There was something on its standard output."""

    def add(self, stream: Stream, data: bytes) -> None:
        """Some output has arrived."""
        loop = asyncio.get_running_loop()
        self.last_at = loop.time()
        self.stdout_begun = self.stdout_begun or stream is Stream.STDOUT
        self._capture.add(stream, data)
        if self._capture.waiting_bytes >= MAX_CHUNK_BYTES:
            self._flush_now()
        elif self._timer is None:
            self._timer = loop.call_later(FLUSH_MS / 1000, self._flush_now)

    def _flush_now(self) -> None:
        self._stop_timer()
        if not self._writing.locked():
            flush = asyncio.ensure_future(self.flush(last=False))
            self._flushes.add(flush)  # the loop itself keeps no task alive
            flush.add_done_callback(self._flushes.discard)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def flush(self, *, last: bool) -> None:
        """Write what has arrived; returns when the store has answered for all of it."""
        async with self._writing:
            # What arrives while this is written is written too, or it would wait for more.
            while chunks := self._capture.take(last=last):
                self._stop_timer()
                for chunk in chunks:
                    self._over = self._over or not await self._write(chunk)
            self._stop_timer()

    async def _write(self, chunk: Chunk) -> bool:
        """Has the store taken this chunk? If not, it takes none of those behind it either."""
        hold = self._hold
        command = Output(hold.job_id, self._owner, hold.epoch, chunk, self._late_output_ms)
        try:
            sent = await self._sender.send(command, until=self._until)
        except NotAnsweredError as error:
            log.error("%s: output is lost: %s", hold.job_id, error)
            return False
        if isinstance(sent.reply, Refused):
            log.warning("%s: output was refused: %s", hold.job_id, sent.reply.reason)
            return False
        return True
