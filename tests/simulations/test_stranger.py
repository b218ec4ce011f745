"""The stranger: it changes nothing, and there is nothing that it never says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.lease import Kind
from unswept.core.policy import LeasePolicy
from unswept.simulations import stranger
from unswept.simulations.campaign import EPOCH
from unswept.simulations.network import Envelope
from unswept.simulations.run import Run, Settings
from unswept.simulations.stranger import LOOKS, MISTAKES
from unswept.simulations.timeline import StoreClock, Timeline
from unswept.spec.laws import READS
from unswept.spec.observations import Step

HARMLESS = {Kind.STALE_RESULT, Kind.REQUEST_CANCEL}
"""What the events tell that it may leave: a late result, and a wish to cancel."""
SOON_TRUE = (c.Evict, c.ForgetEvents)
"""What is right after all where it comes minutes late: the job is over, or gone, by then."""


@pytest.mark.parametrize("seed", range(1, 5))
def test_it_changes_nothing(seed: int) -> None:
    """But that a job that is not its own to withdraw is asked to end, as anybody may. (L3, L7)"""
    run = Run(Settings(seed=seed, hours=2), None, StoreClock(Timeline(), EPOCH))
    heard: Counter[str] = Counter()

    def record(step: Step, envelope: Envelope) -> None:
        if envelope.sender != "stranger" or isinstance(step.command, SOON_TRUE):
            return
        heard[type(step.command).__name__] += 1
        assert {event.kind for event in step.events} <= HARMLESS, step
        if not isinstance(step.command, c.Withdraw):
            assert step.rows == (), step
        if type(step.command) not in READS | {c.Withdraw}:
            assert _is_refused(step.reply), step

    run.server.recorder = record
    assert run.outcome().violation is None
    assert heard.total() > 300
    assert heard["Complete"] > 5


def _is_refused(reply: Any) -> bool:
    """In whichever form a reply says so."""
    if isinstance(reply, r.Swept):
        return all(answer.refusal is not None for answer in reply.answers)
    if isinstance(reply, r.Beaten):
        return all(each.answer in (r.Answer.FENCED, r.Answer.TERMINAL) for each in reply.answers)
    return reply.count == 0 if isinstance(reply, r.Forgotten) else isinstance(reply, r.Refused)


@pytest.mark.parametrize("said", dict.fromkeys((*MISTAKES, *LOOKS)))
def test_each_mistake_can_be_made(said: Callable[[stranger.Moment], stranger.Said]) -> None:
    """In the busy world of a simulated run there is sooner or later somebody about whom to err."""
    timeline = Timeline()
    run = Run(Settings(seed=2, hours=2), None, StoreClock(timeline, EPOCH))
    moment = stranger.Moment(run.server.pure.world, Random(1), LeasePolicy().terms())
    for minute in range(120):
        timeline.run(minute * 60_000)
        if said(moment) is not None:
            return
    pytest.fail("it never was")
