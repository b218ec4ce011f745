"""The runtime that a gateway's author imports: runs jobs, holds their leases, sweeps what is dead.

    async with Gateway(store) as gateway:
        job = await gateway.submit(ProcessWork(argv=("echo", "hello")), provider="shell")
        print((await job.wait()).status)

The event loop runs the jobs; the heart beats on threads of its own (`pulse`).
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import Final

from attrs import frozen

from unswept.adapters.gateway import work as works
from unswept.adapters.gateway.capture import Capture
from unswept.adapters.gateway.clock import boot_ms
from unswept.adapters.gateway.errors import (
    AdmissionError,
    DrainingError,
    SaturationError,
)
from unswept.adapters.gateway.guard import Guard
from unswept.adapters.gateway.hold_table import HoldTable
from unswept.adapters.gateway.identity import Identity
from unswept.adapters.gateway.lane import Sent
from unswept.adapters.gateway.live_job import Doing, LiveJob
from unswept.adapters.gateway.loop_watch import LoopWatch
from unswept.adapters.gateway.observer import Fact, Observer
from unswept.adapters.gateway.output_writer import OutputWriter
from unswept.adapters.gateway.pulse import Pulse, longest_nap_ms
from unswept.adapters.gateway.readback import (
    LOCAL,
    MAX_CHARS,
    Output,
    Snapshot,
    ended_snapshot,
    read_output,
    read_snapshot,
)
from unswept.adapters.gateway.readers import Readers
from unswept.adapters.gateway.runner import Runner
from unswept.adapters.gateway.sender import NotAnsweredError, Sender
from unswept.adapters.gateway.slots import Slots
from unswept.adapters.gateway.to_loop import tell
from unswept.adapters.gateway.winding_down import cut_off, done_by
from unswept.adapters.gateway.work import Cause, Ending, OnOrphaned, ProcessWork, Work
from unswept.adapters.urls import check_store_url
from unswept.core import commands as c
from unswept.core.checks import check_id, check_optional_id, check_whole
from unswept.core.errors import MisuseError, StoreError
from unswept.core.heart import Act, Phase
from unswept.core.lease import ACTIVE, Kind, RequeueRule, Status
from unswept.core.limiter import Limits, Verdict
from unswept.core.policy import LeasePolicy
from unswept.core.records import changed
from unswept.core.replies import Accepted, Joined, Refused
from unswept.core.values import Request

ADMIT_TRIES: Final = 2
_PAYLOAD: Final = json.JSONEncoder(default=str)
SHUTTING_DOWN: Final = "This gateway is shutting down and takes no new work"

log: Final = logging.getLogger(__name__)


class CancelVerdict(StrEnum):
    """What a wish to cancel came to."""

    STOPPING = "stopping"
    """The job is this instance's, and is being stopped now."""
    REQUESTED = "requested"
    """The job is another instance's, which learns of the wish by its next heartbeat."""
    CANCELED = "canceled"
    """The job was nobody's, and is over."""
    OVER = "over"
    """The job was over already."""


@frozen
class Health:
    """How an instance stands, for probes and for people."""

    instance: str
    phase: Phase
    admitting: bool
    """Ready: a probe takes a gateway that does not admit out of its rotation."""
    failures: int
    """Heartbeats in a row that failed."""
    last_beat_ms: int | None
    """How long ago the last heartbeat was answered."""
    last_error: str | None
    """Why the last heartbeat that failed did."""
    loop_stalled_ms: int
    """How long the event loop has not turned; 0: it turns."""
    running: int
    """Jobs that have a slot."""
    queued: int
    """Jobs that wait for a slot."""
    finishing: int
    """Jobs whose terminal write is not acknowledged yet."""
    held: int
    """Jobs that it beats for."""
    saturated: bool
    """No slot is free, or somebody waits for one of a provider that has none."""
    rejected: int
    """Requests refused for want of a slot, since the start."""
    queue_timeouts: int
    """Jobs that waited too long for a slot, since the start."""
    guarded: bool | None
    """The guard's process runs; None: none was asked for."""


