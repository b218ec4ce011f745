"""The heart: whether this instance may act, judged by its own accepted beats alone.

    registering ─▶ steady ⇄ faint ─▶ quiesced ─▶ recovering ─▶ steady        draining ─▶ stopped

* A beat goes out every heartbeat; every quarter of one while the heart is hurried (its sweeper has
  an open suspicion), not steady, or the last beat failed.
* Steady is who got an answer within a heartbeat and an operation timeout of the one before.
* One or two failures, or a time in which this instance did not run, make it faint until the next
  accepted beat. Three failures quiesce it; then it registers anew, and three good beats readmit it.
* It beats in every phase until it is stopped: renewing is never forbidden.

All times are on the instance's own clock, which runs during suspend. State and event go in, state
and what to send come out; the runtime and the simulator drive the same functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from attrs import frozen

from unswept.core.policy import LeasePolicy
from unswept.core.records import changed
from unswept.core.units import MonoMs, Ms


class Phase(StrEnum):
    """What the heart knows of itself."""

    REGISTERING = "registering"
    STEADY = "steady"
    FAINT = "faint"
    QUIESCED = "quiesced"
    RECOVERING = "recovering"
    DRAINING = "draining"
    STOPPED = "stopped"


class Act(StrEnum):
    """What an instance may send only in some phases. All else it may always send. (L10)"""

    ADMIT = "admit"
    CLAIM = "claim"
    START = "start"
    DELAY = "delay"
    SWEEP = "sweep"


_NOTHING: Final[frozenset[Act]] = frozenset()

MAY: Final[Mapping[Phase, frozenset[Act]]] = MappingProxyType(
    {
        Phase.REGISTERING: _NOTHING,
        Phase.STEADY: frozenset(Act),
        Phase.FAINT: frozenset({Act.ADMIT, Act.CLAIM, Act.START}),
        Phase.QUIESCED: _NOTHING,
        Phase.RECOVERING: _NOTHING,
        Phase.DRAINING: _NOTHING,
        Phase.STOPPED: _NOTHING,
    }
)
"""Law L10 as a table."""

_SETTLED: Final = frozenset({Phase.STEADY, Phase.DRAINING})
"""Here a beat is not hurried by the phase."""
_UNMOVED: Final = frozenset({Phase.DRAINING, Phase.STOPPED, Phase.QUIESCED})
"""No beat ends these: a quiesced heart recovers by its registration."""

FAILURES_TO_QUIESCE: Final = 3
BEATS_TO_READMIT: Final = 3


@frozen
class Pulse:
    """What the accepted beats prove: that the store took renewals, and how closely."""

    sent_at: MonoMs
    """The send of the last accepted beat."""
    answered_at: MonoMs
    """Its answer."""
    steady_since: MonoMs
    """Since this answer no gap was longer than a heartbeat and an operation timeout."""
    close_since: MonoMs
    """Since this answer no gap was longer than a quarter of a heartbeat and a timeout."""


def accepted(pulse: Pulse | None, sent_at: MonoMs, now: MonoMs, steady_ms: Ms, gap_ms: Ms) -> Pulse:
    """The pulse after one more accepted beat. (L12)

    A gap runs from the send of one accepted beat to the answer of the next; one that is too long
    restarts what the pulse proves, at this answer.
    """
    if pulse is None:
        return Pulse(sent_at, now, now, now)
    gap = now - pulse.sent_at
    return Pulse(
        sent_at,
        now,
        now if gap > steady_ms else pulse.steady_since,
        now if gap > gap_ms else pulse.close_since,
    )


@frozen
class Flight:
    """The one beat that is on its way."""

    number: int
    sent_at: MonoMs


@frozen(slots=False)
class Heart:
    """All that an instance knows of its own standing."""

    policy: LeasePolicy
    phase: Phase
    next_beat_at: MonoMs
    last_number: int = 0
    flight: Flight | None = None
    pulse: Pulse | None = None
    failures: int = 0
    """Beats in a row that failed."""
    good_beats: int = 0
    """Beats accepted since the registration that recovering waits on."""
    known_since: MonoMs | None = None
    """When the store last said that it knows this instance; None: it has to register."""
    hurried: bool = False
    """The sweeper has an open suspicion, or is looking."""


@frozen
class SendRegister:
    """Ask the store to register this instance."""


@frozen
class SendBeat:
    """Send a heartbeat for all holds; its answer is to come back under this number."""

    number: int


Effect = SendRegister | SendBeat
Step = tuple[Heart, tuple[Effect, ...]]


def boot(policy: LeasePolicy, now: MonoMs) -> Heart:
    """A new instance's heart; its first tick registers and beats."""
    return Heart(policy, Phase.REGISTERING, next_beat_at=now)


def phase_at(heart: Heart, now: MonoMs) -> Phase:
    """The phase now: a steady heart that has had no answer in time is faint already."""
    if heart.phase is not Phase.STEADY:
        return heart.phase
    late = heart.pulse is None or now - heart.pulse.answered_at > heart.policy.steady_ms
    return Phase.FAINT if late else heart.phase


def may(heart: Heart, act: Act, now: MonoMs) -> bool:
    """May this instance send an admit, claim, start, delay or sweep now? (L10)"""
    return act in MAY[phase_at(heart, now)]


