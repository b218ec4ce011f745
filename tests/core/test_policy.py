"""A policy refuses what cannot work, says why, and says what follows from it."""

from __future__ import annotations

import re
from typing import Any

import attrs
import pytest

from unswept.core.errors import MisuseError
from unswept.core.job import Terms, Transport
from unswept.core.policy import Breaker, LeasePolicy
from unswept.core.units import MAX_MS, Ms


def policy(**values: int) -> LeasePolicy:
    """A policy from plain numbers."""
    given: dict[str, Any] = {name: Ms(value) for name, value in values.items()}
    return LeasePolicy(**given)


def test_the_defaults() -> None:
    """The defaults are those of the design, and nothing about them is tight."""
    assert LeasePolicy() == policy(
        heartbeat_interval_ms=15_000,
        lease_ttl_ms=90_000,
        http_grace_ms=300_000,
        first_beat_ttl_ms=90_000,
        confirm_after_ms=45_000,
        sweep_interval_ms=30_000,
        operation_timeout_ms=1_800,
        instance_gc_ms=3_600_000,
        local_margin_ms=600,
        retention_ms=30 * 24 * 3_600_000,
        dedup_window_ms=3_600_000,
        late_output_ms=60_000,
        outbox_give_up_ms=24 * 3_600_000,
        stall_limit_ms=180_000,
    )
    assert LeasePolicy().warnings() == ()


def test_the_default_consequences() -> None:
    """Five lost beats, two flaps beside a clock step, and under three minutes to detection."""
    default = LeasePolicy()
    assert default.missed_beats() == 5
    assert default.flaps_survived() == 2
    assert default.detection_ms() == 90_000 + 30_000 + 45_000 + 2 * 1_800
    assert default.detection_ms(300_000) == default.detection_ms() + 210_000
    assert (default.retry_ms, default.gap_ms, default.steady_ms) == (3_750, 5_550, 16_800)


def test_terms_are_what_is_stamped() -> None:
    """The terms carry the four durations that a store stamps on rows, by the job's transport."""
    terms = LeasePolicy().terms()
    assert terms == Terms(Ms(90_000), Ms(300_000), Ms(90_000), Ms(45_000))
    assert terms.ttl_ms(Transport.PROCESS) == 90_000
    assert terms.ttl_ms(Transport.HTTP) == 300_000


def test_flaps_survived_is_exact_to_a_millisecond() -> None:
    """k flaps need a window > heartbeat + k × (retry + gap); one millisecond decides. (L12)"""
    default = LeasePolicy()
    for flaps in range(4):
        bound = 15_000 + flaps * 2 * 5_550
        assert default.flaps_survived(bound) == flaps - 1
        assert default.flaps_survived(bound + 1) == flaps
    assert default.flaps_survived(1) == -1


@pytest.mark.parametrize(
    "values",
    [
        {"heartbeat_interval_ms": 100},
        {"heartbeat_interval_ms": 100, "lease_ttl_ms": 600},
        {"heartbeat_interval_ms": 8, "lease_ttl_ms": 24},
        {"heartbeat_interval_ms": 1_000, "lease_ttl_ms": 3_000, "retention_ms": 20_000},
        {"heartbeat_interval_ms": 60_000, "lease_ttl_ms": 600_000},
        {"heartbeat_interval_ms": 3_600_000, "lease_ttl_ms": 4 * 3_600_000},
        {"http_grace_ms": 4_000_000},
        {"first_beat_ttl_ms": 4_000_000},
        {"retention_ms": 300_000},
    ],
)
def test_defaults_follow_from_what_is_given(values: dict[str, int]) -> None:
    """A policy that says little, small or large, is never refused for what it did not say."""
    made = policy(**values)
    assert made.flaps_survived() >= 1
    assert made.missed_beats() >= 1


H, T = 1_000, 6_000
SMALL = {"heartbeat_interval_ms": H, "lease_ttl_ms": T, "http_grace_ms": 2 * T}


@pytest.mark.parametrize(
    ("name", "bound", "meaning"),
    [
        ("lease_ttl_ms", 2 * H, "2 x heartbeat_interval_ms"),
        ("http_grace_ms", T, "lease_ttl_ms"),
        ("first_beat_ttl_ms", 2 * H, "2 x heartbeat_interval_ms"),
        ("confirm_after_ms", 2 * H, "2 x heartbeat_interval_ms"),
        ("instance_gc_ms", 2 * T, "the greatest ttl"),
        ("local_margin_ms", 24, "greatest ttl / 500"),
        ("retention_ms", 2 * T, "the greatest ttl"),
        ("event_retention_ms", 2 * T, "the greatest ttl"),
        ("stall_limit_ms", T, "lease_ttl_ms"),
    ],
)
def test_a_lower_bound(name: str, bound: int, meaning: str) -> None:
    """At its bound a value is taken; one less is refused with field, value and bound."""
    assert getattr(policy(**{**SMALL, name: bound}), name) == bound
    said = f"{name} ({bound - 1}) must be >= {meaning} ({bound})"
    with pytest.raises(MisuseError, match=f"^{re.escape(said)}$"):
        policy(**{**SMALL, name: bound - 1})


