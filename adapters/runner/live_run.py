"""One claimed job of this runner: where it stands, and who may stop it.

It is stopped from the event loop (a timeout, a drain) and from the heart's threads (the store's
word, the local deadline), which cannot wait for a loop that stands still: they set what a handler
on a thread looks at, and the loop learns of it when it turns. The first cause counts.
"""

from __future__ import annotations

import asyncio
import threading
from enum import StrEnum

from unswept.adapters.gateway.clock import boot_ms
from unswept.adapters.gateway.loop_watch import LoopWatch
from unswept.adapters.gateway.to_loop import tell
from unswept.adapters.runner.job import Aborted, Cause
from unswept.core.commands import Hold
from unswept.core.replies import Answer, Grant
from unswept.core.units import MonoMs, Ms


class Stage(StrEnum):
    """Where this process stands with a job."""

    CLAIMED = "claimed"
    WORKING = "working"
    FINISHING = "finishing"


class LiveRun:
    """A job between its claim and the acknowledgement of its last write. Made by any thread."""

    def __init__(
        self,
        grant: Grant,
        loop: asyncio.AbstractEventLoop,
        loop_watch: LoopWatch,
        stall_limit_ms: Ms,
    ) -> None:
        """A job that was just claimed."""
        self.grant = grant
        self.hold = Hold(grant.standing.job_id, grant.standing.epoch)
        self.stage = Stage.CLAIMED
        self.aborted = Aborted()
        self.fenced = False
        """The hold has ended by the store's word: nothing more is written."""
        self.finished_at: MonoMs | None = None
        """When the handler was over; from then on the job waits only for the store."""
        self.thread: threading.Thread | None = None
        """Where the handler runs, if not on the event loop."""
        self.interrupted: asyncio.Future[None] = loop.create_future()
        """Done once somebody stops the job."""
        self._loop = loop
        self._loop_watch = loop_watch
        self._stall_limit_ms = stall_limit_ms
        self._lock = threading.Lock()

    # On the loop ----------------------------------------------------------------------------

    def finish(self) -> Cause | None:
        """The handler is over; the cause if it was stopped. Nothing stops it any more."""
        with self._lock:
            self.stage = Stage.FINISHING
            self.finished_at = self.finished_at or boot_ms()
            return self.aborted.cause

    # From any thread ------------------------------------------------------------------------

    def abort(self, cause: Cause) -> None:
        """Stop the handler, unless it is over or was stopped before."""
        with self._lock:
            if self.stage is Stage.FINISHING or self.aborted.is_set():
                return
            self.aborted.set(cause)
        tell(self._loop, self._set_interrupted)

    def _set_interrupted(self) -> None:
        if not self.interrupted.done():
            self.interrupted.set_result(None)

    def vouched(self) -> bool:
        """Its thread lives, or the loop turns and will bring it to its end."""
        if self.fenced:
            return False
        if self.thread is not None and self.thread.is_alive():
            return True
        return self._loop_watch.stalled_ms <= self._stall_limit_ms

    def hear(self, answer: Answer) -> None:
        """The hold has ended. (L8)"""
        # An orphan still heals; what may be requeued is stopped by its local deadline. While
        # finishing, the answer to the last write says the same as this one, and more.
        if answer is not Answer.ORPHANED and self.stage is not Stage.FINISHING:
            self.fenced = True
            self.abort(Cause.FENCED)

    def hear_cancel(self) -> None:
        """A cancel request came with a heartbeat. (L7)"""
        self.abort(Cause.CANCELED)

    def expire(self) -> None:
        """Somebody else may run this work from now on, so that here it stops. (L11)"""
        self.abort(Cause.EXPIRED)
