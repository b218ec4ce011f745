"""The two-observation sweep: a job is swept only if a suspicion of it has stood for a window.

* A suspicion begins when the answer that named the suspect arrived, and is of one stamp, (epoch,
  beats): a renewal ends it, whatever the deadline says.
* The window counts only while this instance's own beats were accepted closely, so that nothing
  that stops every renewal (an outage, a lock on the table, a clock step) can pass for a dead owner.
* A suspect whose row is locked is forgotten: its owner cannot renew it either.
* An instance never suspects its own holds.
* When half of all leases look expired at once, a breaker may say so, and may let the sweeps wait
  for a bounded time: it is off unless the policy asks for it.

All times are on the instance's own clock, but where a name says `StoreMs`. (L12)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from attrs import frozen

from unswept.core import heart as hearts
from unswept.core.commands import Suspects, Sweep, Target
from unswept.core.heart import Act, Heart, Pulse
from unswept.core.lease import RequeueRule
from unswept.core.policy import Breaker, LeasePolicy
from unswept.core.records import changed
from unswept.core.replies import Suspect, SuspectsPage
from unswept.core.units import MonoMs, Ms, StoreMs

PAGE: Final = 1_000
"""Suspects that one page names, and targets that one sweep has, at most."""


@frozen
class Suspicion:
    """One suspect, under the stamp that was seen, since the first answer that named it."""

    job_id: str
    epoch: int
    beats: int
    since: MonoMs
    window_ms: Ms
    first_seen_at: StoreMs
    """The store time of the answer that first named it."""


def window_ms(own_ms: Ms, row_ms: Ms, requeue: RequeueRule, ttl_ms: Ms) -> Ms:
    """How long a suspicion must stand: the longer of the sweeper's window and the owner's; for a
    job that may be requeued also the row's ttl, so that its fence needs no store clock. (L12)"""
    window = max(own_ms, row_ms)
    return max(window, ttl_ms) if requeue is RequeueRule.ALLOWED else window


def observe(
    known: Suspicion | None, seen: Suspect, own_window_ms: Ms, now: MonoMs, at: StoreMs
) -> Suspicion:
    """The suspicion after an answer that named this suspect: the one that stands if the stamp is
    the same, a new one otherwise."""
    if known is not None and (known.epoch, known.beats) == (seen.epoch, seen.beats):
        return known
    window = window_ms(own_window_ms, seen.confirm_ms, seen.requeue, seen.ttl_ms)
    return Suspicion(seen.job_id, seen.epoch, seen.beats, now, window, at)


def ripens_at(suspicion: Suspicion, pulse: Pulse) -> MonoMs:
    """When the suspicion has stood for its window, if no beat fails until then."""
    return MonoMs(max(suspicion.since, pulse.close_since) + suspicion.window_ms)


def is_ripe(suspicion: Suspicion, pulse: Pulse, gap_ms: Ms, now: MonoMs) -> bool:
    """Has the suspicion stood for its whole window, with this instance's own beats accepted
    closely from its beginning until now? (L12)"""
    return now >= ripens_at(suspicion, pulse) and now - pulse.sent_at <= gap_ms


@frozen
class Look:
    """The page of suspects that is on its way."""

    number: int
    after: str | None
    sent_at: MonoMs


@frozen(slots=False)
class Sweeper:
    """What this instance suspects, and where its present pass over the suspects stands."""

    policy: LeasePolicy
    next_pass_at: MonoMs
    suspicions: Mapping[str, Suspicion]
    pass_began_at: MonoMs | None = None
    """When the present pass began; None: none is under way."""
    look: Look | None = None
    last_number: int = 0
    held: int | None = None
    """How many leases there were in all when the last pass began; None: not asked."""
    tripped_at: MonoMs | None = None
    """Since when what is ripe looks correlated."""


@frozen
class SendSuspects:
    """Ask for a page of suspects; its answer is to come back under this number."""

    number: int
    command: Suspects


@frozen
class SendSweep:
    """Sweep these confirmed suspects."""

    targets: tuple[Target, ...]

    def command(self, sweeper: str) -> Sweep:
        """The command, in this instance's name."""
        return Sweep(sweeper, self.targets)


@frozen
class FirstSight:
    """A suspect that was not suspected before: the moment for process evidence. (L9)"""

    suspect: Suspect


@frozen
class Correlated:
    """So many of all leases look expired at once that a fault which they share is likelier than so
    many dead owners."""

    suspects: int
    held: int
    until: MonoMs | None
    """The sweeps wait until then, for those that are suspects still; None: they do not wait."""


