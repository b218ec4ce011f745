"""Drives the core's heart, sweeper and housekeeper in real time, on threads of their own.

    watch     does what it is time for: beats that are due or overdue, local deadlines
    beats     sends heartbeats, one at a time, over the store that is kept for them
    errands   registers, looks for suspects, sweeps, cleans up

No thread waits for the event loop, and none but the last two waits for the store; so neither a
blocked loop nor a store that hangs keeps work from being stopped in time. (L11)
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from unswept.adapters.gateway import evidence
from unswept.adapters.gateway.clock import boot_ms
from unswept.adapters.gateway.hold_table import HoldTable
from unswept.adapters.gateway.identity import Identity
from unswept.adapters.gateway.loop_watch import LoopWatch
from unswept.core import commands as c
from unswept.core import heart as hearts
from unswept.core import housekeeper as keepers
from unswept.core import replies as r
from unswept.core import sweeper as sweepers
from unswept.core.errors import StoreError
from unswept.core.heart import Act, Heart, Phase
from unswept.core.policy import LeasePolicy
from unswept.core.units import MonoMs

LONGEST_NAP_MS: Final = 1_000
"""Waits are reckoned by a clock that stops during suspend; after one, none lasts longer."""

log: Final = logging.getLogger(__name__)


class Pulse:
    """One instance's standing with the store, kept alive whatever its event loop does."""

    def __init__(
        self,
        store: c.Store,
        beat_store: c.Store,
        identity: Identity,
        policy: LeasePolicy,
        holds: HoldTable,
        loop_watch: LoopWatch,
        on_beaten: Callable[[], None],
        on_swept: Callable[[c.Hold], None],
        registration: Callable[[], c.Register] | None = None,
        keeps_house: bool = True,
    ) -> None:
        """`on_beaten` hears, from the beats' thread, of each beat that was accepted in time,
        `on_swept`, from the errands', of each job that this instance orphaned. `registration`, for
        who is no gateway, says what it registers as. Who does not keep house evicts and forgets
        nothing: its policy need not have the fleet's retention."""
        now = boot_ms()
        self.heart = hearts.boot(policy, now)
        """Replaced as a whole and never changed, so that any thread may read it."""
        self.last_error: str | None = None
        """Why the last beat that failed did."""
        self._store = store
        self._beat_store = beat_store
        self._identity = identity
        self._policy = policy
        self._holds = holds
        self._loop_watch = loop_watch
        self._on_beaten = on_beaten
        self._on_swept = on_swept
        self._registration = registration or self._as_gateway
        self._keeps_house = keeps_house
        self._sweeper = sweepers.begin(policy, now)
        self._keeper = keepers.begin(policy, now)
        self._beat_due: tuple[int, MonoMs] | None = None
        """The one beat to send; a newer one takes the place of one that was never sent."""
        self._register_due = False
        self._warned_of: str | None = None
        """Why errands fail since the last beat that was accepted."""
        self._stopped = False
        # Guards all of the above, and wakes the threads that wait for it to change.
        self._changed = threading.Condition()
        self._threads = [
            threading.Thread(target=target, name=f"unswept-{target.__name__[1:]}", daemon=True)
            for target in (self._watch, self._beats, self._errands)
        ]

    # From any thread ------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to register and to beat."""
        for thread in self._threads:
            thread.start()

    def may(self, act: Act) -> bool:
        """May this instance send such a command now? (L10)"""
        return hearts.may(self.heart, act, boot_ms())

    def phase(self) -> Phase:
        """What the heart knows of itself now."""
        return hearts.phase_at(self.heart, boot_ms())

    def drain(self) -> None:
        """No new work; beats go on."""
        with self._changed:
            self._set_heart(hearts.drain(self.heart))

    def stop(self) -> None:
        """The last beat has been sent; returns once no thread of it will send anything more."""
        with self._changed:
            self._stopped = True
            self._set_heart(hearts.stop(self.heart))
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    # The watch ------------------------------------------------------------------------------

    def _watch(self) -> None:
        while not self._stopped:
            try:
                self._watch_once()
            except Exception:  # whatever it was: a thread that dies stops no work in time
                log.exception("%s: the watch failed", self._identity.instance)
                time.sleep(longest_nap_ms(self._policy) / 1000)

    def _watch_once(self) -> None:
        # After a suspension nothing comes before this.
        deadline = self._holds.expire(boot_ms())
        self._loop_watch.look(boot_ms())
        with self._changed:
            now = boot_ms()
            heart, effects = hearts.tick(self.heart, now)
            for effect in effects:
                if isinstance(effect, hearts.SendBeat):
                    self._beat_due = effect.number, now
                else:
                    self._register_due = True
            if heart is not self.heart:
                self._set_heart(heart)
            self._nap(now, hearts.wake_at(heart), deadline)

    def _nap(self, now: MonoMs, *times: MonoMs | None) -> None:
        """Wait until something changes or the first of these times has come."""
        naps = [time - now for time in times if time is not None]
        if not self._stopped:
            self._changed.wait(max(1, min([*naps, longest_nap_ms(self._policy)])) / 1000)

    def _set_heart(self, heart: Heart) -> None:
        before, self.heart = self.heart.phase, heart
        if heart.phase is not before:
            # While the store is away, recovering and quiesced take turns: one warning will do.
            lost = heart.phase is Phase.QUIESCED and before is not Phase.RECOVERING
            level = logging.WARNING if lost else logging.INFO
            log.log(level, "%s: %s, was %s", self._identity.instance, heart.phase, before)
        self._changed.notify_all()

    # Beats ----------------------------------------------------------------------------------

    def _beats(self) -> None:
        while (due := self._next_beat()) is not None:
            number, sent_at = due
            try:
                self._beat(number, sent_at)
            except Exception as error:  # whatever it was: a thread that dies beats no more
                self._beat_failed(number, error)

    def _next_beat(self) -> tuple[int, MonoMs] | None:
        with self._changed:
            while self._beat_due is None and not self._stopped:
                self._changed.wait()
            due, self._beat_due = self._beat_due, None
            return None if self._stopped else due

    def _beat(self, number: int, sent_at: MonoMs) -> None:
        watched = tuple(self._sweeper.suspicions)
        holds = self._holds.vouched()
        beat = c.Heartbeat(self._identity.instance, self._policy.terms(), holds, watched)
        self._beat_answered(number, sent_at, self._beat_store.execute(beat))

    def _beat_failed(self, number: int, error: Exception) -> None:
        if not isinstance(error, StoreError):
            log.exception("%s: a beat failed", self._identity.instance)
        with self._changed:
            self.last_error = f"{type(error).__name__}: {error}"
            self._set_heart(hearts.failed(self.heart, number, boot_ms()))

    def _beat_answered(self, number: int, sent_at: MonoMs, beaten: r.Beaten) -> None:
        busy = any(answer.answer is r.Answer.BUSY for answer in beaten.answers)
        with self._changed:
            now = boot_ms()
            in_time = hearts.in_time(self.heart, number, now)
            heart = hearts.answered(self.heart, number, now, beaten.registered, busy)
            if in_time and beaten.locked:
                self._sweeper = sweepers.found_locked(self._sweeper, beaten.locked)
            elif not in_time:
                self.last_error = f"a beat was answered after {now - sent_at} ms"
            self._set_heart(heart)
        if in_time:
            self._warned_of = None
            self._on_beaten()
            self._holds.hear(beaten.answers, sent_at)

    # Errands --------------------------------------------------------------------------------

    def _errands(self) -> None:
        while not self._stopped:
            try:
                self._run_errands()
            except StoreError as error:
                self._warn_once(str(error))
            except Exception:  # whatever it was: a thread that dies sweeps no more
                log.exception("%s: an errand failed", self._identity.instance)
            with self._changed:
                now = boot_ms()
                if not self._register_due:
                    wake = sweepers.wake_at(self._sweeper, self.heart, now)
                    self._nap(now, wake)

    def _warn_once(self, why: str) -> None:
        """While the store is away each errand fails alike."""
        if why != self._warned_of:
            self._warned_of = why
            log.warning("%s: %s", self._identity.instance, why)

    def _run_errands(self) -> None:
        with self._changed:
            register, self._register_due = self._register_due, False
        if register:
            self._register()
        self._sweep()
        if self._keeps_house:
            self._keep_house()

    def _register(self) -> None:
        self._store.execute(self._registration())
        with self._changed:
            self._set_heart(hearts.registered(self.heart, boot_ms()))

    def _as_gateway(self) -> c.Register:
        identity = self._identity
        return c.Register(identity.instance, "gateway", identity.host, identity.pid)

    def _sweep(self) -> None:
        with self._changed:
            own = self._holds.ids()
            sweeper, effects = sweepers.tick(self._sweeper, self.heart, boot_ms(), own)
            self._set_sweeper(sweeper)
            decided_by = self.heart
        while effects:
            effect, *rest = effects
            effects = (*self._do(effect, decided_by), *rest)

    def _do(self, effect: sweepers.Effect, decided_by: Heart) -> tuple[sweepers.Effect, ...]:
        if isinstance(effect, sweepers.SendSuspects):
            return self._look(effect)
        if isinstance(effect, sweepers.FirstSight):
            self._at_first_sight(effect.suspect)
        elif isinstance(effect, (sweepers.Correlated, sweepers.GaveWay)):
            log.warning("%s: %s", self._identity.instance, _told(effect))
        elif self._still_proves(decided_by):
            swept = self._store.execute(effect.command(self._identity.instance))
            for target, answer in zip(effect.targets, swept.answers, strict=True):
                if answer.refusal is None and not answer.repeated:
                    log.warning("%s orphaned %s", self._identity.instance, answer.job_id)
                    self._on_swept(c.Hold(target.job_id, target.epoch))
        return ()

    def _still_proves(self, decided_by: Heart) -> bool:
        """Has the heart not missed since, so that what was ripe then still is? An errand before
        this one may have taken long. (L12)"""
        pulse, then = self.heart.pulse, decided_by.pulse
        if pulse is None or then is None or not self.may(Act.SWEEP):
            return False
        close = pulse.close_since == then.close_since
        return close and boot_ms() - pulse.sent_at <= self._policy.gap_ms

    def _look(self, effect: sweepers.SendSuspects) -> tuple[sweepers.Effect, ...]:
        try:
            page = self._store.execute(effect.command)
        except StoreError:
            with self._changed:
                self._set_sweeper(sweepers.failed(self._sweeper, effect.number, boot_ms()))
            raise
        with self._changed:
            own = self._holds.ids()
            sweeper, effects = sweepers.answered(self._sweeper, effect.number, page, own, boot_ms())
            self._set_sweeper(sweeper)
        return effects

    def _set_sweeper(self, sweeper: sweepers.Sweeper) -> None:
        self._sweeper = sweeper
        hurried = sweepers.wants_hurry(sweeper)
        if hurried is not self.heart.hurried:
            self._set_heart(hearts.hurry(self.heart, hurried, boot_ms()))

    def _at_first_sight(self, suspect: r.Suspect) -> None:
        """A process that still lives buys its job one more ttl. (L9)"""
        if suspect.delayed or suspect.process is None or not evidence.lives(suspect.process):
            return
        if self.may(Act.DELAY):
            delay = c.Delay(suspect.job_id, suspect.epoch, suspect.beats, self._identity.instance)
            self._store.execute(delay)

    def _keep_house(self) -> None:
        with self._changed:
            self._keeper, looks = keepers.tick(self._keeper, self.heart, boot_ms())
        for look in looks:
            overdue: r.Overdue = self._store.execute(look)
            with self._changed:
                self._keeper, commands = keepers.answered(
                    self._keeper, overdue, self.heart, boot_ms()
                )
            for command in commands:
                if self.may(Act.SWEEP):
                    self._store.execute(command)


def _told(notice: sweepers.Correlated | sweepers.GaveWay) -> str:
    """What the breaker noticed, for the log."""
    many = f"{notice.suspects} suspects of {notice.held} leases look like one fault they share"
    if isinstance(notice, sweepers.GaveWay):
        return f"{many}; their sweeps have waited for long enough"
    if notice.until is None:
        return f"{many}; they are swept all the same"
    return f"{many}; their sweeps wait for {notice.until - boot_ms()} ms"


def longest_nap_ms(policy: LeasePolicy) -> int:
    """The longest that the watch ever waits."""
    return min(LONGEST_NAP_MS, policy.retry_ms)