def tick(heart: Heart, now: MonoMs) -> Step:
    """Time has passed: give up a beat that took too long, and send the next one if it is due."""
    if heart.phase is Phase.STOPPED:
        return heart, ()
    phase = phase_at(heart, now)
    if phase is not heart.phase:
        heart = changed(heart, phase=phase)
    if heart.flight is not None:
        if now - heart.flight.sent_at < heart.policy.operation_timeout_ms:
            return heart, ()
        heart = failed(heart, heart.flight.number, now)
    if now < heart.next_beat_at:
        return heart, ()
    number = heart.last_number + 1
    heart = changed(heart, last_number=number, flight=Flight(number, now))
    if heart.known_since is None:
        return heart, (SendRegister(), SendBeat(number))
    return heart, (SendBeat(number),)


def wake_at(heart: Heart) -> MonoMs | None:
    """When `tick` has something to do next; None: never again."""
    if heart.phase is Phase.STOPPED:
        return None
    if heart.flight is not None:
        return MonoMs(heart.flight.sent_at + heart.policy.operation_timeout_ms)
    return heart.next_beat_at


def registered(heart: Heart, now: MonoMs) -> Heart:
    """The store knows this instance. One that was quiesced now recovers, by beats sent from now."""
    if heart.phase is Phase.QUIESCED:
        heart = changed(heart, phase=Phase.RECOVERING, good_beats=0)
    if heart.known_since is None and heart.phase is not Phase.STOPPED:
        heart = changed(heart, next_beat_at=min(heart.next_beat_at, now))
    return changed(heart, known_since=now)


def in_time(heart: Heart, number: int, now: MonoMs) -> bool:
    """Is this the answer that is waited for? One that took as long as an operation timeout, or was
    read only after a suspension, proves nothing, and its renewals are not relied on."""
    flight = heart.flight
    if flight is None or flight.number != number:
        return False
    return now - flight.sent_at < heart.policy.operation_timeout_ms


def answered(heart: Heart, number: int, now: MonoMs, registered: bool, busy: bool = False) -> Heart:
    """A beat was accepted; one that is not `in_time` counts as failed. `busy`: some hold's row was
    locked, and is asked for again after a quarter of a heartbeat. (L8)"""
    flight = heart.flight
    if flight is None or not in_time(heart, number, now):
        return failed(heart, number, now)
    policy = heart.policy
    known = heart.known_since
    after_known = known is not None and flight.sent_at >= known
    if after_known and not registered:
        known, after_known = None, False
    good_beats = heart.good_beats + 1 if after_known else heart.good_beats
    phase = _phase_after_beat(heart.phase, known is not None, good_beats)
    pause = _pause(policy, phase, heart.hurried or busy)
    return changed(
        heart,
        flight=None,
        failures=0,
        good_beats=good_beats,
        known_since=known,
        pulse=accepted(heart.pulse, flight.sent_at, now, policy.steady_ms, policy.gap_ms),
        phase=phase,
        next_beat_at=MonoMs(max(now, flight.sent_at + pause)),
    )


def failed(heart: Heart, number: int, now: MonoMs) -> Heart:
    """A beat failed, or its outcome is unknown: try again a quarter of a heartbeat after it."""
    flight = heart.flight
    if flight is None or flight.number != number:
        return heart
    failures = heart.failures + 1
    phase = _phase_after_failure(heart.phase, failures)
    return changed(
        heart,
        flight=None,
        failures=failures,
        phase=phase,
        known_since=None if phase is Phase.QUIESCED else heart.known_since,
        next_beat_at=MonoMs(max(now, flight.sent_at + heart.policy.retry_ms)),
    )


def hurry(heart: Heart, hurried: bool, now: MonoMs) -> Heart:
    """While hurried, beat every quarter of a heartbeat, beginning at once."""
    if hurried == heart.hurried:
        return heart
    heart = changed(heart, hurried=hurried)
    if not hurried or heart.pulse is None:
        return heart
    pause = _pause(heart.policy, heart.phase, hurried)
    return changed(heart, next_beat_at=MonoMs(max(now, heart.pulse.sent_at + pause)))


def drain(heart: Heart) -> Heart:
    """No new work from here on; beats go on until `stop`."""
    return heart if heart.phase is Phase.STOPPED else changed(heart, phase=Phase.DRAINING)


def stop(heart: Heart) -> Heart:
    """The last beat has been sent."""
    return changed(heart, phase=Phase.STOPPED, flight=None)


def _phase_after_beat(phase: Phase, known: bool, good_beats: int) -> Phase:
    if phase in _UNMOVED:
        return phase
    if not known:
        # The trial belongs to a registration: without it, it begins anew.
        return Phase.QUIESCED if phase is Phase.RECOVERING else Phase.REGISTERING
    if phase is Phase.RECOVERING and good_beats < BEATS_TO_READMIT:
        return phase
    return Phase.STEADY


def _phase_after_failure(phase: Phase, failures: int) -> Phase:
    if phase is Phase.RECOVERING:
        return Phase.QUIESCED
    if phase in (Phase.STEADY, Phase.FAINT):
        return Phase.QUIESCED if failures >= FAILURES_TO_QUIESCE else Phase.FAINT
    return phase


def _pause(policy: LeasePolicy, phase: Phase, urgent: bool) -> Ms:
    """From one beat to the next."""
    relaxed = phase in _SETTLED and not urgent
    return policy.heartbeat_interval_ms if relaxed else policy.retry_ms
