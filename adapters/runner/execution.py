"""What the jobs of one runner share: the way from a claim to the answer to its last write."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from attrs import frozen

from unswept.adapters.gateway.capture import Capture
from unswept.adapters.gateway.clock import boot_ms
from unswept.adapters.gateway.errors import GatewayError
from unswept.adapters.gateway.hold_table import HoldTable
from unswept.adapters.gateway.output_writer import OutputWriter
from unswept.adapters.gateway.sender import Sender
from unswept.adapters.gateway.to_loop import tell
from unswept.adapters.runner.ending import Back, Ending, Endings
from unswept.adapters.runner.handling import first_of, handled
from unswept.adapters.runner.job import Cause, Handler, RunnerJob
from unswept.adapters.runner.live_run import LiveRun, Stage
from unswept.adapters.runner.store_time import StoreTime
from unswept.core import commands as c
from unswept.core.heart import Act
from unswept.core.job import Process
from unswept.core.policy import LeasePolicy
from unswept.core.replies import Refused
from unswept.core.values import Stream

_LOOK_MS: Final = 20
"""How soon a job that may not begin just now is looked at again."""

log: Final = logging.getLogger(__name__)


@frozen
class Execution:
    """The parts of one runner that a job needs."""

    instance: str
    process: Process | None
    """This very process, as evidence for its jobs."""
    policy: LeasePolicy
    handle: Handler
    endings: Endings
    max_output_bytes: int
    sender: Sender
    holds: HoldTable
    store_time: StoreTime
    may: Callable[[Act], bool]
    given_back: Callable[[int], None]
    """A job is in the queue again, and due after so many milliseconds."""

    async def run(self, run: LiveRun) -> None:
        """From the claim to the answer to the last write, if there is anything to write."""
        capture = Capture(self.max_output_bytes, lambda: run.abort(Cause.OVERFLOW))
        output = OutputWriter(
            self.sender,
            self.instance,
            run.hold,
            self.policy.late_output_ms,
            capture,
            lambda: self._given_up(run),
        )
        job = self._job(run, output)
        returned = None
        if await self._may_begin(run):
            run.stage = Stage.WORKING
            with self._evidence(run):
                returned = await handled(self.handle, job, run, self.endings.timeout_ms)
        cause = run.finish()
        if run.fenced:
            log.warning("%s: the hold has ended; nothing is written", job.id)
            return
        if cause is None:
            assert returned is not None  # what did not begin was stopped
            ending = self.endings.of(job, returned)
        else:
            log.info("%s: stopped: %s", job.id, cause)
            ending = self.endings.stopped(job, cause)
        await output.flush(last=True)
        await self._write_end(run, ending)

    def _job(self, run: LiveRun, output: OutputWriter) -> RunnerJob:
        grant, loop = run.grant, asyncio.get_running_loop()

        def may_step() -> bool:
            if not self.holds.may_step(run.hold, boot_ms()):
                run.expire()
            return not run.aborted.is_set()

        def write(stream: Stream, data: bytes) -> None:
            tell(loop, output.add, stream, data)

        return RunnerJob(
            run.hold.job_id,
            run.hold.epoch,
            grant.attempts,
            grant.request,
            grant.transport,
            grant.requeue,
            run.aborted,
            may_step,
            write,
        )

    async def _may_begin(self, run: LiveRun) -> bool:
        """Wait until the heart lets work begin; False: the run was stopped before.

        The claim has begun the job for the store, and takes none under a cancel request; one that
        was answered late says so of a request that came since.
        """
        if run.grant.standing.cancel_requested_at is not None:
            run.abort(Cause.CANCELED)
        never = asyncio.get_running_loop().create_future()
        while not run.aborted.is_set() and not (
            self.may(Act.START) and self.holds.may_step(run.hold, boot_ms())
        ):
            await first_of(never, run, _LOOK_MS / 1000)
        return not run.aborted.is_set()

    @contextmanager
    def _evidence(self, run: LiveRun) -> Iterator[None]:
        """Let the store know this process as evidence of the job's, once the handler has run for a
        while: what is over before its first heartbeat needs none, and a write less."""
        if self.process is None:
            yield
            return
        loop = asyncio.get_running_loop()
        tasks: list[asyncio.Task[None]] = []
        timer = loop.call_later(
            self.policy.retry_ms / 1000,
            lambda: tasks.append(asyncio.ensure_future(self._record(run))),
        )
        try:
            yield
        finally:
            timer.cancel()
            for task in tasks:
                task.cancel()

    async def _record(self, run: LiveRun) -> None:
        hold = run.hold
        start = c.Start(hold.job_id, self.instance, hold.epoch, self.policy.terms(), self.process)
        try:
            await self.sender.send(start, act=Act.START, until=run.aborted.is_set)
        except GatewayError as error:
            log.info("%s: %s", hold.job_id, error)

    async def _write_end(self, run: LiveRun, ending: Ending) -> None:
        """Until the store has stored or refused it; meanwhile the job is held."""
        hold = run.hold
        command: c.Command[c.Outcome]
        if isinstance(ending, Back):
            not_before = self.store_time.after(ending.pause_ms)
            command = c.Release(hold.job_id, self.instance, hold.epoch, not_before)
        else:
            command = c.Complete(
                hold.job_id, self.instance, hold.epoch, ending.outcome, ending.result
            )
        sent = await self.sender.send(command, until=lambda: self._given_up(run))
        if isinstance(sent.reply, Refused):
            log.warning("%s: its end was refused: %s", hold.job_id, sent.reply.reason)
        elif isinstance(ending, Back):
            self.given_back(ending.pause_ms)

    def _given_up(self, run: LiveRun) -> bool:
        if run.finished_at is None:
            return False
        return boot_ms() >= run.finished_at + self.policy.outbox_give_up_ms
