"""The least window that survives a clock step and k flaps: what the search finds, and the formula.

The formula of the design: a clock step and k flaps are survived if and only if

    window > owner's heartbeat + k x (owner's retry + sweeper's gap)

where retry is the pause before a failed beat is tried again and gap the longest time between two
proofs of the sweeper's heart, each with an operation timeout.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from attrs import evolve, frozen

from unswept.core.policy import LeasePolicy
from unswept.core.records import changed
from unswept.core.units import Ms, StoreMs
from unswept.spec.explorer.designs import DESIGNS, Design, Faults, SlowHeartPolicy, policy_of
from unswept.spec.explorer.model import STORE_NOW, Model, State
from unswept.spec.explorer.search import search


class PatientPolicy(LeasePolicy):
    """The policy of an owner that tries a failed beat again only after a whole heartbeat."""

    @property
    def retry_ms(self) -> Ms:
        """A heartbeat."""
        return self.heartbeat_interval_ms


@frozen
class Row:
    """One row of the table of windows."""

    name: str
    patient_owner: bool
    """The owner retries within one heartbeat, instead of a quarter."""
    slow_sweeper: bool
    """The sweeper's heart is proven once per heartbeat, instead of every quarter."""

    def formula(self, flaps: int, heartbeat: int, timeout: int) -> int:
        """The greatest window that the formula says is too short, in ticks."""
        quarter = heartbeat // 4
        retry = (heartbeat if self.patient_owner else quarter) + timeout
        gap = (heartbeat if self.slow_sweeper else quarter) + timeout
        return heartbeat + flaps * (retry + gap)


ROWS: Final = (
    Row("owner retries within 1, sweeper proven every 1", True, True),
    Row("owner retries within 1/4, sweeper proven every 1", False, True),
    Row("owner retries within 1/4, sweeper proven every 1/4", False, False),
)


class AfterStep(Model):
    """The model from the moment after a clock step has made the lease look expired, and just
    before the sweeper looks: the worst there is for its owner."""

    def starts(self) -> Iterator[State]:
        """Every phase of the sweeper's heart; the owner has just beaten, or is about to."""
        beat = self.policy.heartbeat_interval_ms
        for owner in range(beat):
            for rival in range(beat):
                state = self.first(owner, rival, pass_phase=1)
                lease = changed(state.job.lease, deadline=StoreMs(STORE_NOW - 1))
                yield self._normal(changed(state, job=changed(state.job, lease=lease)))


def survives(row: Row, flaps: int, window: int, heartbeat: int = 4, timeout: int = 1) -> bool:
    """Does the search find no sweep of a live job after a step, with so many flaps?"""
    design: Design = evolve(
        DESIGNS["unswept"], faults=Faults(outages=flaps), hurries=not row.slow_sweeper
    )
    policy = policy_of(heartbeat, timeout, window, ttl=2 * heartbeat, sweep=heartbeat)
    model = AfterStep(design, policy)
    if row.patient_owner:
        model.owner_policy = _as(PatientPolicy, policy)
    if row.slow_sweeper:
        model.policy = _as(SlowHeartPolicy, policy)
    return not search(model).refuted


def _as(kind: type[LeasePolicy], policy: LeasePolicy) -> LeasePolicy:
    return kind.unchecked(
        **{name: getattr(policy, name) for name in LeasePolicy.__annotations__ if name != "return"}
    )
