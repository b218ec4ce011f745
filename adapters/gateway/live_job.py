"""One job that this instance runs: where it stands, and who may stop it.

It is stopped from the event loop (a timeout, a caller, a drain) and from the heart's threads (the
store's word, the local deadline), which cannot wait for a loop that stands still. So a process is
signaled by whoever stops it, and the loop learns of it later. The first cause counts.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from enum import StrEnum

from unswept.adapters.gateway.clock import boot_ms
from unswept.adapters.gateway.loop_watch import LoopWatch
from unswept.adapters.gateway.process import ProcessRun
from unswept.adapters.gateway.readback import Snapshot
from unswept.adapters.gateway.to_loop import tell
from unswept.adapters.gateway.work import AT_ONCE, Cause, OnOrphaned, Work
from unswept.core.commands import Hold
from unswept.core.job import Process
from unswept.core.lease import RequeueRule
from unswept.core.replies import Answer
from unswept.core.units import MonoMs, Ms, StoreMs


class Doing(StrEnum):
    """Where this process stands with one of its jobs."""

    ADMITTING = "admitting"
    WAITING = "waiting for a slot"
    STARTING = "starting"
    WORKING = "working"
    FINISHING = "finishing"


class LiveJob:
    """A job between its request and the acknowledgement of its terminal write."""

    def __init__(
        self,
        job_id: str,
        work: Work,
        provider: str,
        *,
        principal: str,
        request_key: str | None,
        correlation_id: str,
        requeue: RequeueRule,
        on_orphaned: OnOrphaned,
        loop_watch: LoopWatch,
        stall_limit_ms: Ms,
    ) -> None:
        """A job that nobody has admitted yet."""
        self.id = job_id
        self.work = work
        self.provider = provider
        self.principal = principal
        self.request_key = request_key
        self.made_at = boot_ms()
        self.correlation_id = correlation_id
        self.requeue = requeue
        self.doing = Doing.ADMITTING
        self.hold = Hold(job_id, 1)
        """What its admission grants: an admitted job is born with epoch 1."""
        self.cause: Cause | None = None
        self.fenced = False
        """The hold has ended by the store's word: nothing more is written."""
        self.orphaned = False
        """A sweeper has taken this instance for dead; its completion heals the job."""
        self.finished_at: MonoMs | None = None
        """When the work was over; from then on the job waits only for the store."""
        self.admitted_at: StoreMs | None = None
        self.started_at: StoreMs | None = None
        """By the store's reply; None also where that was a reply to a repetition."""
        self.ended: Snapshot | None = None
        """How it stands in the store for good, where the store's replies have told all of it."""
        self.over = asyncio.Event()
        """Its terminal write was acknowledged, or the hold has ended otherwise."""
        self._on_orphaned = on_orphaned
        self._loop_watch = loop_watch
        self._stall_limit_ms = stall_limit_ms
        self._run: ProcessRun | None = None
        self._loop = asyncio.get_running_loop()
        self.interrupted: asyncio.Future[None] = self._loop.create_future()
        """Done once somebody stops the job."""
        self._lock = threading.Lock()

    # On the loop ----------------------------------------------------------------------------

    def has_process(self, run: ProcessRun) -> None:
        """From here on, whoever stops the job signals this process."""
        with self._lock:
            self._run = run
            cause = self.cause
        if cause is not None:
            run.signal(_signal_for(cause))

    @property
    def evidence(self) -> Process | None:
        """Its process, where it has one and the system tells enough of it."""
        return None if self._run is None else self._run.evidence

    def finish(self) -> Cause | None:
        """The work is over; the cause if it was stopped. Nothing stops it any more."""
        with self._lock:
            self.doing = Doing.FINISHING
            self.finished_at = self.finished_at or boot_ms()
            return self.cause

    # From any thread ------------------------------------------------------------------------

    def interrupt(self, cause: Cause) -> None:
        """Stop the work, unless it is over or was stopped before."""
        with self._lock:
            run = self._run
            if self.doing is Doing.FINISHING or (self.cause and cause not in AT_ONCE):
                return
            if cause not in AT_ONCE and run is not None and not run.lives():
                return  # it has ended by itself, and the loop has only to learn of it
            self.cause = self.cause or cause
        if run is not None:
            run.signal(_signal_for(cause))
        tell(self._loop, self._set_interrupted)

    def _set_interrupted(self) -> None:
        if not self.interrupted.done():
            self.interrupted.set_result(None)

    def vouched(self) -> bool:
        """Its process lives, or the loop turns and will bring it to its end."""
        with self._lock:
            run = self._run
        if run is not None and run.lives():
            return True
        return self._loop_watch.stalled_ms <= self._stall_limit_ms

    def hear(self, answer: Answer) -> None:
        """The hold was orphaned, or has ended. (L8)"""
        if answer is Answer.ORPHANED:
            self.orphaned = True
            if self._on_orphaned is OnOrphaned.STOP:
                self.interrupt(Cause.ORPHANED)
        elif self.doing is not Doing.FINISHING:
            # While finishing, the answer to the terminal write says the same and more: a beat that
            # was sent before that write and answered after it finds the job terminal.
            self.fenced = True
            self.interrupt(Cause.FENCED)

    def hear_cancel(self) -> None:
        """A cancel request came with a heartbeat. (L7)"""
        self.interrupt(Cause.CANCELED)

    def expire(self) -> None:
        """Somebody else may run this work from now on, so that here it stops. (L11)"""
        if self.doing in (Doing.STARTING, Doing.WORKING):
            self.interrupt(Cause.EXPIRED)


def _signal_for(cause: Cause) -> signal.Signals:
    return signal.SIGKILL if cause in AT_ONCE else signal.SIGTERM
