"""Runs with their traces, for the tests of what reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrs import frozen

from unswept.simulations.campaign import EPOCH
from unswept.simulations.run import Outcome, Run, Settings
from unswept.simulations.timeline import StoreClock, Timeline
from unswept.simulations.trace import Trace
from unswept.simulations.violation import Violation
from unswept.spec.laws import step_laws
from unswept.spec.observations import Step


@frozen
class Recorded:
    """A run, and every law that it broke by its last step, of which it reports the first."""

    outcome: Outcome
    broken: frozenset[str]


def record(file: Path, **settings: Any) -> Recorded:
    """Run a seed on the pure store, its trace into `file`."""
    clock = StoreClock(Timeline(), EPOCH)
    with file.open("w", encoding="utf-8") as lines:
        run = Run(Settings(**settings), None, clock, Trace(lines.write, "1.2.3", "memory:"))
        broken: set[str] = set()
        first_only = run.server.judge

        def judge(step: Step) -> None:
            try:
                first_only(step)
            except Violation:
                broken.update(law for law, offence in run.server.verdicts(step) if offence)
                raise

        run.server.judge = judge  # type: ignore[method-assign]
        outcome = run.outcome()
    if outcome.violation is not None and not broken:
        broken.add(outcome.violation.law)
    return Recorded(outcome, frozenset(broken))


def broken_by(step: Step) -> set[str]:
    """The laws that a step breaks, by their predicates."""
    looks = bool(step.rows or step.events)
    return {
        law.id
        for law in step_laws(type(step.command))
        if law.broken is not None and (looks or not law.of_rows) and law.broken(step) is not None
    }