class Gateway:
    """One instance: made, used and drained on one event loop.

    `beat_store` carries the heartbeats, if the store itself does not keep a connection for them.
    Stores are the caller's: a drain does not close them.
    """

    def __init__(
        self,
        store: c.Store,
        *,
        beat_store: c.Store | None = None,
        policy: LeasePolicy | None = None,
        limits: Limits | None = None,
        max_output_bytes: int = works.MAX_OUTPUT_BYTES,
        observer: Observer | None = None,
        guard_url: str | None = None,
    ) -> None:
        """An instance that has not begun; needs a running event loop.

        `guard_url` names the store once more, for a process that beats while an extension keeps
        the interpreter lock; None: there is no such process.
        """
        if guard_url is not None:
            check_store_url(guard_url)
        self._loop = asyncio.get_running_loop()
        self.identity = Identity()
        self.policy = LeasePolicy() if policy is None else policy
        check_whole("max_output_bytes", max_output_bytes, 1, works.MAX_OUTPUT_BYTES)
        self._max_output_bytes = max_output_bytes
        self._observer = observer
        self._guard_url = guard_url
        self._guard: Guard | None = None
        self._terms = self.policy.terms()
        self._holds = HoldTable(self._terms, self.policy.local_margin_ms)
        self._loop_watch = LoopWatch(self._loop, 2 * longest_nap_ms(self.policy))
        self._pulse = Pulse(
            store,
            store if beat_store is None else beat_store,
            self.identity,
            self.policy,
            self._holds,
            self._loop_watch,
            self._beaten,
            self._swept,
        )
        self._sender = Sender(store, self.policy, self._pulse.may)
        self._slots = Slots(Limits() if limits is None else limits)
        self._readers = Readers()
        self._runner = Runner(
            self.identity.instance,
            self.policy,
            self._terms,
            self._sender,
            self._holds,
            self._slots,
            self._readers,
            self._pulse.may,
            lambda: self._draining is not None,
            self._started,
        )
        self._jobs: dict[str, LiveJob] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._draining: asyncio.Task[bool] | None = None

    # Its own life ---------------------------------------------------------------------------

    async def start(self) -> None:
        """Register and begin to beat. Returns when jobs are admitted, or, with a store that does
        not answer, after three operation timeouts: `health()` says which."""
        self._check_loop()
        if self._guard_url is not None:
            self._guard = Guard(self._guard_url, self.identity.instance, self.policy)
        self._pulse.start()
        give_up_at = boot_ms() + 3 * self.policy.operation_timeout_ms
        while not self._pulse.may(Act.ADMIT) and boot_ms() < give_up_at:
            await asyncio.sleep(0.002)

    async def drain(self, *, finish_ms: int = 0, timeout_ms: int = 30_000) -> bool:
        """Take no new work, fail what has not begun, let what runs finish for `finish_ms`, then
        stop it; persist, deregister. The heart is the last to stop.

        True: all is written. False: `timeout_ms` more were not enough; what is left is killed but
        keeps its lease, which lapses. A second call waits for the first.
        """
        self._check_loop()
        if self._draining is None:
            self._draining = asyncio.ensure_future(self._drain(finish_ms, timeout_ms))
        return await asyncio.shield(self._draining)

    def _check_loop(self) -> None:
        """A job that one loop began and another ran could be held for ever by neither."""
        if asyncio.get_running_loop() is not self._loop:
            raise MisuseError(
                "expected the event loop on which this gateway was made, found another one; make a"
                " gateway on each, or use SyncGateway from any thread"
            )

    async def __aenter__(self) -> Gateway:
        try:
            await self.start()
        except BaseException:
            await self.drain()
            raise
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.drain()

    def health(self) -> Health:
        """How this instance stands now."""
        heart = self._pulse.heart
        return Health(
            instance=self.identity.instance,
            phase=self._pulse.phase(),
            admitting=self._pulse.may(Act.ADMIT),
            failures=heart.failures,
            last_beat_ms=None if heart.pulse is None else boot_ms() - heart.pulse.answered_at,
            last_error=self._pulse.last_error,
            loop_stalled_ms=self._loop_watch.stalled_ms,
            running=self._slots.running,
            queued=self._slots.queued,
            finishing=sum(job.doing is Doing.FINISHING for job in tuple(self._jobs.values())),
            held=len(self._holds.ids()),
            saturated=self._slots.saturated,
            rejected=self._slots.rejected,
            queue_timeouts=self._slots.timed_out,
            guarded=None if self._guard is None else self._guard.lives,
        )

    # Jobs -----------------------------------------------------------------------------------

    async def submit(
        self,
        work: Work,
        *,
        provider: str,
        principal: str = LOCAL,
        request_key: str | None = None,
        force_refresh: bool = False,
        requeue: RequeueRule = RequeueRule.NEVER,
        on_orphaned: OnOrphaned = OnOrphaned.GO_ON,
        correlation_id: str | None = None,
    ) -> JobHandle:
        """Admit a job, or join one that is the same; returns once the store has taken it.

        The same are jobs of one principal with one `request_key`, by default the work's own; a
        call that does not say what it does has none. `force_refresh` always runs anew. What is told
        of the job bears its `correlation_id`, by default its id.

        Raises `SaturationError`, `DrainingError` or `AdmissionError`; then nothing runs.
        """
        self._check_loop()
        check_id("provider", provider)
        check_id("principal", principal)
        check_optional_id("request_key", request_key)
        check_optional_id("correlation_id", correlation_id)
        if isinstance(work, ProcessWork) and work.max_output_bytes is None:
            work = changed(work, max_output_bytes=self._max_output_bytes)
        job_id = secrets.token_hex(16)
        job = LiveJob(
            job_id,
            work,
            provider,
            principal=principal,
            request_key=request_key or work.request_key(provider),
            correlation_id=correlation_id or job_id,
            requeue=requeue,
            on_orphaned=on_orphaned,
            loop_watch=self._loop_watch,
            stall_limit_ms=self.policy.stall_limit_ms,
        )
        request = Request(_payload(job), principal, job.request_key)
        try:
            self._take_slot(job)
        except (AdmissionError, SaturationError):
            twin = None if force_refresh else self._live_twin(request)
            if twin is None:
                raise
            return JobHandle(self, twin.id, principal, twin.correlation_id, deduped=True)
        admitted: asyncio.Future[Joined | None] = self._loop.create_future()
        self._jobs[job.id] = job
        self._tasks[job.id] = asyncio.ensure_future(
            self._live(job, request, force_refresh, admitted)
        )
        try:
            joined = await admitted
        except asyncio.CancelledError:
            # Nobody knows the id: nobody would ever read what the job does.
            job.interrupt(Cause.CANCELED)
            raise
        if joined is None:
            return JobHandle(self, job.id, principal, job.correlation_id, deduped=False)
        original = await self.snapshot(joined.standing.job_id, principal)
        return JobHandle(self, original.job_id, principal, original.correlation_id, deduped=True)

    @asynccontextmanager
    async def slot(self, provider: str) -> AsyncIterator[None]:
        """A slot for work that is no job, such as a request that is answered at once: the caps hold
        for both together. Waits in the same queue; `SaturationError` where there is none in time.
        """
        self._check_loop()
        check_id("provider", provider)
        if self._draining is not None:
            raise DrainingError(SHUTTING_DOWN)
        ticket = secrets.token_hex(16)
        if self._slots.acquire(ticket, provider) is Verdict.SATURATED:
            raise SaturationError(_at_capacity(provider, self._slots.limits))
        try:
            if not await self._slots.granted(ticket):
                raise SaturationError(works.waited_too_long(provider))
            yield
        finally:
            self._slots.release(ticket)

    async def snapshot(self, job_id: str, principal: str = LOCAL) -> Snapshot:
        """Any instance's job as it stands in the store; `JobNotFoundError` if it is not there, or
        is another principal's."""
        check_id("job_id", job_id)
        return await self._sender.ask(lambda store: read_snapshot(store, job_id, principal))

    async def output(
        self, job_id: str, principal: str = LOCAL, max_chars: int = MAX_CHARS
    ) -> Output:
        """What any instance's job has written so far, of each stream the last `max_chars`
        characters; `JobNotFoundError` as for a snapshot."""
        check_id("job_id", job_id)
        return await self._sender.ask(
            lambda store: read_output(store, job_id, principal, max_chars)
        )

    async def wait(self, job_id: str, principal: str = LOCAL) -> Snapshot:
        """Wait for the end of any instance's job, and for a store that is away. An orphaned one is
        returned as it is, since its owner may be gone for good; it may still heal, so that it can
        be waited for again. `JobNotFoundError` as for a snapshot."""
        self._check_loop()
        while True:
            live = self._jobs.get(job_id)
            if live is not None and live.principal == principal:
                await live.over.wait()
                if live.ended is not None:
                    return live.ended
            try:
                found = await self.snapshot(job_id, principal)
            except StoreError as error:
                log.warning("%s is waited for: %s", job_id, error)
            else:
                if found.over or found.status is Status.ORPHANED:
                    return found
            await asyncio.sleep(self.policy.retry_ms / 1000)

    async def cancel(self, job_id: str, principal: str = LOCAL) -> CancelVerdict:
        """Ask for the end of any instance's job: this one's is stopped at once, another's by its
        owner, on the store's word. The store keeps the wish, whatever becomes of the owner. (L7)
        `JobNotFoundError` as for a snapshot; `StoreError` where the store was not reached."""
        self._check_loop()
        check_id("job_id", job_id)
        wish = c.RequestCancel(job_id)
        live = self._jobs.get(job_id)
        if live is not None and live.principal == principal and live.doing is not Doing.FINISHING:
            live.interrupt(Cause.CANCELED)
            try:
                await self._sender.ask(lambda store: store.execute(wish))
            except StoreError as error:
                log.warning("%s is stopped, but its cancel is not kept: %s", job_id, error)
            return CancelVerdict.STOPPING
        await self.snapshot(job_id, principal)
        reply = await self._sender.ask(lambda store: store.execute(wish))
        if isinstance(reply, Accepted) and reply.standing.status in ACTIVE:
            return CancelVerdict.REQUESTED
        now = isinstance(reply, Accepted) and not reply.repeated
        return CancelVerdict.CANCELED if now else CancelVerdict.OVER

    # From the request to the terminal write -------------------------------------------------

    def _take_slot(self, job: LiveJob) -> None:
        """A slot, or a place in the queue; raises where there is neither."""
        if self._draining is not None:
            raise DrainingError(SHUTTING_DOWN)
        if not self._pulse.may(Act.ADMIT):
            raise AdmissionError(
                f"Durable async admission is disabled for {job.provider}: this gateway instance "
                "could not register or lost its heartbeat lease. Retry after the gateway recovers."
            )
        if self._slots.acquire(job.id, job.provider) is Verdict.SATURATED:
            raise SaturationError(_at_capacity(job.provider, self._slots.limits))

    def _live_twin(self, request: Request) -> LiveJob | None:
        """The newest job with the same request that runs right here. Joining it needs neither a
        slot nor the store, so that it is possible when an admission is not."""
        oldest = boot_ms() - self.policy.dedup_window_ms
        twins = [
            job
            for job in self._jobs.values()
            if request.request_key is not None
            and (job.principal, job.request_key) == (request.principal, request.request_key)
            and job.made_at >= oldest
            and job.doing in (Doing.WAITING, Doing.STARTING, Doing.WORKING)
            and job.cause is None
            and not job.orphaned
        ]
        return twins[-1] if twins else None

    async def _live(
        self,
        job: LiveJob,
        request: Request,
        fresh: bool,
        admitted: asyncio.Future[Joined | None],
    ) -> None:
        try:
            verdict = await self._admit(job, request, fresh)
            if isinstance(verdict, AdmissionError):
                self._slots.release(job.id)
                _settle(admitted, error=verdict)
                await self._withdraw(job)
            elif isinstance(verdict, Joined):
                self._slots.release(job.id)
                _settle(admitted, verdict)
            else:
                _settle(admitted, None)
                await self._run(job)
        except Exception as error:  # a fault of the runtime's own; the lease lapses, and says so
            log.exception("%s: given up", job.id)
            _settle(admitted, error=error)
        finally:
            self._slots.release(job.id)
            self._holds.end(job.id)
            if self._guard is not None:
                self._guard.end(job.id)
            self._jobs.pop(job.id, None)
            self._tasks.pop(job.id, None)
            job.over.set()

    async def _admit(
        self, job: LiveJob, request: Request, fresh: bool
    ) -> Joined | AdmissionError | None:
        """None: admitted, and held."""
        admit = c.Admit(
            job.id,
            self.identity.instance,
            self._terms,
            job.work.transport,
            job.requeue,
            request,
            self.policy.dedup_window_ms,
            fresh,
        )
        rejected = f"Durable job admission failed for {job.provider}: "
        try:
            sent = await self._sender.send(
                admit,
                act=Act.ADMIT,
                tries=ADMIT_TRIES,
                on_reply=lambda sent: self._hold(job, sent),
            )
        except NotAnsweredError as error:
            failure = AdmissionError(f"{rejected}{error}")
            failure.__cause__ = error.__cause__
            return failure
        if isinstance(sent.reply, Joined):
            return sent.reply
        if self._holds.deadline(job.hold) is not None:
            job.doing = Doing.WAITING
            return None
        return AdmissionError(f"{rejected}the job store answered {sent.reply}")

    def _hold(self, job: LiveJob, sent: Sent[Accepted | Joined | Refused]) -> None:
        """Called by the thread that got the answer: from here on the job is beaten for."""
        reply = sent.reply
        if not isinstance(reply, Accepted) or reply.standing.status not in ACTIVE:
            return
        standing = reply.standing
        if c.Hold(standing.job_id, standing.epoch) == job.hold and (
            standing.owner == self.identity.instance
        ):
            if not reply.repeated:
                job.admitted_at = reply.at
            self._holds.begin(job.hold, job.work.transport, job.requeue, sent.first_sent_at, job)
            if self._guard is not None:
                self._guard.hold(job.hold)

    async def _withdraw(self, job: LiveJob) -> None:
        """Whatever became of the admit, its id is taken back: no row, no run."""
        job.finish()
        withdraw = c.Withdraw(job.id, self.identity.instance)
        try:
            await self._sender.send(withdraw, until=lambda: self._given_up(job))
        except NotAnsweredError as error:
            log.error("%s: %s", job.id, error)

    async def _run(self, job: LiveJob) -> None:
        assert not isinstance(job.work, ProcessWork) or job.work.max_output_bytes is not None
        capture = Capture(
            job.work.max_output_bytes or 0 if isinstance(job.work, ProcessWork) else 0,
            lambda: job.interrupt(Cause.OVERFLOW),
        )
        output = OutputWriter(
            self._sender,
            self.identity.instance,
            job.hold,
            self.policy.late_output_ms,
            capture,
            lambda: self._given_up(job),
        )
        try:
            ending = await self._runner.run(job, output)
        except Exception as error:  # a fault of the runtime's own must not leave the row running
            log.exception("%s: failed", job.id)
            job.finish()
            ending = works.failed(1, f"Gateway error: {works.described(error)}")
        self._slots.release(job.id)
        if job.fenced:
            log.warning("%s: the hold has ended; nothing is written", job.id)
            return
        try:
            await output.flush(last=True)
            await self._write_end(job, ending)
        except NotAnsweredError as error:
            log.error("%s: its end is lost, and its lease lapses: %s", job.id, error)

    async def _write_end(self, job: LiveJob, ending: Ending | None) -> None:
        """Until the store has stored or refused it; meanwhile the job is held."""
        hold, instance = job.hold, self.identity.instance
        command: c.Command[c.Outcome]
        if ending is None:
            command = c.Release(hold.job_id, instance, hold.epoch)
        else:
            command = c.Complete(hold.job_id, instance, hold.epoch, ending.outcome, ending.result)
        sent = await self._sender.send(command, until=lambda: self._given_up(job))
        reply = sent.reply
        if isinstance(reply, Refused):
            log.warning("%s: its end was refused: %s", job.id, reply.reason)
            return
        kind = reply.transition
        if kind is None:  # an earlier sending of it did it
            kind = Kind.HEAL if job.orphaned else Kind.COMPLETE
        result = None if ending is None else ending.result
        if result is not None:
            job.ended = ended_snapshot(
                job.correlation_id, job.admitted_at, job.started_at, reply, result
            )
        self._tell(
            Fact(job.id, hold.epoch, kind, reply.standing.status, job.correlation_id, result)
        )

    def _given_up(self, job: LiveJob) -> bool:
        if job.finished_at is None:
            return False
        return boot_ms() >= job.finished_at + self.policy.outbox_give_up_ms

    # Drain ----------------------------------------------------------------------------------

    async def _drain(self, finish_ms: int, timeout_ms: int) -> bool:
        finish_until = boot_ms() + finish_ms
        self._pulse.drain()
        for job in tuple(self._jobs.values()):
            if job.doing in (Doing.ADMITTING, Doing.WAITING):
                job.interrupt(Cause.SHUTDOWN)
        await done_by(self._tasks, finish_until)
        for job in tuple(self._jobs.values()):
            job.interrupt(Cause.SHUTDOWN)
        clean = await done_by(self._tasks, finish_until + timeout_ms)
        if not clean:
            log.warning("drain timed out with %d jobs; their leases lapse", len(self._tasks))
            await cut_off(self._tasks)
        await asyncio.to_thread(self._pulse.stop)
        if self._guard is not None:
            await asyncio.to_thread(self._guard.close)
        if clean:
            try:
                await self._sender.send(c.Deregister(self.identity.instance), tries=2)
            except NotAnsweredError as error:
                log.warning("%s", error)
        await self._sender.close()
        self._readers.close()
        return clean

    # Observer -------------------------------------------------------------------------------

    def _beaten(self) -> None:
        if self._guard is not None:
            self._guard.beaten(self._loop_watch.stalled_ms)

    def _started(self, job: LiveJob) -> None:
        if self._guard is not None:
            self._guard.hold(job.hold, job.evidence)
        fact = Fact(job.id, job.hold.epoch, Kind.START, Status.RUNNING, job.correlation_id)
        self._tell(fact)

    def _swept(self, hold: c.Hold) -> None:
        fact = Fact(hold.job_id, hold.epoch, Kind.ORPHAN, Status.ORPHANED, None)
        tell(self._loop, self._tell, fact)

    def _tell(self, fact: Fact) -> None:
        if self._observer is None:
            return
        try:
            self._observer.observe(fact)
        except Exception:
            log.exception("%s: the observer failed on %s", fact.job_id, fact.kind)