@frozen
class GaveWay:
    """The sweeps have waited for as long as they may, and go out though the suspects still look
    correlated."""

    suspects: int
    held: int


Effect = SendSuspects | SendSweep | FirstSight | Correlated | GaveWay
Step = tuple[Sweeper, tuple[Effect, ...]]


def begin(policy: LeasePolicy, now: MonoMs) -> Sweeper:
    """A sweeper that suspects nobody; its first pass comes after one sweep interval."""
    return Sweeper(policy, MonoMs(now + policy.sweep_interval_ms), {})


def tick(sweeper: Sweeper, heart: Heart, now: MonoMs, own: Collection[str]) -> Step:
    """Time has passed: sweep what is ripe, and begin the next pass when it is due. (L10)

    `own` are the ids of the jobs that this instance holds by now: a grant that was acknowledged
    only after its job was suspected ends the suspicion.
    """
    if now < sweeper.next_pass_at and _is_idle(sweeper):
        return sweeper, ()
    sweeper = _without(sweeper, own)
    if sweeper.look and now - sweeper.look.sent_at >= sweeper.policy.operation_timeout_ms:
        sweeper = failed(sweeper, sweeper.look.number, now)
    if heart.pulse is None or not hearts.may(heart, Act.SWEEP, now):
        return sweeper, ()
    sweeper, sweeps = _sweep_unless_correlated(sweeper, heart.pulse, now)
    if sweeper.pass_began_at is not None or now < sweeper.next_pass_at:
        return sweeper, sweeps
    sweeper = changed(sweeper, pass_began_at=now)
    sweeper, look = _look(sweeper, None, now)
    return sweeper, (*sweeps, look)


def wake_at(sweeper: Sweeper, heart: Heart, now: MonoMs) -> MonoMs | None:
    """When `tick` has something to do next; None: not before the heart's next event."""
    if _is_idle(sweeper):
        return sweeper.next_pass_at if sweeper.next_pass_at > now else None
    if sweeper.look is not None:
        times = [MonoMs(sweeper.look.sent_at + sweeper.policy.operation_timeout_ms)]
    else:
        times = [sweeper.next_pass_at]
    if heart.pulse is not None:
        times += [ripens_at(suspicion, heart.pulse) for suspicion in sweeper.suspicions.values()]
    if sweeper.tripped_at is not None:
        times.append(MonoMs(sweeper.tripped_at + sweeper.policy.breaker_max_ms))
    return min((time for time in times if time > now), default=None)


def _is_idle(sweeper: Sweeper) -> bool:
    """Is nobody suspected, no page on its way, and the breaker quiet? So it is nearly always."""
    return not sweeper.suspicions and sweeper.look is None and sweeper.tripped_at is None


def wants_hurry(sweeper: Sweeper) -> bool:
    """Should the heart beat every quarter? While a suspicion is open, and during a pass."""
    return bool(sweeper.suspicions) or sweeper.pass_began_at is not None


def answered(
    sweeper: Sweeper, number: int, page: SuspectsPage, own: Collection[str], now: MonoMs
) -> Step:
    """A page of suspects arrived: whom it names is suspected, whom it passes over no longer is.
    `own` are the ids of the jobs that this instance holds."""
    look = sweeper.look
    if look is None or look.number != number:
        return sweeper, ()
    if now - look.sent_at >= sweeper.policy.operation_timeout_ms:
        return failed(sweeper, number, now), ()
    last = page.suspects[-1].job_id if page.more else None
    kept = {
        job_id: suspicion
        for job_id, suspicion in sweeper.suspicions.items()
        if not _covers(look.after, last, job_id)
    }
    sights: list[Effect] = []
    for suspect in page.suspects:
        if suspect.job_id in own:
            continue
        known = sweeper.suspicions.get(suspect.job_id)
        suspicion = observe(known, suspect, sweeper.policy.confirm_after_ms, now, page.at)
        kept[suspect.job_id] = suspicion
        if suspicion is not known:
            sights.append(FirstSight(suspect))
    held = sweeper.held if page.held is None else page.held
    sweeper = changed(sweeper, look=None, suspicions=kept, held=held)
    if last is not None:
        sweeper, further = _look(sweeper, last, now)
        return sweeper, (*sights, further)
    return _end_pass(sweeper, now, sweeper.policy.sweep_interval_ms), tuple(sights)


