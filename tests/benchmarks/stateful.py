"""The plain alternative to the simulator: a stateful test after Hypothesis's handbook."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    consumes,
    initialize,
    multiple,
    rule,
)

from unswept.core import commands as c
from unswept.core.lease import Status
from unswept.core.policy import LeasePolicy
from unswept.core.units import MonoMs
from unswept.core.values import Chunk, Stream
from unswept.simulations.designs import DESIGNS
from unswept.simulations.network import Envelope, Network, Weather
from unswept.simulations.server import Server
from unswept.simulations.timeline import StoreClock, Timeline

POLICY: Final = LeasePolicy()
TERMS: Final = POLICY.terms()
OWNERS: Final = ("i1", "i2", "i3")


def judged(timeline: Timeline) -> Callable[[c.Command[Any]], Any]:
    """The server of a simulated run: the pure store, with every law judged at every step."""
    network = Network(timeline, Random(1), Weather(), lambda envelope, reply: None)
    clock = StoreClock(timeline, 1_000)
    server = Server(
        timeline, clock, network, None, DESIGNS["unswept"], 1_000, lambda step, envelope: None
    )
    envelope = Envelope("i", c.ListInstances(), MonoMs(0), lambda reply: None)
    return lambda command: server.execute(command, envelope)


class Stateful(RuleBasedStateMachine):
    """What three gateways ask, under a clock that a rule of its own moves: where it stands still,
    no lease ever lapses."""

    asked = 0
    """Commands, of all runs together."""
    jobs = Bundle("jobs")
    seen = Bundle("seen")
    owners = st.sampled_from(OWNERS)
    epochs = st.integers(1, 2)

    @initialize()
    def open(self) -> None:
        """An empty store that three instances know."""
        self.timeline = Timeline()
        self.execute = judged(self.timeline)
        self.born = 0
        for owner in OWNERS:
            self.ask(c.Register(owner))

    def ask(self, command: c.Command[Any]) -> Any:
        Stateful.asked += 1
        return self.execute(command)

    @rule(ms=st.integers(0, 60_000))
    def advance(self, ms: int) -> None:
        self.timeline.now += ms

    @rule(target=jobs, owner=owners)
    def admit(self, owner: str) -> str:
        self.born += 1
        job_id = f"j{self.born}"
        self.ask(c.Admit(job_id, owner, TERMS))
        return job_id

    @rule(job_id=jobs, owner=owners, epoch=epochs)
    def start(self, job_id: str, owner: str, epoch: int) -> None:
        self.ask(c.Start(job_id, owner, epoch, TERMS))

    @rule(owner=owners, held=st.lists(jobs, max_size=4, unique=True))
    def beat(self, owner: str, held: list[str]) -> None:
        self.ask(c.Heartbeat(owner, TERMS, tuple(c.Hold(job_id, 1) for job_id in held)))

    @rule(job_id=jobs, owner=owners, number=st.integers(0, 3))
    def output(self, job_id: str, owner: str, number: int) -> None:
        chunk = Chunk(number, Stream.STDOUT, b"x")
        self.ask(c.Output(job_id, owner, 1, chunk, POLICY.late_output_ms))

    @rule(job_id=jobs, owner=owners, epoch=epochs)
    def complete(self, job_id: str, owner: str, epoch: int) -> None:
        self.ask(c.Complete(job_id, owner, epoch, Status.COMPLETED))

    @rule(target=seen)
    def look(self) -> MultipleResults[c.Target]:
        page = self.ask(c.Suspects())
        return multiple(
            *(c.Target(found.job_id, found.epoch, found.beats, page.at) for found in page.suspects)
        )

    @rule(sweeper=owners, found=consumes(seen))
    def sweep(self, sweeper: str, found: c.Target) -> None:
        self.ask(c.Sweep(sweeper, (found,)))
