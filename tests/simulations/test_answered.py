"""Which law a store under test breaks by what it made of a command that the pure store refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from unswept.adapters.urls import SimulatedStore
from unswept.core import commands as c
from unswept.core.errors import StoreUnavailableError
from unswept.core.job import OnOrphan
from unswept.core.memory import MemoryStore
from unswept.core.policy import LeasePolicy
from unswept.core.units import StoreMs
from unswept.core.world import Decision
from unswept.simulations.answered import as_answered
from unswept.simulations.campaign import run_seed
from unswept.simulations.designs import DESIGNS
from unswept.simulations.run import Settings
from unswept.simulations.script import Teller, Told
from unswept.simulations.server import Server
from unswept.simulations.timeline import StoreClock, Timeline
from unswept.simulations.violation import Violation

TERMS = LeasePolicy().terms()
AT = StoreMs(0)


class Hasty:
    """A store whose clock is ahead when it sweeps."""

    def __init__(self, clock: Callable[[], StoreMs]) -> None:
        self.ahead = 0
        self.store = MemoryStore(lambda: StoreMs(clock() + self.ahead))

    def execute(self, command: c.Command[Any]) -> Any:
        self.ahead = 1 if isinstance(command, c.Sweep) else 0
        reply = self.store.execute(command)
        self.ahead = 0
        return reply


class Mute(Hasty):
    """One that answers no question once it has swept."""

    def execute(self, command: c.Command[Any]) -> Any:
        if isinstance(command, c.Find):
            raise StoreUnavailableError("gone")
        return super().execute(command)


def offence(make: Callable[[Callable[[], StoreMs]], Any], on_orphan: OnOrphan) -> str:
    """What is said of a sweep that comes on the very deadline of a lease."""
    clock = StoreClock(Timeline(), AT)
    teller = Teller(DESIGNS["unswept"], make(clock), clock, None)
    enqueue = c.Enqueue("q1", on_orphan=on_orphan)
    told = [c.Register("r1"), enqueue, c.Claim("r1", 1, TERMS)]
    for command in told:
        teller.tell(Told(AT, "r1", command), command)
    sweep = c.Sweep("r2", (c.Target("q1", 1, 1, AT),))
    deadline = StoreMs(TERMS.first_beat_ttl_ms)
    with pytest.raises(Violation) as caught:
        teller.tell(Told(deadline, "r2", sweep), sweep)
    return caught.value.offence


@pytest.mark.parametrize("on_orphan", [OnOrphan.MARK, OnOrphan.FAIL])
def test_a_sweep_that_came_too_early_breaks_the_law_of_sweeps(on_orphan: OnOrphan) -> None:
    """Also where the job has gone on by its policy, so that no row is orphaned any more."""
    said = offence(Hasty, on_orphan)
    assert said.startswith("Sweep sweeper=r2, targets=[q1/1/1/0]: ")
    assert "; by this it breaks L1: q1 was orphaned at 90000, but it was stamped at 0" in said


def test_a_store_that_cannot_be_read_is_not_accused() -> None:
    """The difference stands."""
    said = offence(Mute, OnOrphan.MARK)
    assert "the pure store" in said
    assert "breaks" not in said


def test_what_reads_decides_nothing() -> None:
    """No law of steps looks at an answer that is wrong."""
    store = MemoryStore(lambda: AT)
    decision = as_answered(store, store.world, c.Count(), None, None)  # type: ignore[arg-type]
    assert decision is None


def test_a_store_that_answers_rightly_is_accused_of_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What its own reads show of each command of a run, judged as if it had differed."""
    accused: list[str] = []

    class Suspicious(Server):
        def _compare(self, command: c.Command[Any], decision: Decision[Any]) -> None:
            super()._compare(command, decision)
            accused.append(self._accusation(command, decision, decision.reply))

    monkeypatch.setattr("unswept.simulations.run.Server", Suspicious)
    outcome = run_seed(Settings(1, hours=0.5), SimulatedStore("sqlite::memory:"))
    assert outcome.violation is None
    assert len(accused) > 1_000
    assert set(accused) == {""}
