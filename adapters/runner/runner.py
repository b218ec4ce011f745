"""The runtime of a fleet: claims jobs from the shared queue, and runs a handler for each.

    async with Runner(store, handle, labels=("gpu",), concurrency=4) as runner:
        await runner.run()

The event loop claims and runs; the heart beats on threads of its own, as a gateway's (`pulse`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import uuid
from collections.abc import Collection
from typing import Final

from attrs import evolve, frozen

from unswept.adapters.gateway import evidence
from unswept.adapters.gateway.clock import boot_ms
from unswept.adapters.gateway.hold_table import HoldTable
from unswept.adapters.gateway.identity import Identity
from unswept.adapters.gateway.loop_watch import LoopWatch
from unswept.adapters.gateway.pulse import Pulse, longest_nap_ms
from unswept.adapters.gateway.sender import NotAnsweredError, Sender
from unswept.adapters.gateway.signals import drain_when_signaled
from unswept.adapters.gateway.to_loop import tell
from unswept.adapters.gateway.winding_down import cut_off, done_by
from unswept.adapters.gateway.work import MAX_OUTPUT_BYTES
from unswept.adapters.runner.claims import MOST_AT_ONCE, Claims
from unswept.adapters.runner.ending import Endings
from unswept.adapters.runner.execution import Execution
from unswept.adapters.runner.job import Cause, Handler
from unswept.adapters.runner.live_run import LiveRun, Stage
from unswept.adapters.runner.retries import Retries
from unswept.adapters.runner.store_time import StoreTime
from unswept.adapters.runner.waking import Idleness, Polling, Waker
from unswept.core import commands as c
from unswept.core.checks import canonical_labels, check_duration, check_whole, shown
from unswept.core.errors import MisuseError
from unswept.core.heart import Act, Phase
from unswept.core.policy import LeasePolicy
from unswept.core.refusal import Refusal
from unswept.core.replies import Grant, Refused
from unswept.core.units import Ms

MOST_CONCURRENT: Final = 10_000
_LOOK_S: Final = 0.02
"""How soon a heart that forbids claims is asked again."""

log: Final = logging.getLogger(__name__)


@frozen
class Health:
    """How a runner stands, for probes and for people."""

    instance: str
    phase: Phase
    claiming: bool
    """Ready: it would take work now, if there is a free slot."""
    listening: bool
    """New work is told to it; else it only looks for it."""
    failures: int
    """Heartbeats in a row that failed."""
    last_beat_ms: int | None
    """How long ago the last heartbeat was answered."""
    last_error: str | None
    """Why the last heartbeat that failed did."""
    loop_stalled_ms: int
    """How long the event loop has not turned; 0: it turns."""
    running: int
    """Jobs whose handler runs."""
    finishing: int
    """Jobs whose last write is not acknowledged yet."""
    held: int
    """Jobs that it beats for."""
    claimed: int
    """Jobs that it has taken since the start."""


class Runner:
    """One instance: made, used and drained on one event loop.

    `beat_store` carries the heartbeats, if the store itself does not keep a connection for them.
    Stores are the caller's: a drain does not close them.
    """

    def __init__(
        self,
        store: c.Store,
        handle: Handler,
        *,
        labels: Collection[str] = (),
        partition: str = "",
        concurrency: int = 1,
        handler_timeout_ms: int | None = None,
        retries: Retries | None = None,
        max_held: int | None = None,
        policy: LeasePolicy | None = None,
        polling: Polling | None = None,
        waker: Waker | None = None,
        beat_store: c.Store | None = None,
        max_output_bytes: int = MAX_OUTPUT_BYTES,
    ) -> None:
        """An instance that has not begun; needs a running event loop.

        `max_held` is its budget in the store: how many claimed jobs it may hold at once, whatever
        its concurrency. `waker` tells it of new work; without one it looks for it.
        """
        if not callable(handle):
            raise MisuseError(f"handle must be callable, got {shown(handle)}")
        check_whole("concurrency", concurrency, 1, MOST_CONCURRENT)
        check_whole("max_output_bytes", max_output_bytes, 1, MAX_OUTPUT_BYTES)
        if handler_timeout_ms is not None:
            check_duration("handler_timeout_ms", handler_timeout_ms)
        self._loop = asyncio.get_running_loop()
        self._concurrency = concurrency
        self.identity = Identity(instance=f"runner-{uuid.uuid4().hex}")
        self.policy = LeasePolicy() if policy is None else policy
        terms = self.policy.terms()
        self._holds = HoldTable(terms, self.policy.local_margin_ms)
        self._loop_watch = LoopWatch(self._loop, 2 * longest_nap_ms(self.policy))
        store_time = StoreTime(store if beat_store is None else beat_store)
        self._claims = Claims(
            self.identity.instance,
            terms,
            partition,
            canonical_labels(labels),
            self._holds,
            self._made,
        )
        self._registration = c.Register(
            self.identity.instance,
            "runner",
            self.identity.host,
            self.identity.pid,
            max_held=max_held,
        )
        self._pulse = Pulse(
            store,
            store_time,
            self.identity,
            self.policy,
            self._holds,
            self._loop_watch,
            lambda: None,
            self._swept,
            self._registered_as,
        )
        self._sender = Sender(store, self.policy, self._may)
        self._execution = Execution(
            self.identity.instance,
            evidence.process_of(os.getpid()),
            self.policy,
            handle,
            Endings(
                Retries() if retries is None else retries,
                None if handler_timeout_ms is None else Ms(handler_timeout_ms),
            ),
            max_output_bytes,
            self._sender,
            self._holds,
            store_time,
            self._pulse.may,
            self._given_back,
        )
        self._waker = waker
        self._idleness = Idleness(polling or Polling(), waker)
        self._runs: dict[c.Hold, LiveRun] = {}
        self._tasks: dict[c.Hold, asyncio.Task[None]] = {}
        self._room = asyncio.Event()
        """Some slot has become free, or the runner ends."""
        self._idle = asyncio.Event()
        """The last look found nothing, and nothing runs."""
        self._until_empty = False
        self._claimed = 0
        self._give_up_at: int | None = None
        """When the drain that is under way gives up what is left."""
        self._claiming: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._draining: asyncio.Task[bool] | None = None
        self._drained = asyncio.Event()

    # Its own life ---------------------------------------------------------------------------

    async def start(self) -> None:
        """Register, begin to beat, and claim as soon as the heart is steady."""
        self._pulse.start()
        self._claiming = asyncio.ensure_future(self._claim())
        if self._waker is not None:
            self._listening = asyncio.ensure_future(self._waker.listen(self._idleness.wake))

    async def run(
        self,
        *,
        until_empty: bool = False,
        signals: bool = True,
        finish_ms: int = 0,
        timeout_ms: int = 30_000,
    ) -> bool:
        """Work until somebody calls `drain`, or SIGTERM or SIGINT comes (with `signals`, on the
        main thread's loop); with `until_empty`, only until a look finds nothing and nothing runs.
        What the drain says."""
        ends: list[asyncio.Future[bool]] = [asyncio.ensure_future(self._drained.wait())]
        self._until_empty = until_empty
        if until_empty:
            ends.append(asyncio.ensure_future(self._idle.wait()))
        if signals and threading.current_thread() is threading.main_thread():
            by_signal = drain_when_signaled(self, finish_ms=finish_ms, timeout_ms=timeout_ms)
            ends.append(asyncio.ensure_future(by_signal))
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            return await self.drain(finish_ms=finish_ms, timeout_ms=timeout_ms)
        finally:
            for end in ends:
                end.cancel()

    async def drain(self, *, finish_ms: int = 0, timeout_ms: int = 30_000) -> bool:
        """Claim nothing more, let what runs finish for `finish_ms`, then stop it; what may be
        requeued goes back to the queue, the rest fails. The heart is the last to stop.

        True: all is written. False: `timeout_ms` more were not enough; what is left keeps its
        lease, which lapses. A second call waits for the first.
        """
        if self._draining is None:
            self._draining = asyncio.ensure_future(self._drain(finish_ms, timeout_ms))
        return await asyncio.shield(self._draining)

    async def __aenter__(self) -> Runner:
        try:
            await self.start()
        except BaseException:
            await self.drain()
            raise
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.drain()

    def wake(self) -> None:
        """There may be work: look now. From any thread."""
        tell(self._loop, self._idleness.wake)

    def health(self) -> Health:
        """How this instance stands now."""
        heart = self._pulse.heart
        stages = [run.stage for run in tuple(self._runs.values())]
        finishing = stages.count(Stage.FINISHING)
        return Health(
            instance=self.identity.instance,
            phase=self._pulse.phase(),
            claiming=self._draining is None and self._pulse.may(Act.CLAIM),
            listening=self._idleness.listening,
            failures=heart.failures,
            last_beat_ms=None if heart.pulse is None else boot_ms() - heart.pulse.answered_at,
            last_error=self._pulse.last_error,
            loop_stalled_ms=self._loop_watch.stalled_ms,
            running=len(stages) - finishing,
            finishing=finishing,
            held=len(self._holds.ids()),
            claimed=self._claimed,
        )

    # What the heart's and the store's threads ask --------------------------------------------

    def _may(self, act: Act) -> bool:
        allowed = self._pulse.may(act)
        return self._claims.may(allowed) if act is Act.CLAIM else allowed

    def _registered_as(self) -> c.Register:
        """With the last claim number, so that a claim that comes after this takes nothing new."""
        return evolve(self._registration, claim_no=self._claims.number)

    def _swept(self, hold: c.Hold) -> None:
        """By its policy the job may be back in the queue."""
        self.wake()

    def _given_back(self, due_in_ms: int) -> None:
        """It is told to nobody when a job is due, so this runner looks for it then."""
        self._loop.call_later(due_in_ms / 1000, self._idleness.wake)

    def _made(self, grant: Grant) -> LiveRun:
        return LiveRun(grant, self._loop, self._loop_watch, self.policy.stall_limit_ms)

    # Claims ---------------------------------------------------------------------------------

    async def _claim(self) -> None:
        while self._draining is None:
            try:
                await self._claim_once()
            except NotAnsweredError as error:
                log.info("%s: %s", self.identity.instance, error)
            except Exception:  # whatever it was: who claims no more looks like an idle one
                log.exception("%s: a claim failed", self.identity.instance)
                await self._idleness.wait()

    async def _claim_once(self) -> None:
        free = self._concurrency - len(self._tasks)
        if not free:
            self._room.clear()
            await self._room.wait()
            return
        if not self._pulse.may(Act.CLAIM):
            await asyncio.sleep(_LOOK_S)
            return
        self._idleness.look()
        taken = await self._claims.claim(self._sender, free, self._no_claim)
        if isinstance(taken, Refused):
            # One that is not registered will be, by its heart; a budget is freed by an end.
            if taken.reason is not Refusal.BUDGET:
                log.warning("%s: a claim was refused: %s", self.identity.instance, taken.reason)
            await self._idleness.wait()
            return
        self._claimed += len(taken)
        for run in taken:
            self._begin(run)
        if taken:
            self._idleness.found()
        elif not self._tasks:
            self._idle.set()
        if len(taken) < min(free, MOST_AT_ONCE):
            await self._idleness.wait()

    def _no_claim(self) -> bool:
        """Is a claim that has no answer given up? One that may have taken jobs, only at the end."""
        if self._draining is None:
            return False
        return not self._claims.open or self._given_up_all()

    def _given_up_all(self) -> bool:
        return self._give_up_at is not None and boot_ms() >= self._give_up_at

    # From the claim to the last write -------------------------------------------------------

    def _begin(self, run: LiveRun) -> None:
        self._idle.clear()
        if self._draining is not None:
            run.abort(Cause.DRAIN)
        self._runs[run.hold] = run
        self._tasks[run.hold] = asyncio.ensure_future(self._live(run))

    async def _live(self, run: LiveRun) -> None:
        job_id = run.hold.job_id
        try:
            await self._execution.run(run)
        except NotAnsweredError as error:
            log.error("%s: its end is lost, and its lease lapses: %s", job_id, error)
        except Exception:  # a fault of the runtime's own; the lease lapses, and says so
            log.exception("%s: given up", job_id)
        finally:
            self._holds.let_go(run.hold)
            self._runs.pop(run.hold, None)
            self._tasks.pop(run.hold, None)
            self._room.set()
            if self._until_empty and not self._tasks:
                self._idleness.wake()

    # Drain ----------------------------------------------------------------------------------

    async def _drain(self, finish_ms: int, timeout_ms: int) -> bool:
        finish_until = boot_ms() + finish_ms
        self._give_up_at = finish_until + timeout_ms
        self._pulse.drain()
        self._idleness.urge()
        self._room.set()
        for run in tuple(self._runs.values()):
            if run.stage is Stage.CLAIMED:
                run.abort(Cause.DRAIN)
        await self._last_claim()
        await done_by(self._tasks, finish_until)
        for run in tuple(self._runs.values()):
            run.abort(Cause.DRAIN)
        clean = await done_by(self._tasks, self._give_up_at) and not self._claims.open
        if self._tasks:
            log.warning("drain timed out with %d jobs; their leases lapse", len(self._tasks))
            await cut_off(self._tasks)
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait({self._listening})
        await asyncio.to_thread(self._pulse.stop)
        if clean:
            try:
                await self._sender.send(c.Deregister(self.identity.instance), tries=2)
            except NotAnsweredError as error:
                log.warning("%s", error)
        await self._sender.close()
        self._drained.set()
        return clean

    async def _last_claim(self) -> None:
        """The claim that is on its way is answered first: what it took is given back."""
        if self._claiming is None:
            return
        if self._claims.open:
            try:
                await self._sender.send(self._registered_as(), until=self._given_up_all)
            except NotAnsweredError as error:
                log.warning("%s", error)
        await asyncio.wait({self._claiming})