def failed(sweeper: Sweeper, number: int, now: MonoMs) -> Sweeper:
    """A page failed or took too long: look again after a quarter of a heartbeat."""
    if sweeper.look is None or sweeper.look.number != number:
        return sweeper
    return _end_pass(changed(sweeper, look=None), now, sweeper.policy.retry_ms)


def found_locked(sweeper: Sweeper, locked: Collection[str]) -> Sweeper:
    """A beat found these rows locked: their owners cannot renew them, so they are forgotten and
    must be seen anew."""
    return _without(sweeper, locked)


def _without(sweeper: Sweeper, job_ids: Collection[str]) -> Sweeper:
    if sweeper.suspicions.keys().isdisjoint(job_ids):
        return sweeper
    kept = {k: v for k, v in sweeper.suspicions.items() if k not in job_ids}
    return changed(sweeper, suspicions=kept)


def _look(sweeper: Sweeper, after: str | None, now: MonoMs) -> tuple[Sweeper, SendSuspects]:
    number = sweeper.last_number + 1
    sweeper = changed(sweeper, last_number=number, look=Look(number, after, now))
    counted = sweeper.policy.breaker is not Breaker.OFF and after is None
    return sweeper, SendSuspects(number, Suspects(after, PAGE, counted))


def _end_pass(sweeper: Sweeper, now: MonoMs, pause_ms: Ms) -> Sweeper:
    began = now if sweeper.pass_began_at is None else sweeper.pass_began_at
    return changed(sweeper, pass_began_at=None, next_pass_at=MonoMs(max(now, began + pause_ms)))


def looks_correlated(suspects: int, held: int) -> bool:
    """At least 3 suspects, and at least half of all leases."""
    return suspects >= 3 and 2 * suspects >= held


def holds_back(breaker: Breaker, tripped_at: MonoMs, max_ms: Ms, now: MonoMs) -> bool:
    """Must what is ripe still wait? Only where the breaker defers, and only so long. (L13)"""
    return breaker is Breaker.DEFER and now < tripped_at + max_ms


def _sweep_unless_correlated(sweeper: Sweeper, pulse: Pulse, now: MonoMs) -> Step:
    """Sweep what is ripe, or say that it looks correlated, and wait where the policy says so."""
    policy, held, suspects = sweeper.policy, sweeper.held, len(sweeper.suspicions)
    if policy.breaker is Breaker.OFF or held is None or not looks_correlated(suspects, held):
        if sweeper.tripped_at is not None:
            sweeper = changed(sweeper, tripped_at=None)
        return _sweep_ripe(sweeper, pulse, now)
    if not any(is_ripe(s, pulse, policy.gap_ms, now) for s in sweeper.suspicions.values()):
        return sweeper, ()
    notices: list[Effect] = []
    defers = policy.breaker is Breaker.DEFER
    if sweeper.tripped_at is None:
        until = MonoMs(now + policy.breaker_max_ms) if defers else None
        notices.append(Correlated(suspects, held, until))
        sweeper = changed(sweeper, tripped_at=now)
    assert sweeper.tripped_at is not None
    if holds_back(policy.breaker, sweeper.tripped_at, policy.breaker_max_ms, now):
        return sweeper, tuple(notices)
    if defers:
        notices.append(GaveWay(suspects, held))
        sweeper = changed(sweeper, tripped_at=None)
    sweeper, sweeps = _sweep_ripe(sweeper, pulse, now)
    return sweeper, (*notices, *sweeps)


def _sweep_ripe(sweeper: Sweeper, pulse: Pulse, now: MonoMs) -> Step:
    """Sweep what is ripe, and forget it: if the sweep is lost, it will be suspected anew."""
    gap_ms = sweeper.policy.gap_ms
    ripe = [s for s in sweeper.suspicions.values() if is_ripe(s, pulse, gap_ms, now)]
    if not ripe:
        return sweeper, ()
    gone = {suspicion.job_id for suspicion in ripe}
    left = {k: v for k, v in sweeper.suspicions.items() if k not in gone}
    targets = tuple(Target(s.job_id, s.epoch, s.beats, s.first_seen_at) for s in ripe)
    starts = range(0, len(targets), PAGE)
    sweeps = tuple(SendSweep(targets[start : start + PAGE]) for start in starts)
    return changed(sweeper, suspicions=left), sweeps


def _covers(after: str | None, last: str | None, job_id: str) -> bool:
    """Did a page from `after` to `last` (None: to the end) have to name this job?"""
    return (after is None or job_id > after) and (last is None or job_id <= last)
