"""A script that is carried out, written down as a trace: what draws a run draws its script too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from attrs import define

from unswept.core import commands as c
from unswept.core.units import StoreMs
from unswept.simulations.designs import DESIGNS
from unswept.simulations.script import Broken, Script, Told
from unswept.simulations.trace import Trace
from unswept.spec.observations import Delivery, Step

_OF_CLIENTS: Final = (
    c.Enqueue,
    c.Withdraw,
    c.RequestCancel,
    c.ExpireQueued,
    c.Requeue,
    c.Settle,
    c.LeaseEvents,
    c.Acknowledge,
)
"""What somebody may send who holds no job."""


@define
class _Sender:
    """Whoever sent a step; a script knows of a sender no more than its commands show."""

    name: str
    kind: str
    host_name: str = ""


class ScriptTrace:
    """Writes the trace of one script.

    No script knows true time. Here it passes as the store clock does, and stands still where that
    steps back.
    """

    def __init__(self, script: Script, trace: Trace) -> None:
        """The first lines: the run that the script was found in, and everybody who sent a step."""
        self._trace = trace
        self._at = 0
        self._now = script.steps[0].store_at
        design = DESIGNS[script.settings.design]
        trace.begins(script.settings, design.excused, self._now)
        for name in dict.fromkeys(told.sender for told in script.steps):
            own = [told for told in script.steps if told.sender == name]
            trace.boots(0, _Sender(name, _kind(own)), None)

    def step(self, step: Step, sender: str) -> None:
        """A command is about to be made so."""
        self._pass(step.now)
        self._trace.command(self._at, sender, step)

    def ends(self, now: StoreMs, broken: Broken | None, checked: Counter[str]) -> None:
        """The last lines: how a law was broken, if one was, and how often each has judged."""
        self._pass(now)
        if broken is not None:
            self._trace.violation(self._at, broken.law, broken.offence)
        self._trace.ends(self._at, checked=checked)

    def _pass(self, now: StoreMs) -> None:
        passed = now - self._now
        if passed < 0:
            self._trace.fault(self._at, "store-clock", "strikes", ms=passed)
        self._at += max(0, passed)
        self._now = now


def _kind(steps: Sequence[Told]) -> str:
    if any(isinstance(told.command, c.Claim) for told in steps):
        return "runner"
    for told in steps:
        judged = None if told.truth is None else told.truth.observation
        if judged is not None and not isinstance(judged, Delivery):
            return "gateway"
        if told.command is not None and not isinstance(told.command, _OF_CLIENTS):
            return "gateway"
    return "client"
