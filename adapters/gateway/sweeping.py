"""An instance that admits nothing: it beats, looks for suspects, and sweeps those whose suspicion
has stood for its window under its own steady heart.

The heart and the sweeper are driven as a gateway's are (`pulse`). What became of each suspect is
read from the store itself, whoever brought it about: the owner, another sweeper, or this one.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import uuid
from collections.abc import Callable
from enum import StrEnum
from typing import Final, TypeVar

from attrs import evolve, frozen

from unswept.adapters.gateway.clock import boot_ms
from unswept.adapters.gateway.hold_table import HoldTable
from unswept.adapters.gateway.identity import Identity
from unswept.adapters.gateway.loop_watch import LoopWatch
from unswept.adapters.gateway.pulse import Pulse, longest_nap_ms
from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core import sweeper as sweepers
from unswept.core.errors import StoreError
from unswept.core.heart import Phase
from unswept.core.lease import ACTIVE, Status
from unswept.core.policy import LeasePolicy
from unswept.core.sweeper import Suspicion
from unswept.core.units import Ms

R = TypeVar("R")

ROLE: Final = "sweeper"
_LONGEST_NAP_MS: Final = 200

log: Final = logging.getLogger(__name__)


class Outcome(StrEnum):
    """What came of a suspect."""

    ORPHANED = "orphaned"
    REQUEUED = "requeued"
    """It is back in the queue under a later epoch, or somebody has claimed it since."""
    ENDED = "ended"
    """It is over: by a sweep, as its policy wants, or because its owner completed it."""
    RENEWED = "renewed"
    """Its owner lives and has renewed it meanwhile."""
    GONE = "gone"
    """There is no such job any more."""
    WAITING = "waiting"
    """Not decided: its window was not over, its row was locked, or its process was seen to live."""


@frozen
class Fate:
    """One suspect, what came of it, and how its job stands."""

    job_id: str
    outcome: Outcome
    status: Status | None
    owner: str | None
    epoch: int
    swept_here: bool
    """This instance swept it."""


@frozen
class Progress:
    """Where a sweep stands."""

    phase: Phase
    last_error: str | None
    """Why the last beat that failed did."""
    looked: bool
    """Have all suspects been looked at once?"""
    seen: int
    decided: int
    look_every_ms: Ms
    left_ms: Ms | None
    """In how long the last suspicion ripens, if no beat fails until then; None: there is none."""


@frozen
class Swept:
    """What a sweep came to."""

    instance: str
    looked: bool
    fates: tuple[Fate, ...]
    last_error: str | None

    @property
    def left(self) -> int:
        """Suspects that are not decided."""
        return sum(fate.outcome is Outcome.WAITING for fate in self.fates)


class Witness:
    """The store as the sweeper has it; notes whom the answers name. For any thread."""

    def __init__(self, store: c.Store, confirm_after_ms: Ms) -> None:
        """Nobody has been named."""
        self._store = store
        self._confirm_after_ms = confirm_after_ms
        self._lock = threading.Lock()
        self._named: set[str] = set()
        self.looked = False
        self.open: dict[str, tuple[r.Suspect, Suspicion]] = {}
        """Suspects of which it is not known what has become, under their last stamp."""
        self.due: set[str] = set()
        """Those of them that were swept, or that a whole pass has not named any more."""
        self.swept: set[tuple[str, int]] = set()
        """(job id, epoch) of each job that was swept over this."""

    def execute(self, command: c.Command[R]) -> R:
        """As the store does."""
        reply = self._store.execute(command)
        if isinstance(command, c.Suspects) and isinstance(reply, r.SuspectsPage):
            with self._lock:
                self._hear_page(command, reply)
        elif isinstance(command, c.Sweep) and isinstance(reply, r.Swept):
            with self._lock:
                self._hear_sweep(command, reply)
        return reply

    def ask(self) -> list[tuple[r.Suspect, r.Found | r.Refused]]:
        """How those that are due stand now."""
        with self._lock:
            due = [self.open[job_id][0] for job_id in sorted(self.due & self.open.keys())]
            self.due.clear()
        return [(suspect, self._store.execute(c.Find(suspect.job_id))) for suspect in due]

    def close(self, suspect: r.Suspect) -> None:
        """It is known what became of it, if it has not been named under another stamp since."""
        with self._lock:
            if self.open.get(suspect.job_id, (None,))[0] == suspect:
                del self.open[suspect.job_id]

    def suspicions(self) -> list[Suspicion]:
        """Those that are open."""
        with self._lock:
            return [suspicion for _, suspicion in self.open.values()]

    def suspects(self) -> list[r.Suspect]:
        """Those that are open."""
        with self._lock:
            return [suspect for suspect, _ in self.open.values()]

    def _hear_page(self, command: c.Suspects, page: r.SuspectsPage) -> None:
        if command.after is None:
            self._named.clear()
        now = boot_ms()
        for suspect in page.suspects:
            known = self.open.get(suspect.job_id)
            suspicion = sweepers.observe(
                None if known is None else known[1], suspect, self._confirm_after_ms, now, page.at
            )
            self.open[suspect.job_id] = suspect, suspicion
            self._named.add(suspect.job_id)
            self.due.discard(suspect.job_id)
        if not page.more:
            self.looked = True
            self.due |= self.open.keys() - self._named

    def _hear_sweep(self, command: c.Sweep, swept: r.Swept) -> None:
        for target, answer in zip(command.targets, swept.answers, strict=True):
            self.due.add(target.job_id)
            if answer.refusal is None and not answer.repeated:
                self.swept.add((target.job_id, target.epoch))


class SweepingInstance:
    """One run of it, on one event loop. The store is the caller's."""

    def __init__(self, store: c.Store, policy: LeasePolicy) -> None:
        """An instance that has not begun; needs a running event loop."""
        # Looking more often than a fleet does is harmless, and who waits for it is a person.
        interval = Ms(min(policy.sweep_interval_ms, policy.heartbeat_interval_ms))
        self._policy = evolve(policy, sweep_interval_ms=interval)
        self._store = store
        self._witness = Witness(store, policy.confirm_after_ms)
        self.identity = Identity(instance=f"{ROLE}-{uuid.uuid4().hex}")
        self._pulse = Pulse(
            self._witness,
            store,
            self.identity,
            self._policy,
            HoldTable(policy.terms(), policy.local_margin_ms),
            LoopWatch(asyncio.get_running_loop(), 2 * longest_nap_ms(policy)),
            lambda: None,
            lambda _: None,
            lambda: c.Register(self.identity.instance, ROLE, self.identity.host, self.identity.pid),
            keeps_house=False,
        )
        self._fates: dict[str, Fate] = {}

    async def run(
        self, stop: asyncio.Event, limit_ms: Ms | None, show: Callable[[Progress], None]
    ) -> Swept:
        """Sweep until no suspect that was seen is left, or `stop`, or `limit_ms` is over; then
        deregister."""
        until = None if limit_ms is None else boot_ms() + limit_ms
        self._pulse.start()
        try:
            while not (self._done() or stop.is_set() or _is_over(until)):
                await _set_within(stop, self._nap_ms(until))
                await asyncio.to_thread(self._decide)
                show(self._progress())
        finally:
            await self._end()
        await asyncio.to_thread(self._decide)  # what was swept at the last moment
        waiting = [_fate(suspect, None, swept_here=False) for suspect in self._witness.suspects()]
        fates = {**self._fates, **{fate.job_id: fate for fate in waiting}}
        return Swept(
            self.identity.instance,
            self._witness.looked,
            tuple(fates[job_id] for job_id in sorted(fates)),
            self._pulse.last_error,
        )

    def _done(self) -> bool:
        return self._witness.looked and not self._witness.open

    def _nap_ms(self, until: int | None) -> int:
        nap = min(_LONGEST_NAP_MS, self._policy.retry_ms)
        return nap if until is None else min(nap, max(1, until - boot_ms()))

    def _decide(self) -> None:
        """Read what became of those that are no longer named."""
        try:
            asked = self._witness.ask()
        except StoreError as error:  # they are due again after the next pass
            log.warning("%s: %s", self.identity.instance, error)
            return
        for suspect, found in asked:
            swept_here = (suspect.job_id, suspect.epoch) in self._witness.swept
            fate = _fate(suspect, found, swept_here=swept_here)
            if fate.outcome is not Outcome.WAITING:
                self._fates[suspect.job_id] = fate
                self._witness.close(suspect)

    def _progress(self) -> Progress:
        suspicions = self._witness.suspicions()
        pulse, now = self._pulse.heart.pulse, boot_ms()
        left = [max(0, sweepers.ripens_at(s, pulse) - now) for s in suspicions] if pulse else []
        decided = self._fates.keys() - {suspicion.job_id for suspicion in suspicions}
        return Progress(
            self._pulse.phase(),
            self._pulse.last_error,
            self._witness.looked,
            len(decided) + len(suspicions),
            len(decided),
            self._policy.sweep_interval_ms,
            Ms(max(left)) if left else None,
        )

    async def _end(self) -> None:
        self._pulse.drain()
        await asyncio.to_thread(self._pulse.stop)
        try:
            await asyncio.to_thread(self._store.execute, c.Deregister(self.identity.instance))
        except StoreError as error:
            log.warning("%s: could not deregister: %s", self.identity.instance, error)


