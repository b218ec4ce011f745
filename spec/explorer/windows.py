"""The least window that survives a clock step and k flaps: what the search finds, and the formula.

    window > owner's heartbeat + lost beats x owner's retry + operation timeout

A flap is a time in which the store answers nobody, and which the sweeper's heart does not notice,
since it lies between two of its accepted beats. The owner, whose beats are one retry apart, loses
those that fall between the two. The last of its beats may take as long as the operation timeout.

In whole ticks an answer in time takes at most a timeout less one. The formula needs what a policy
grants: a timeout of at most half a retry, so that a flap in which a beat of the sweeper's fails is
noticed.
"""

from __future__ import annotations

from typing import Final

from attrs import asdict, evolve, frozen

from unswept.core.policy import LeasePolicy
from unswept.core.units import Ms
from unswept.spec.explorer.designs import DESIGNS, REAL, Faults, Mix, SlowHeartPolicy, policy_of
from unswept.spec.explorer.model import Model
from unswept.spec.explorer.search import Search, search


class PatientPolicy(LeasePolicy):
    """The policy of an owner that tries a failed beat again only after a whole heartbeat."""

    @property
    def retry_ms(self) -> Ms:
        """A heartbeat."""
        return self.heartbeat_interval_ms


@frozen
class Row:
    """One row of the table of windows."""

    patient_owner: bool
    """The owner retries within one heartbeat, instead of a quarter."""
    slow_sweeper: bool
    """The sweeper's heart is proven once per heartbeat, instead of every quarter."""

    @property
    def retry(self) -> str:
        """The owner's, in heartbeats."""
        return "1" if self.patient_owner else "1/4"

    @property
    def pause(self) -> str:
        """The sweeper's, in heartbeats."""
        return "1" if self.slow_sweeper else "1/4"


ROWS: Final = (Row(True, True), Row(False, True), Row(False, False))
"""The last is the real design."""


@frozen
class Case:
    """One cell of the table, on one scale of ticks."""

    row: Row
    flaps: int
    heartbeat: int = 8
    timeout: int = 1

    @property
    def retry(self) -> int:
        """From one of the owner's failed beats to the next."""
        return self.heartbeat if self.row.patient_owner else self.heartbeat // 4

    @property
    def pause(self) -> int:
        """From one of the sweeper's beats to the next, while it suspects."""
        return self.heartbeat if self.row.slow_sweeper else self.heartbeat // 4

    @property
    def lost_beats(self) -> int:
        """How many of the owner's beats so many flaps can take.

        Where both beat equally often, each flap takes two: one at either end of its pause. Where
        the owner beats more often, flaps in one pause after the other take all in these pauses.
        """
        if self.retry == self.pause or not self.flaps:
            return 2 * self.flaps
        return self.flaps * self.pause // self.retry + 1

    @property
    def too_short(self) -> int:
        """The greatest window that does not survive, by the formula, in ticks."""
        return self.heartbeat + self.lost_beats * self.retry + self.timeout - 1

    @property
    def safe_side(self) -> int:
        """The same by the bound that `LeasePolicy.flaps_survived` goes by, a timeout with each
        retry and each pause: never less than `too_short` once there is a flap."""
        return self.heartbeat + self.flaps * (self.retry + self.pause + 2 * self.timeout)


CASES: Final = (
    *(Case(row, flaps) for flaps in (0, 1, 2) for row in ROWS),
    # On this scale answers may take a tick, a twelfth of a heartbeat.
    *(Case(row, flaps, heartbeat=12, timeout=2) for flaps in (0, 1) for row in ROWS),
)


@frozen
class Bracket:
    """What the searches on either side of the formula found."""

    case: Case
    too_short: Search
    """At the greatest window that should not survive."""
    least: Search
    """At the next one, which should."""

    @property
    def complete(self) -> bool:
        """Both came to an end."""
        return self.too_short.complete and self.least.complete

    @property
    def agrees(self) -> bool:
        """The formula is exact to one tick."""
        return self.complete and self.too_short.refuted and not self.least.refuted


def bracket(case: Case, limit: int | None = None) -> Bracket:
    """Search on either side of the formula."""
    return Bracket(
        case,
        explored(case, case.too_short, limit),
        explored(case, case.too_short + 1, limit),
    )


def explored(case: Case, window: int, limit: int | None = None) -> Search:
    """The search for a sweep of a live job after a step, with so many flaps, under this window."""
    row, heartbeat = case.row, case.heartbeat
    mix = Mix(Faults(steps_forward=1, outages=case.flaps), window=window, at_the_step=True)
    design = evolve(DESIGNS[REAL], hurries=not row.slow_sweeper)
    policy = policy_of(heartbeat, case.timeout, window, ttl=2 * heartbeat, sweep=heartbeat)
    model = Model(design, mix, _as(SlowHeartPolicy, policy) if row.slow_sweeper else policy)
    if row.patient_owner:
        model.owner_policy = _as(PatientPolicy, policy)
    return search(model, limit)


def _as(kind: type[LeasePolicy], policy: LeasePolicy) -> LeasePolicy:
    return kind.unchecked(**asdict(policy))
