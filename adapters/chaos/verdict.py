"""Compares what the gateways and the driver wrote down with what the store has at the end.

Each check is one promise; what breaks it is told in a sentence that names the rows. Where a check
needs a premise that did not hold, the case is counted apart, with the reason, and is no pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from attrs import frozen

from unswept.adapters.chaos.detection import the_dead_are_found_in_time
from unswept.adapters.chaos.endings import (
    ends_are_what_was_acknowledged,
    no_job_is_lost,
    slots_are_the_live_rows,
    what_is_over_stays_over,
)
from unswept.adapters.chaos.evidence import Evidence, Judge
from unswept.adapters.chaos.sweeps import (
    no_healthy_owner_lost_a_job,
    no_lease_was_cut_short,
    orphans_say_why,
    stamps_agree,
    windows_stood,
)

Check = Callable[[Judge], Iterator[str]]

CHECKS: Final[Mapping[str, Check]] = {
    "no lease was cut short": no_lease_was_cut_short,
    "no healthy owner lost a job": no_healthy_owner_lost_a_job,
    "a sweep takes a whole window": windows_stood,
    "orphan events say why": orphans_say_why,
    "orphan events agree with the owner's file": stamps_agree,
    "no job is lost": no_job_is_lost,
    "what is over stays over": what_is_over_stays_over,
    "ends are what was acknowledged": ends_are_what_was_acknowledged,
    "the dead are found in time": the_dead_are_found_in_time,
    "slots are the live rows": slots_are_the_live_rows,
}
"""Every promise, by the name under which it is reported."""


@frozen
class Violation:
    """A broken promise."""

    check: str
    offence: str


def judged(evidence: Evidence) -> tuple[tuple[Violation, ...], Counter[str]]:
    """Every broken promise, and how much there was of everything."""
    judge = Judge(evidence)
    violations = tuple(
        Violation(name, offence) for name, check in CHECKS.items() for offence in check(judge)
    )
    return violations, judge.counts
