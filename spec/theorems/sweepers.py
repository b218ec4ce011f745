"""L12 (a): a sweep is sent only after a whole window in which the stamp stood still and the
sweeper's own beats had no gap."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from unswept.core import heart as hearts
from unswept.core import lease as rules
from unswept.core import sweeper
from unswept.core.heart import Phase, Pulse
from unswept.core.lease import Lease, RequeueRule
from unswept.core.policy import Breaker, LeasePolicy
from unswept.core.refusal import Refusal
from unswept.core.replies import Suspect, SuspectsPage
from unswept.core.sweeper import Look, SendSweep, Suspicion, Sweeper
from unswept.core.units import MAX_COUNT, MAX_MS, MonoMs, Ms, StoreMs
from unswept.spec.theorems.drawn import Asked, Draw, unchecked
from unswept.spec.theorems.hearts import Beating
from unswept.spec.theorems.theorem import Edit, theorem


@frozen
class Window:
    """A suspicion and a pulse."""

    suspicion: Suspicion
    pulse: Pulse

    @staticmethod
    def drawn(draw: Draw) -> Window:
        """Any numbers."""
        seen = ("epoch", "beats", "since", "window_ms", "first_seen_at")
        times = ("sent_at", "answered_at", "steady_since", "close_since")
        return Window(
            Suspicion(job_id="j", **{name: draw(int, f"_{name}") for name in seen}),
            Pulse(**{name: draw(int, f"_{name}") for name in times}),
        )


@frozen
class Seen:
    """A suspect as one look at the store shows it."""

    suspect: Suspect

    @staticmethod
    def drawn(draw: Draw) -> Seen:
        """Any numbers."""
        whole = ("epoch", "beats", "deadline", "ttl_ms", "confirm_ms")
        return Seen(
            Suspect(
                job_id="j",
                owner="o",
                requeue=draw(RequeueRule, "_requeue"),
                delayed=draw(bool, "_delayed"),
                process=None,
                **{name: draw(int, f"_{name}") for name in whole},
            )
        )


def a_ripe_suspicion_stood_for_its_window(window: Window, gap_ms: Ms, now: MonoMs) -> bool | None:
    """A suspicion is ripe only if it has stood for its whole window, no beat of the sweeper's own
    had a gap in all that time, and the last accepted beat is no older than the longest gap."""
    if not sweeper.is_ripe(window.suspicion, window.pulse, gap_ms, now):
        return None
    stood = now - window.suspicion.since >= window.suspicion.window_ms
    close = now - window.pulse.close_since >= window.suspicion.window_ms
    return stood and close and now - window.pulse.sent_at <= gap_ms


def a_missed_beat_restarts_the_window(
    window: Window, sent_at: MonoMs, answered_at: MonoMs, steady_ms: Ms, gap_ms: Ms, now: MonoMs
) -> bool | None:
    """After a gap in the sweeper's own beats no suspicion is ripe before another whole window has
    passed since the beat that ended the gap was answered."""
    if answered_at - window.pulse.sent_at <= gap_ms:
        return None
    pulse = hearts.accepted(window.pulse, sent_at, answered_at, steady_ms, gap_ms)
    if now - answered_at >= window.suspicion.window_ms:
        return None
    return not sweeper.is_ripe(window.suspicion, pulse, gap_ms, now)


def only_a_gap_restarts_what_a_pulse_proves(
    window: Window, sent_at: MonoMs, answered_at: MonoMs, steady_ms: Ms, gap_ms: Ms
) -> bool:
    """A gap that is too long sets `close_since` to the answer that ended it, and nothing else moves
    it: by induction, no gap since then was too long."""
    before = window.pulse
    after = hearts.accepted(before, sent_at, answered_at, steady_ms, gap_ms)
    if answered_at - before.sent_at > gap_ms:
        return after.close_since == answered_at and after.sent_at == sent_at
    return after.close_since == before.close_since and after.sent_at == sent_at


def a_renewed_suspect_is_suspected_anew(
    window: Window, seen: Seen, own_window_ms: Ms, now: MonoMs, at: StoreMs, later: MonoMs
) -> bool | None:
    """A suspect that bears another (epoch, beats) than before was renewed or granted in between:
    its suspicion begins anew, and is not ripe before the window has passed since this look."""
    known, suspect = window.suspicion, seen.suspect
    if (known.epoch, known.beats) == (suspect.epoch, suspect.beats):
        return None
    new = sweeper.observe(known, suspect, own_window_ms, now, at)
    if later - now >= new.window_ms:
        return None
    return new.since == now and not sweeper.is_ripe(new, window.pulse, Ms(1_000_000), later)


def the_same_suspect_keeps_its_suspicion(
    window: Window, seen: Seen, own_window_ms: Ms, now: MonoMs, at: StoreMs
) -> bool | None:
    """A suspect that bears the same (epoch, beats) as before keeps the suspicion that stands."""
    known, suspect = window.suspicion, seen.suspect
    if (known.epoch, known.beats) != (suspect.epoch, suspect.beats):
        return None
    return sweeper.observe(known, suspect, own_window_ms, now, at) == known


def a_renewal_between_two_looks_is_noticed(
    lease: Lease, asked: Asked, window: Window, own_window_ms: Ms, now: MonoMs, at: StoreMs
) -> bool | None:
    """A job that was renewed after a look is never confirmed by the next: its suspicion begins anew
    there, and a sweep under the stamp of the first look is refused."""
    known = window.suspicion
    if (known.epoch, known.beats) != (lease.epoch, lease.beats):
        return None
    after = rules.renew(lease, asked.owner, asked.epoch, asked.ttl_ms, asked.confirm_ms, asked.now)
    if isinstance(after, Refusal):
        return None
    suspect = unchecked(
        Suspect,
        job_id="j",
        epoch=after.epoch,
        beats=after.beats,
        ttl_ms=after.ttl_ms,
        confirm_ms=after.confirm_ms,
        requeue=after.requeue,
    )
    new = sweeper.observe(known, suspect, own_window_ms, now, at)
    swept = rules.orphan(after, known.epoch, known.beats, at)
    return new.since == now and swept is Refusal.BEATS_MOVED


def a_sweep_is_sent_only_when_ripe(
    beating: Beating, window: Window, own: bool, now: MonoMs
) -> bool | None:
    """What a sweeper sends a sweep of is ripe by its own beats, its heart is steady, and the job is
    not its own."""
    heart, known = beating.heart, window.suspicion
    if not (0 <= known.epoch <= MAX_COUNT and 0 <= known.beats <= MAX_COUNT):
        return None
    if not 0 <= known.first_seen_at <= MAX_MS:
        return None
    state = Sweeper(heart.policy, now, {"j": known}, pass_began_at=now)
    _, effects = sweeper.tick(state, heart, now, ("j",) if own else ())
    if not any(isinstance(effect, SendSweep) for effect in effects):
        return None
    if own or heart.pulse is None or hearts.phase_at(heart, now) is not Phase.STEADY:
        return False
    return sweeper.is_ripe(known, heart.pulse, heart.policy.gap_ms, now)


def a_locked_row_is_forgotten(window: Window, now: MonoMs) -> bool:
    """A suspect whose row was found locked is forgotten: its owner cannot renew it either."""
    state = Sweeper(LeasePolicy(), now, {"j": window.suspicion, "k": window.suspicion})
    after = sweeper.found_locked(state, ("j",))
    return "j" not in after.suspicions and after.suspicions["k"] is window.suspicion


def an_instance_never_suspects_its_own(
    window: Window, seen: Seen, own: bool, at: StoreMs, now: MonoMs
) -> bool:
    """Of the suspects that a look names, an instance suspects all but its own."""
    state = Sweeper(LeasePolicy(), now, {"j": window.suspicion}, look=Look(1, None, now))
    page = SuspectsPage(at, (seen.suspect,), more=False)
    after, _ = sweeper.answered(state, 1, page, ("j",) if own else (), now)
    return ("j" in after.suspicions) is not own


def a_window_is_no_shorter_than_any(
    own_ms: Ms, row_ms: Ms, requeue: RequeueRule, ttl_ms: Ms
) -> bool:
    """The window is no shorter than the sweeper's, nor than the owner's, nor, for a job that may be
    requeued, than its ttl."""
    window = sweeper.window_ms(own_ms, row_ms, requeue, ttl_ms)
    fenced = requeue is RequeueRule.NEVER or window >= ttl_ms
    return window >= own_ms and window >= row_ms and fenced


def a_breaker_waits_no_longer_than_it_may(
    breaker: Breaker, tripped_at: MonoMs, max_ms: Ms, now: MonoMs
) -> bool:
    """Nothing waits unless the breaker defers, and then no longer than breaker_max_ms."""
    waits = sweeper.holds_back(breaker, tripped_at, max_ms, now)
    return waits is (breaker is Breaker.DEFER and now - tripped_at < max_ms)


THEOREMS: Final = (
    theorem(
        "L13",
        a_breaker_waits_no_longer_than_it_may,
        Edit(sweeper.holds_back, "now < tripped_at + max_ms", "now <= tripped_at + max_ms"),
    ),
    theorem(
        "L12a",
        a_ripe_suspicion_stood_for_its_window,
        Edit(sweeper.ripens_at, "max(suspicion.since, pulse.close_since)", "suspicion.since"),
    ),
    theorem(
        "L12a",
        a_missed_beat_restarts_the_window,
        Edit(hearts.accepted, "now if gap > gap_ms", "now if gap > 2 * gap_ms"),
    ),
    theorem(
        "L12a",
        only_a_gap_restarts_what_a_pulse_proves,
        Edit(hearts.accepted, "now - pulse.sent_at", "now - pulse.answered_at"),
    ),
    theorem(
        "L12a",
        a_renewed_suspect_is_suspected_anew,
        Edit(
            sweeper.observe,
            "(known.epoch, known.beats) == (seen.epoch, seen.beats)",
            "known.epoch == seen.epoch",
        ),
    ),
    theorem(
        "L12a",
        the_same_suspect_keeps_its_suspicion,
        Edit(sweeper.observe, "return known\n", "pass\n"),
    ),
    theorem(
        "L12a",
        a_renewal_between_two_looks_is_noticed,
        Edit(rules._stamp, "beats=lease.beats + 1", "beats=lease.beats"),
    ),
    theorem(
        "L12a",
        a_sweep_is_sent_only_when_ripe,
        Edit(sweeper._sweep_ripe, "if is_ripe(s, pulse, gap_ms, now)", "if now >= s.since"),
    ),
    theorem(
        "L12a",
        a_locked_row_is_forgotten,
        Edit(sweeper.found_locked, "_without(sweeper, locked)", "sweeper"),
    ),
    theorem(
        "L12a",
        an_instance_never_suspects_its_own,
        Edit(sweeper.answered, "suspect.job_id in own", "False"),
    ),
    theorem(
        "L12a",
        a_window_is_no_shorter_than_any,
        Edit(sweeper.window_ms, "max(own_ms, row_ms)", "own_ms"),
    ),
)
