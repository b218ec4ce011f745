"""Takes an admitted job to its end: its slot, its start, its work, and what is to be written then.

No work begins before the store has taken its start. A process has been spawned by then, since the
store keeps it as evidence; but its input is withheld, and it is killed if the start is refused.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import subprocess
from collections.abc import Callable
from typing import Final

from attrs import frozen

from unswept.adapters.gateway import work as works
from unswept.adapters.gateway.clock import boot_ms
from unswept.adapters.gateway.hold_table import HoldTable
from unswept.adapters.gateway.lane import Sent
from unswept.adapters.gateway.live_job import Doing, LiveJob
from unswept.adapters.gateway.output_writer import OutputWriter
from unswept.adapters.gateway.process import KILL_AFTER_S, ProcessRun
from unswept.adapters.gateway.readers import Readers
from unswept.adapters.gateway.sender import NotAnsweredError, Sender, StoppedError
from unswept.adapters.gateway.silence import SilenceWatch
from unswept.adapters.gateway.slots import Slots
from unswept.adapters.gateway.waiting import first_of
from unswept.adapters.gateway.work import Answer, CallWork, Cause, Ending, ProcessWork
from unswept.core import commands as c
from unswept.core.checks import shown
from unswept.core.heart import Act
from unswept.core.job import Process, Terms
from unswept.core.policy import LeasePolicy
from unswept.core.refusal import Refusal
from unswept.core.replies import Accepted

log: Final = logging.getLogger(__name__)


@frozen
class Runner:
    """What the jobs of one instance share."""

    instance: str
    policy: LeasePolicy
    terms: Terms
    sender: Sender
    holds: HoldTable
    slots: Slots
    readers: Readers
    may: Callable[[Act], bool]
    draining: Callable[[], bool]
    on_started: Callable[[LiveJob], None]

    async def run(self, job: LiveJob, output: OutputWriter) -> Ending | None:
        """How the job ended; None where the cause says that nothing is written about it."""
        ending = await self._slot(job)
        if ending is None:
            if isinstance(job.work, ProcessWork):
                ending = await self._run_process(job, job.work, output)
            else:
                ending = await self._run_call(job, job.work)
        job.finish()
        return None if job.cause in (Cause.FENCED, Cause.EXPIRED) or job.fenced else ending

    # Before the work ------------------------------------------------------------------------

    async def _slot(self, job: LiveJob) -> Ending | None:
        """Wait for a slot, and until a start may be sent; None: the work may begin."""
        granted = self.slots.granted(job.id)
        await first_of(granted, job.interrupted)
        if job.cause is None and not granted.result():
            return works.queue_timed_out(job.provider)
        while job.cause is None and not self._may_begin(job):
            await asyncio.wait({job.interrupted}, timeout=self.policy.retry_ms / 1000)
        if job.cause is not None:
            return works.stopped(job.cause, job.work, begun=False)
        job.doing = Doing.STARTING
        return None

    def _may_begin(self, job: LiveJob) -> bool:
        return self.may(Act.START) and self.holds.may_step(job.hold, boot_ms())

    async def _start(self, job: LiveJob, process: Process | None) -> bool:
        """Has the store taken the start? If not, the job has been stopped, with its cause.

        A start without an answer is repeated for as long as the lease surely runs, and until a
        drain, which sends no start. (L10)
        """
        hold = job.hold
        start = c.Start(hold.job_id, self.instance, hold.epoch, self.terms, process)
        try:
            sent = await self.sender.send(
                start,
                act=Act.START,
                until=lambda: self.draining() or boot_ms() >= (self.holds.deadline(hold) or 0),
                on_reply=lambda sent: self._stamp(hold, sent),
                unless=job.interrupted,
            )
        except StoppedError:
            return False
        except NotAnsweredError as error:
            log.error("%s: %s", job.id, error)
            job.interrupt(Cause.SHUTDOWN if self.draining() else Cause.START_REFUSED)
            return False
        reply = sent.reply
        if isinstance(reply, Accepted):
            job.doing = Doing.WORKING
            if not reply.repeated:
                job.started_at = reply.at
            self.on_started(job)
            return job.cause is None
        if reply.reason is Refusal.CANCEL_PENDING:
            job.interrupt(Cause.CANCELED)
        elif reply.reason is Refusal.ORPHANED:
            job.interrupt(Cause.START_REFUSED)  # writing that heals the job, as failed
        else:
            job.fenced = True
            job.interrupt(Cause.FENCED)
        return False

    def _stamp(self, hold: c.Hold, sent: Sent[c.Outcome]) -> None:
        if isinstance(sent.reply, Accepted) and not sent.reply.repeated:
            self.holds.stamp(hold, sent.first_sent_at)

    # The work -------------------------------------------------------------------------------

    async def _run_process(self, job: LiveJob, work: ProcessWork, output: OutputWriter) -> Ending:
        try:
            run = ProcessRun(work, output.add, self.readers)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            return works.not_launched(work.argv, error)
        job.has_process(run)
        silence = SilenceWatch(f"{job.id} ({job.provider})", lambda: not output.stdout_begun)
        try:
            began = await self._start(job, run.evidence)
            if not began:
                run.signal(signal.SIGKILL)
            elif work.stdin is not None:
                await run.feed(work.stdin)
            code = await _until_exit(job, work, run, output)
            await run.close_pipes()
            cause = job.finish()
            return works.exited(code) if cause is None else works.stopped(cause, work, began, code)
        finally:
            silence.close()
            run.reap()

    async def _run_call(self, job: LiveJob, work: CallWork) -> Ending:
        if not await self._start(job, None):
            cause = job.finish()
            assert cause is not None  # a start that was not taken has stopped the job
            return works.stopped(cause, work, begun=False)
        call = asyncio.ensure_future(_called(work))
        try:
            timeout_s = None if work.wall_timeout_ms is None else work.wall_timeout_ms / 1000
            await first_of(call, job.interrupted, timeout_s)
            if not call.done() and job.cause is None:
                job.interrupt(Cause.WALL_TIMEOUT)
            if call.done() and not job.fenced:
                job.finish()
                if call.cancelled():
                    return works.failed(1, "The call was cancelled from within")
                return call.result()
            cause = job.finish()
            assert cause is not None
            return works.stopped(cause, work, begun=True)
        finally:
            await _cancelled(call, job.id)


async def _until_exit(
    job: LiveJob, work: ProcessWork, run: ProcessRun, output: OutputWriter
) -> int:
    """What the process returns, by itself or because it is stopped."""
    now = asyncio.get_running_loop().time
    began_at = now()
    while not run.exited.done() and job.cause is None:
        left_s: list[float] = []
        if work.wall_timeout_ms is not None:
            left_s.append(began_at + work.wall_timeout_ms / 1000 - now())
            if left_s[-1] <= 0:
                job.interrupt(Cause.WALL_TIMEOUT)
        if work.idle_timeout_ms is not None:
            active_at = max(began_at, output.last_at)
            left_s.append(active_at + work.idle_timeout_ms / 1000 - now())
            if left_s[-1] <= 0:
                job.interrupt(Cause.IDLE)
        await first_of(run.exited, job.interrupted, max(0.0, min(left_s)) if left_s else None)
    if not run.exited.done():
        await asyncio.wait({run.exited}, timeout=KILL_AFTER_S)
        run.signal(signal.SIGKILL)
        await asyncio.wait({run.exited}, timeout=KILL_AFTER_S)
        if not run.exited.done():
            log.error("%s: its process does not end although it was killed", job.id)
    return await run.exited


async def _called(work: CallWork) -> Ending:
    """What the call brought back, or why it failed."""
    try:
        answer: object = await work.call()
    except (asyncio.CancelledError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # whatever it is, the job has come to its end
        return works.failed(1, works.described(error))
    if not isinstance(answer, Answer):
        return works.failed(1, f"The call must return an Answer, and returned {shown(answer)}")
    return works.answered(answer)


async def _cancelled(call: asyncio.Future[Ending], job_id: str) -> None:
    """Stop a call; one that does not heed it is left alone."""
    call.cancel()
    _, pending = await asyncio.wait({call}, timeout=KILL_AFTER_S)
    if pending:
        log.error("%s: the call goes on after it was cancelled", job_id)