@pytest.mark.parametrize(
    ("name", "bound", "meaning"),
    [
        ("operation_timeout_ms", H - 1, "heartbeat_interval_ms - 1"),
        ("sweep_interval_ms", T, "lease_ttl_ms"),
        (
            "local_margin_ms",
            T - H,
            "the smaller of lease_ttl_ms and first_beat_ttl_ms, less one heartbeat",
        ),
        ("outbox_give_up_ms", 30 * 24 * 3_600_000, "retention_ms"),
        ("late_output_ms", 30 * 24 * 3_600_000, "retention_ms"),
    ],
)
def test_an_upper_bound(name: str, bound: int, meaning: str) -> None:
    """At its bound a value is taken; one more is refused with field, value and bound."""
    assert getattr(policy(**{**SMALL, name: bound}), name) == bound
    said = f"{name} ({bound + 1}) must be <= {meaning} ({bound})"
    with pytest.raises(MisuseError, match=f"^{re.escape(said)}$"):
        policy(**{**SMALL, name: bound + 1})


FIELDS = [field.name for field in attrs.fields(LeasePolicy)]


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("value", [-1, MAX_MS + 1, True, 2.5, "15", None])
def test_every_field_is_a_whole_number_of_milliseconds(name: str, value: object) -> None:
    """Neither a negative, a huge, a fractional nor a boolean duration is taken, and it is named."""
    if (name, value) == ("event_retention_ms", None):
        return  # events are kept for ever
    with pytest.raises(MisuseError, match=name):
        LeasePolicy(**{name: value})  # type: ignore[arg-type]


def test_events_are_kept_for_ever_unless_told_otherwise() -> None:
    """No event is removed by a policy that does not say so."""
    assert LeasePolicy().event_retention_ms is None


def test_only_the_dedup_window_may_be_zero() -> None:
    """A dedup window of 0 switches dedup off; every other duration is at least a millisecond."""
    assert policy(dedup_window_ms=0).dedup_window_ms == 0
    for name in set(FIELDS) - {"dedup_window_ms"}:
        with pytest.raises(MisuseError, match=name):
            policy(**{name: 0})


def test_what_is_tight_is_said() -> None:
    """A ttl under three heartbeats, and a window that survives no flap, are warned of."""
    (one,) = policy(lease_ttl_ms=44_999).warnings()
    assert one.startswith("lease_ttl_ms (44999) is under 3 x heartbeat_interval_ms (45000)")
    (one,) = policy(operation_timeout_ms=7_500, confirm_after_ms=30_000).warnings()
    assert one.startswith("confirm_after_ms (30000) with operation_timeout_ms (7500)")
    assert policy(lease_ttl_ms=45_000).warnings() == ()
    (one,) = LeasePolicy.unchecked(confirm_after_ms=20_000).warnings()
    assert one.startswith("confirm_after_ms (20000) with operation_timeout_ms (1800)")


def test_detection_of_a_requeueable_job_takes_its_whole_ttl() -> None:
    """A job that may be requeued is watched for its ttl, so that its fence needs no store clock."""
    assert policy().detection_ms() == 168_600
    assert policy().detection_ms(requeueable=True) == 213_600


def test_a_design_under_test_may_go_round_the_checks() -> None:
    """`unchecked` takes relations that cannot work, and no field that there is not."""
    broken = LeasePolicy.unchecked(confirm_after_ms=1, lease_ttl_ms=10, event_retention_ms=2)
    assert (broken.confirm_after_ms, broken.lease_ttl_ms) == (1, 10)
    assert broken.event_retention_ms == 2
    assert LeasePolicy.unchecked().event_retention_ms is None
    assert broken.heartbeat_interval_ms == LeasePolicy().heartbeat_interval_ms
    assert broken.flaps_survived() == -1
    assert LeasePolicy.unchecked(breaker=Breaker.DEFER).breaker is Breaker.DEFER
    with pytest.raises(MisuseError, match="a policy has no confirm_ms"):
        LeasePolicy.unchecked(confirm_ms=1)
