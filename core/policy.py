"""The numbers that an instance lives by, refused where they cannot work, and their consequences."""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property
from typing import Final

from attrs import NOTHING, field, fields, frozen

from unswept.core.checks import check_member, check_whole
from unswept.core.errors import MisuseError
from unswept.core.job import Terms
from unswept.core.units import MAX_MS, Ms

_DAY: Final = 24 * 60 * 60 * 1000


class Breaker(StrEnum):
    """What a sweeper does when half of all leases, and at least 3, look expired at once."""

    OFF = "off"
    """Nothing: the window is what tells a fault that all share from dead owners."""
    SHADOW = "shadow"
    """It says so, and sweeps."""
    DEFER = "defer"
    """It says so, and sweeps `breaker_max_ms` later those that are suspects still."""


@frozen(kw_only=True)
class LeasePolicy:
    """Durations in whole milliseconds; every default that is not given follows from the others.

    Refuses, with the field, its value and the bound, what cannot work; `warnings()` says what works
    but is tight. A design under test may go round the checks with `LeasePolicy.unchecked`.
    """

    heartbeat_interval_ms: Ms = Ms(15_000)
    lease_ttl_ms: Ms = Ms(90_000)
    """Stamped by every grant, start and renewal of a process job."""
    http_grace_ms: Ms = field()
    """The same for an http job; by default 300 000, at most 10/3 of the lease ttl, at least it."""
    first_beat_ttl_ms: Ms = field()
    """Stamped by a claim, until the first beat; by default the lease ttl."""
    confirm_after_ms: Ms = field()
    """The window: how long a suspicion must stand before a sweep; by default 3 heartbeats."""
    sweep_interval_ms: Ms = field()
    """Within this time the suspects are paged to their end once; by default 30 000, at most the
    lease ttl."""
    operation_timeout_ms: Ms = field()
    """How long any store operation may take; by default 1 800, at most 1/8 of a heartbeat. More is
    possible, up to less than a heartbeat, and costs flaps: see `flaps_survived`."""
    instance_gc_ms: Ms = field()
    """How long an instance is silent before its row is cleaned up; by default an hour, at least the
    greatest ttl."""
    local_margin_ms: Ms = field()
    """How long before the stamped deadline requeueable work stops, for clocks that drift; by
    default 1/500 of the greatest ttl."""
    retention_ms: Ms = Ms(30 * _DAY)
    """How long a terminal job is kept."""
    event_retention_ms: Ms | None = None
    """How long the events of a job are kept after its eviction, at least the greatest ttl, and
    until every consumer has them; None: for ever."""
    dedup_window_ms: Ms = Ms(3_600_000)
    """How long an admit joins an earlier one with the same principal and request key; 0: never."""
    late_output_ms: Ms = field()
    """How long after its end a job still takes output of the same epoch; by default 60 000, at
    most the retention."""
    outbox_give_up_ms: Ms = field()
    """How long a finished job is held for its terminal write; by default the retention, at most a
    day."""
    stall_limit_ms: Ms = field()
    """How long an event loop may stand still before its jobs are not vouched for; by default twice
    the lease ttl."""
    breaker: Breaker = Breaker.OFF
    breaker_max_ms: Ms = field()
    """How much later at most a breaker that defers lets a sweep go; by default the window."""

    def __attrs_pre_init__(self, **given: object) -> None:
        """Whole milliseconds only, before any default is reckoned from them."""
        for name, value in given.items():
            if name == "breaker":
                check_member("breaker", value, Breaker)
            elif value is not NOTHING and (name, value) != ("event_retention_ms", None):
                check_whole(name, value, 0 if name == "dedup_window_ms" else 1, MAX_MS)

    @http_grace_ms.default
    def _http_grace(self) -> Ms:
        # A lease ttl much shorter than 90 000 has no room for the margin of 300 000.
        return Ms(max(min(300_000, self.lease_ttl_ms * 10 // 3), self.lease_ttl_ms))

    @first_beat_ttl_ms.default
    def _first_beat_ttl(self) -> Ms:
        return self.lease_ttl_ms

    @confirm_after_ms.default
    def _confirm_after(self) -> Ms:
        return Ms(3 * self.heartbeat_interval_ms)

    @sweep_interval_ms.default
    def _sweep_interval(self) -> Ms:
        return Ms(min(30_000, self.lease_ttl_ms))

    @operation_timeout_ms.default
    def _operation_timeout(self) -> Ms:
        return Ms(max(1, min(1_800, self.heartbeat_interval_ms // 8)))

    @instance_gc_ms.default
    def _instance_gc(self) -> Ms:
        return Ms(max(3_600_000, self._greatest_ttl()))

    @local_margin_ms.default
    def _local_margin(self) -> Ms:
        return Ms(-(-self._greatest_ttl() // 500))

    @late_output_ms.default
    def _late_output(self) -> Ms:
        return Ms(min(60_000, self.retention_ms))

    @outbox_give_up_ms.default
    def _outbox_give_up(self) -> Ms:
        return Ms(min(self.retention_ms, _DAY))

    @breaker_max_ms.default
    def _breaker_max(self) -> Ms:
        return self.confirm_after_ms

    @stall_limit_ms.default
    def _stall_limit(self) -> Ms:
        return Ms(2 * self.lease_ttl_ms)

    def __attrs_post_init__(self) -> None:
        """Every validation, each with its reason."""
        for name in _DURATIONS:  # those that were reckoned too
            check_whole(name, getattr(self, name), 1, MAX_MS)
        beat, ttl = self.heartbeat_interval_ms, self.lease_ttl_ms
        # One beat lost must not lose the job.
        self._at_least("lease_ttl_ms", 2 * beat, "2 x heartbeat_interval_ms")
        self._at_least("http_grace_ms", ttl, "lease_ttl_ms")
        self._at_least("first_beat_ttl_ms", 2 * beat, "2 x heartbeat_interval_ms")
        # An owner needs one whole heartbeat inside the window to prove that it lives.
        self._at_least("confirm_after_ms", 2 * beat, "2 x heartbeat_interval_ms")
        # A beat must have failed before the next is due.
        self._at_most("operation_timeout_ms", beat - 1, "heartbeat_interval_ms - 1")
        self._at_most("sweep_interval_ms", ttl, "lease_ttl_ms")
        # A live instance's row must not be cleaned up while its leases still run.
        self._at_least("instance_gc_ms", self._greatest_ttl(), "the greatest ttl")
        # Two clocks that each drift by 0.1 % part by 1/500.
        self._at_least("local_margin_ms", -(-self._greatest_ttl() // 500), "greatest ttl / 500")
        self._at_most(
            "local_margin_ms",
            min(ttl, self.first_beat_ttl_ms) - beat,
            "the smaller of lease_ttl_ms and first_beat_ttl_ms, less one heartbeat",
        )
        self._at_most("outbox_give_up_ms", self.retention_ms, "retention_ms")
        self._at_least("retention_ms", self._greatest_ttl(), "the greatest ttl")
        if self.event_retention_ms is not None:
            # Who was away for as long as a lease lasts still reads what became of it.
            self._at_least("event_retention_ms", self._greatest_ttl(), "the greatest ttl")
        self._at_most("late_output_ms", self.retention_ms, "retention_ms")
        self._at_least("stall_limit_ms", ttl, "lease_ttl_ms")

    @classmethod
    def unchecked(cls, **values: int | Breaker | None) -> LeasePolicy:
        """A policy that skips the relations between its fields, for designs that must fail."""
        names = [each.name for each in fields(cls)]
        unknown = sorted(set(values) - {*names})
        if unknown:
            raise MisuseError(f"a policy has no {', '.join(unknown)}")
        policy = cls.__new__(cls)
        sound = cls()
        for name in names:
            object.__setattr__(policy, name, values.get(name, getattr(sound, name)))
        return policy

    def terms(self) -> Terms:
        """What this policy stamps on the jobs that its instance owns."""
        return Terms(
            self.lease_ttl_ms, self.http_grace_ms, self.first_beat_ttl_ms, self.confirm_after_ms
        )

    @cached_property
    def retry_ms(self) -> Ms:
        """A quarter of a heartbeat: how soon a failed beat is tried again, how soon a busy hold is
        asked for again, and how often a sweeper beats while it has an open suspicion."""
        return Ms(max(1, self.heartbeat_interval_ms // 4))

    @cached_property
    def gap_ms(self) -> Ms:
        """The longest time from the send of one accepted beat to the answer of the next that does
        not restart the window of a sweeper with open suspicions."""
        return Ms(self.retry_ms + self.operation_timeout_ms)

    @cached_property
    def steady_ms(self) -> Ms:
        """How soon after one beat's answer the next must come for the instance to be steady."""
        return Ms(self.heartbeat_interval_ms + self.operation_timeout_ms)

    def missed_beats(self) -> int:
        """How many beats in a row may fail before a process job's lease runs out."""
        return self.lease_ttl_ms // self.heartbeat_interval_ms - 1

    def flaps_survived(self, window_ms: int | None = None) -> int:
        """How many flaps a clock step may surely come with: the greatest k for which the window is
        longer than the owner's heartbeat + k x (its retry + the sweeper's gap); -1 where not even a
        bare step is survived. The explorer finds that one more may be survived. (L12)"""
        window = self.confirm_after_ms if window_ms is None else window_ms
        return max(-1, (window - self.heartbeat_interval_ms - 1) // (2 * self.gap_ms))

    def detection_ms(self, ttl_ms: int | None = None, requeueable: bool = False) -> Ms:
        """At most so long after its last accepted beat a dead owner's job is orphaned, if some
        other instance is steady all the while and nothing delays it. A job that may be requeued
        is watched for its whole ttl, and a breaker that defers may add its own. (L13)"""
        ttl = self.lease_ttl_ms if ttl_ms is None else ttl_ms
        window = max(self.confirm_after_ms, ttl) if requeueable else self.confirm_after_ms
        deferred = self.breaker_max_ms if self.breaker is Breaker.DEFER else 0
        timeouts = 2 * self.operation_timeout_ms
        return Ms(ttl + self.sweep_interval_ms + window + timeouts + deferred)

    def warnings(self) -> tuple[str, ...]:
        """What works but is tight, in sentences."""
        found = []
        if self.lease_ttl_ms < 3 * self.heartbeat_interval_ms:
            found.append(
                f"lease_ttl_ms ({self.lease_ttl_ms}) is under 3 x heartbeat_interval_ms "
                f"({3 * self.heartbeat_interval_ms}): one lost beat leaves no second try"
            )
        if self.flaps_survived() < 1:
            found.append(
                f"confirm_after_ms ({self.confirm_after_ms}) with operation_timeout_ms "
                f"({self.operation_timeout_ms}) survives a clock step or an outage but no flap "
                f"beside it; 3 x heartbeat_interval_ms with an eighth of one survives two"
            )
        return tuple(found)

    def _greatest_ttl(self) -> int:
        return max(self.lease_ttl_ms, self.http_grace_ms, self.first_beat_ttl_ms)

    def _at_least(self, name: str, bound: int, meaning: str) -> None:
        value = getattr(self, name)
        if value < bound:
            raise MisuseError(f"{name} ({value}) must be >= {meaning} ({bound})")

    def _at_most(self, name: str, bound: int, meaning: str) -> None:
        value = getattr(self, name)
        if value > bound:
            raise MisuseError(f"{name} ({value}) must be <= {meaning} ({bound})")


_DURATIONS: Final = (
    "heartbeat_interval_ms",
    "lease_ttl_ms",
    "http_grace_ms",
    "first_beat_ttl_ms",
    "confirm_after_ms",
    "sweep_interval_ms",
    "operation_timeout_ms",
    "instance_gc_ms",
    "local_margin_ms",
    "retention_ms",
    "late_output_ms",
    "outbox_give_up_ms",
    "stall_limit_ms",
    "breaker_max_ms",
)