def _fate(suspect: r.Suspect, found: r.Found | r.Refused | None, *, swept_here: bool) -> Fate:
    """What the store's row says of a suspect; None: it was not asked since."""
    if found is None:
        return Fate(suspect.job_id, Outcome.WAITING, None, suspect.owner, suspect.epoch, False)
    if isinstance(found, r.Refused):
        return Fate(suspect.job_id, Outcome.GONE, None, None, suspect.epoch, swept_here)
    lease = found.job.lease
    return Fate(
        suspect.job_id, _outcome(suspect, found), lease.status, lease.owner, lease.epoch, swept_here
    )


def _outcome(suspect: r.Suspect, found: r.Found) -> Outcome:
    lease = found.job.lease
    if lease.status is Status.ORPHANED:
        return Outcome.ORPHANED
    if lease.status not in ACTIVE:
        return Outcome.ENDED
    if lease.epoch != suspect.epoch:
        return Outcome.REQUEUED
    # One stamp more, by process evidence and not by the owner: it will be a suspect again. (L9)
    delayed = lease.delayed_at is not None and not suspect.delayed
    by_owner = lease.beats - suspect.beats - int(delayed)
    return Outcome.RENEWED if by_owner > 0 else Outcome.WAITING


def _is_over(until: int | None) -> bool:
    return until is not None and boot_ms() >= until


async def _set_within(event: asyncio.Event, ms: int) -> None:
    try:
        await asyncio.wait_for(event.wait(), ms / 1000)
    except TimeoutError:
        return
