"""L10: what an instance may send, by what its heart knows of itself."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from attrs import frozen

from unswept.core import commands as c
from unswept.core import heart as rules
from unswept.core.heart import Act, Flight, Heart, Phase, Pulse
from unswept.core.policy import LeasePolicy
from unswept.core.units import MonoMs
from unswept.spec.observations import Send
from unswept.spec.theorems.drawn import Draw, unchecked
from unswept.spec.theorems.predicates import kept
from unswept.spec.theorems.theorem import Edit, theorem


@frozen
class Beating:
    """A heart in any state, under any policy; its policy skips the checks, which only bound it."""

    heart: Heart

    @staticmethod
    def drawn(draw: Draw) -> Beating:
        """Any phase and any times; the answer of a beat may be before its send."""
        policy = LeasePolicy.unchecked(
            heartbeat_interval_ms=draw(int, "_heartbeat_interval_ms"),
            operation_timeout_ms=draw(int, "_operation_timeout_ms"),
        )
        times = ("sent_at", "answered_at", "steady_since", "close_since")
        return Beating(
            Heart(
                policy,
                draw(Phase, "_phase"),
                next_beat_at=draw(int, "_next_beat_at"),
                last_number=draw(int, "_last_number"),
                flight=Flight(draw(int, "_number"), draw(int, "_flown_at"))
                if draw(bool, "_flies")
                else None,
                pulse=Pulse(*(draw(int, f"_{name}") for name in times))
                if draw(bool, "_has_pulse")
                else None,
                failures=draw(int, "_failures"),
                good_beats=draw(int, "_good_beats"),
                known_since=draw(int, "_known_since") if draw(bool, "_known") else None,
            )
        )


_SENT: Final[Mapping[Act, Any]] = MappingProxyType(
    {
        Act.ADMIT: unchecked(c.Admit),
        Act.CLAIM: unchecked(c.Claim),
        Act.START: unchecked(c.Start),
        Act.DELAY: unchecked(c.Delay),
        Act.SWEEP: unchecked(c.Sweep),
    }
)


def an_instance_sends_only_what_its_phase_allows(
    beating: Beating, act: Act, now: MonoMs
) -> bool | None:
    """An instance that is registering, quiesced, recovering, draining or stopped sends no admit,
    claim, start, delay or sweep; a faint one sends no delay and no sweep."""
    if not rules.may(beating.heart, act, now):
        return None
    phase = rules.phase_at(beating.heart, now)
    return kept("L10", Send("i", _SENT[act], phase, repeat=False)) and phase is not Phase.STOPPED


def a_late_answer_makes_faint(beating: Beating, now: MonoMs) -> bool | None:
    """Whose last answer is older than a heartbeat and an operation timeout (a suspension, say)
    sends no delay and no sweep, whatever it believed before."""
    heart = beating.heart
    fresh = (
        heart.pulse is not None
        and now - heart.pulse.answered_at
        <= heart.policy.heartbeat_interval_ms + heart.policy.operation_timeout_ms
    )
    return None if fresh else not _may_any(heart, _ONLY_STEADY, now)


def a_failed_beat_makes_faint(beating: Beating, now: MonoMs) -> bool | None:
    """After a beat that failed an instance sends no delay and no sweep, and after the third in a
    row nothing new at all."""
    heart = beating.heart
    if heart.flight is None or heart.failures < 0:
        return None
    after = rules.failed(heart, heart.flight.number, now)
    return not _may_any(after, frozenset(Act) if after.failures >= 3 else _ONLY_STEADY, now)


_ONLY_STEADY: Final = frozenset({Act.DELAY, Act.SWEEP})


def _may_any(heart: Heart, acts: frozenset[Act], now: MonoMs) -> bool:
    return any(rules.may(heart, act, now) for act in acts)


def an_instance_always_beats(beating: Beating, now: MonoMs) -> bool | None:
    """In every phase but stopped, an instance beats when its next beat is due and none is on its
    way: renewing is never forbidden."""
    heart = beating.heart
    if heart.phase is Phase.STOPPED or heart.flight is not None or now < heart.next_beat_at:
        return None
    _, effects = rules.tick(heart, now)
    return any(isinstance(effect, rules.SendBeat) for effect in effects)


THEOREMS: Final = (
    theorem(
        "L10",
        an_instance_sends_only_what_its_phase_allows,
        Edit(rules.may, "MAY[phase_at(heart, now)]", "MAY[heart.phase]"),
    ),
    theorem(
        "L10",
        a_late_answer_makes_faint,
        Edit(rules.phase_at, "heart.policy.steady_ms", "2 * heart.policy.steady_ms"),
    ),
    theorem(
        "L10",
        a_failed_beat_makes_faint,
        Edit(rules._phase_after_failure, "failures >= FAILURES_TO_QUIESCE", "failures > 3"),
    ),
    theorem(
        "L10",
        an_instance_always_beats,
        Edit(rules.tick, "now < heart.next_beat_at", "heart.phase is Phase.DRAINING"),
    ),
)
