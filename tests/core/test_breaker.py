"""The breaker: when half of all leases look expired at once, a sweeper may say so, and wait."""

from __future__ import annotations

import re

import pytest
from attrs import evolve

from tests.core.test_sweeper import POLICY, WINDOW_MS, beating, look, page, suspect
from unswept.core import sweeper as sweepers
from unswept.core.commands import Suspects
from unswept.core.errors import MisuseError
from unswept.core.policy import Breaker, LeasePolicy
from unswept.core.sweeper import Correlated, Effect, GaveWay, SendSweep, Sweeper, looks_correlated
from unswept.core.units import MonoMs, Ms

MAX_MS = 500
SEEN_AT = 1_600
RIPE_AT = SEEN_AT + WINDOW_MS


def suspecting(breaker: Breaker, suspects: int, held: int | None) -> Sweeper:
    """A sweeper that has seen so many suspects of so many leases."""
    policy = evolve(POLICY, breaker=breaker, breaker_max_ms=Ms(MAX_MS))
    seen = page(*(suspect(f"j{number}") for number in range(suspects)))
    return look(sweepers.begin(policy, MonoMs(0)), SEEN_AT, evolve(seen, held=held))


def ticked(sweeper: Sweeper, now: int) -> tuple[Sweeper, list[Effect]]:
    """What a tick does, but for the looks; the heart has been close all along."""
    sweeper = evolve(sweeper, next_pass_at=MonoMs(10**9))
    sweeper, effects = sweepers.tick(sweeper, beating(now), MonoMs(now), ())
    return sweeper, list(effects)


def swept(effects: list[Effect]) -> int:
    return sum(len(effect.targets) for effect in effects if isinstance(effect, SendSweep))


@pytest.mark.parametrize(
    ("suspects", "held", "correlated"),
    [(2, 2, False), (3, 3, True), (3, 6, True), (3, 7, False), (50, 100, True), (49, 100, False)],
)
def test_what_looks_correlated(suspects: int, held: int, correlated: bool) -> None:
    """At least 3, and at least half."""
    assert looks_correlated(suspects, held) is correlated


def test_it_is_off_unless_it_is_asked_for() -> None:
    """Then no look counts the leases, and nothing waits."""
    assert LeasePolicy().breaker is Breaker.OFF
    sweeper = suspecting(Breaker.OFF, 5, 5)
    assert swept(ticked(sweeper, RIPE_AT)[1]) == 5
    first = sweepers.begin(POLICY, MonoMs(0))
    _, effects = sweepers.tick(first, beating(SEEN_AT), MonoMs(SEEN_AT), ())
    assert [effect.command for effect in effects] == [Suspects(None, 1_000)]  # type: ignore[union-attr]


def test_a_shadow_says_so_and_sweeps() -> None:
    """Once for each burst."""
    sweeper, effects = ticked(suspecting(Breaker.SHADOW, 5, 10), RIPE_AT)
    assert effects[0] == Correlated(5, 10, None)
    assert swept(effects) == 5
    assert ticked(sweeper, RIPE_AT + 1)[1] == []


def test_a_breaker_that_defers_waits_and_then_gives_way() -> None:
    """Nothing goes out a millisecond too early, all of it when the time is over."""
    sweeper, effects = ticked(suspecting(Breaker.DEFER, 5, 10), RIPE_AT - 1)
    assert effects == []
    sweeper, effects = ticked(sweeper, RIPE_AT)
    assert effects == [Correlated(5, 10, MonoMs(RIPE_AT + MAX_MS))]
    heart = beating(RIPE_AT)
    idle = evolve(sweeper, next_pass_at=MonoMs(10**9))
    assert sweepers.wake_at(idle, heart, MonoMs(RIPE_AT)) == RIPE_AT + MAX_MS
    sweeper, effects = ticked(sweeper, RIPE_AT + MAX_MS - 1)
    assert effects == []
    sweeper, effects = ticked(sweeper, RIPE_AT + MAX_MS)
    assert effects[0] == GaveWay(5, 10)
    assert swept(effects) == 5
    assert sweeper.tripped_at is None


def test_whoever_renews_meanwhile_frees_the_rest() -> None:
    """A look that names but two of them ends the wait: those are no burst."""
    sweeper, _ = ticked(suspecting(Breaker.DEFER, 5, 10), RIPE_AT)
    seen = evolve(page(suspect("j0"), suspect("j1")), held=10)
    sweeper = look(sweeper, RIPE_AT + 1, seen)
    sweeper, effects = ticked(sweeper, RIPE_AT + 2)
    assert swept(effects) == 2
    assert sweeper.tripped_at is None


@pytest.mark.parametrize("held", [11, None])
def test_a_few_of_many_are_swept_at_once(held: int | None) -> None:
    """Also where the store did not say how many there are."""
    assert swept(ticked(suspecting(Breaker.DEFER, 5, held), RIPE_AT)[1]) == 5


def test_its_looks_count_the_leases_once_in_a_pass() -> None:
    """With the first page."""
    policy = evolve(POLICY, breaker=Breaker.SHADOW)
    sweeper = sweepers.begin(policy, MonoMs(0))
    sweeper, (first,) = sweepers.tick(sweeper, beating(SEEN_AT), MonoMs(SEEN_AT), ())
    full = evolve(page(suspect("j1"), more=True), held=9)
    sweeper, effects = sweepers.answered(sweeper, 1, full, (), MonoMs(SEEN_AT))
    asked = [effect.command.counted for effect in (first, effects[-1])]  # type: ignore[union-attr]
    assert asked == [True, False]
    assert sweeper.held == 9


def test_the_bound_grows_only_where_it_defers() -> None:
    """By breaker_max_ms, which is the window unless it is given. (L13)"""
    plain = LeasePolicy()
    assert LeasePolicy(breaker=Breaker.SHADOW).detection_ms() == plain.detection_ms()
    deferring = LeasePolicy(breaker=Breaker.DEFER)
    assert deferring.breaker_max_ms == plain.confirm_after_ms
    assert deferring.detection_ms() == plain.detection_ms() + plain.confirm_after_ms


def test_a_breaker_that_is_none_is_refused() -> None:
    """The message names the field and the value."""
    with pytest.raises(MisuseError, match=re.escape("breaker must be a Breaker, got 'defer'")):
        LeasePolicy(breaker="defer")  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match=re.escape("breaker_max_ms must be 1 to")):
        LeasePolicy(breaker_max_ms=Ms(0))