class JobHandle:
    """One job of one principal, whoever runs it."""

    def __init__(
        self,
        gateway: Gateway,
        job_id: str,
        principal: str,
        correlation_id: str | None,
        *,
        deduped: bool,
    ) -> None:
        """Made by `Gateway.submit`."""
        self._gateway = gateway
        self._principal = principal
        self.id = job_id
        self.correlation_id = correlation_id
        """The job's own; of a job that was joined, the first request's."""
        self.deduped = deduped
        """The request joined a job that was there already."""

    async def snapshot(self) -> Snapshot:
        """The job as it stands in the store."""
        return await self._gateway.snapshot(self.id, self._principal)

    async def output(self, max_chars: int = MAX_CHARS) -> Output:
        """What it has written so far."""
        return await self._gateway.output(self.id, self._principal, max_chars)

    async def wait(self) -> Snapshot:
        """Its end, or that it was orphaned."""
        return await self._gateway.wait(self.id, self._principal)

    async def cancel(self) -> CancelVerdict:
        """Ask for its end."""
        return await self._gateway.cancel(self.id, self._principal)


def _settle(
    future: asyncio.Future[Joined | None],
    value: Joined | None = None,
    error: Exception | None = None,
) -> None:
    """Tell whoever asked for the job, if they still wait."""
    if future.done():
        return
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)


def _payload(job: LiveJob) -> bytes:
    """What a reader of the store may know of the request."""
    described = {
        "correlation_id": job.correlation_id,
        "provider": job.provider,
        **job.work.description(),
    }
    return _PAYLOAD.encode(described).encode("utf-8", "replace")


def _at_capacity(provider: str, limits: Limits) -> str:
    return (
        f"Gateway is at capacity for {provider}: running limit ({limits.max_running} global / "
        f"{limits.max_running_per_provider} per provider) reached and the queue is full "
        f"(max {limits.max_queued}); retry shortly"
    )
