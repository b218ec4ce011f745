"""A script: what a store was told, step by step, and how it is carried out again and judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from attrs import frozen

from unswept.core.commands import Command, Store
from unswept.core.job import Job
from unswept.core.units import MonoMs, StoreMs
from unswept.core.world import World
from unswept.simulations.broken_stores import blanket_sweep
from unswept.simulations.campaign import OpenStore
from unswept.simulations.designs import DESIGNS, Design
from unswept.simulations.network import Envelope, Network, Weather
from unswept.simulations.run import Settings
from unswept.simulations.server import Server
from unswept.simulations.timeline import StoreClock, Timeline
from unswept.simulations.violation import Violation
from unswept.simulations.witness import Truth, Witness
from unswept.spec.laws import BY_ID
from unswept.spec.observations import Send, Step


@frozen
class Told:
    """One step: what the store was told, when by its own clock, and by whom."""

    store_at: StoreMs
    sender: str
    command: Command[Any] | None
    """None: nothing was told; what happened elsewhere is judged."""
    truth: Truth | None = None
    """What a law was judged on here that no store can know."""
    blanket: bool = False
    """It went past every guard of the store: the blanket start-up sweep."""


@frozen
class Script:
    """A run cut down to what it takes to break the law again."""

    law: str
    offence: str
    verb: str
    """Where two stores differ: on which command."""
    store: str
    """The URL of the store under test, without its password."""
    settings: Settings
    """The run that it was found in."""
    version: str
    steps: tuple[Told, ...]


@frozen
class Shown:
    """What came of one step."""

    command: Command[Any] | None
    """As the store was told, with the stamps that it had."""
    reply: Any
    rows: tuple[tuple[Job | None, Job | None], ...]
    laws: tuple[str, ...]
    """Those that looked at it."""


@frozen
class Broken:
    """How a script ends that breaks a law."""

    law: str
    offence: str
    verb: str
    index: int
    """Of the step that broke it; the number of steps, where it was the comparison of all rows."""


Meaning = Callable[[int, World], Command[Any] | None]
"""The command that the step of this index means in this world."""


class Teller:
    """Tells a fresh store one step after another, and lets the laws look."""

    def __init__(self, design: Design, under_test: Store | None, clock: StoreClock) -> None:
        """Nothing has been told yet; `clock` is also the store under test's."""
        self._clock = clock
        self._excused = design.excused
        network = Network(clock.timeline, Random(0), Weather(), _nobody)
        under_test = under_test if design.on_real_store else None
        self.server = Server(clock.timeline, clock, network, under_test, design, 0, _nobody)
        self._witness = Witness(self.server.pure.world, self.server.history.stamps)
        self.server.recorder = self._see
        self._step: Step | None = None

    def tell(self, told: Told, command: Command[Any] | None) -> None:
        """One step; raises `Violation` if it breaks a law."""
        self._step = None
        self._clock.offset_ms = told.store_at
        if told.truth is not None and isinstance(told.truth.observation, Send):
            self._judge(told.truth, command)
        if told.blanket:
            world, now = self.server.pure.world, self._clock()
            sweep, decision = blanket_sweep(world, told.sender, now)
            self.server.carry_out(sweep, decision, _envelope(told.sender, sweep))
        elif command is not None:
            self.server.execute(command, _envelope(told.sender, command))
        if told.truth is not None and not isinstance(told.truth.observation, Send):
            self._judge(told.truth, command)

    def shown(self, told: Told, command: Command[Any] | None) -> Shown:
        """What came of the step that was told last, also if it broke a law."""
        judged = () if told.truth is None else (told.truth.law,)
        step = self._step
        if step is None:
            return Shown(command, None, (), judged)
        return Shown(step.command, step.reply, step.rows, (*self.server.judges_of(step), *judged))

    def _see(self, step: Step, envelope: Envelope) -> None:
        self._step = step
        self._witness.see(step)

    def _judge(self, truth: Truth, command: Command[Any] | None) -> None:
        law = BY_ID[truth.law]
        if law.id in self._excused or law.broken is None:
            return
        seen = self._witness.remade(truth, command, self._clock())
        offence = None if seen is None else law.broken(seen)
        if offence is not None:
            raise Violation(law.id, offence)


def carried_out(
    steps: Sequence[Told],
    design: str,
    open_store: OpenStore,
    meaning: Meaning | None = None,
    watch: Callable[[Told, Shown], None] | None = None,
) -> Broken | None:
    """Tell a fresh store of this design, or the one that `open_store` opens, what stands in
    `steps`, each word as it stands unless `meaning` knows better; how a law was broken, or None if
    all held."""
    clock = StoreClock(Timeline(), steps[0].store_at if steps else 0)
    index = 0
    with open_store(clock, 0) as store:
        teller = Teller(DESIGNS[design], store, clock)
        try:
            for index, told in enumerate(steps):
                world = teller.server.pure.world
                command = told.command if meaning is None else meaning(index, world)
                try:
                    teller.tell(told, command)
                finally:
                    if watch is not None:
                        watch(told, teller.shown(told, command))
            index = len(steps)
            teller.server.compare_all()
        except Violation as found:
            return Broken(found.law, found.offence, found.verb, index)
    return None


def _envelope(sender: str, command: Command[Any]) -> Envelope:
    return Envelope(sender, command, MonoMs(0), lambda reply: None)


def _nobody(*ignored: object) -> None:
    """Nobody waits for answers, and nobody observes."""
