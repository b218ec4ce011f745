"""A script: what a store was told, step by step, and how it is carried out again and judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Protocol

from attrs import frozen

from unswept.core.commands import Command, Store
from unswept.core.job import Job
from unswept.core.units import MonoMs, StoreMs
from unswept.core.world import World
from unswept.simulations.broken_leases import blanket_sweep
from unswept.simulations.campaign import OpenStore
from unswept.simulations.designs import DESIGNS, Design
from unswept.simulations.network import Envelope, Network, Weather
from unswept.simulations.run import Settings
from unswept.simulations.server import Server
from unswept.simulations.timeline import StoreClock, Timeline
from unswept.simulations.violation import Violation
from unswept.simulations.witness import Observation, Truth, Witness
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

    @property
    def is_of_conduct(self) -> bool:
        """Does it judge what somebody did beside the store? That is told as it was recorded: no
        change of an instance changes it."""
        return any(told.truth is not None for told in self.steps)


Verdict = tuple[str, str | None]
"""A law that looked, and how it was broken if it was."""


@frozen
class Shown:
    """What came of one step of the store, or of one look at what the store does not know."""

    store_at: StoreMs
    sender: str
    subject: Command[Any] | Observation
    """As the store was told it, with the stamps that it had; or what was judged."""
    reply: Any
    rows: tuple[tuple[Job | None, Job | None], ...]
    verdicts: tuple[Verdict, ...]
    borne_out: bool = True
    """The store bears out what was judged; if not, nothing can be said."""


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


class Scribe(Protocol):
    """Whoever writes down how a script is carried out."""

    def step(self, step: Step, sender: str) -> None:
        """A command is about to be made so."""
        ...

    def ends(self, now: StoreMs, broken: Broken | None, checked: Counter[str]) -> None:
        """All has been told, or a law was broken; `checked`: how often each law has judged."""
        ...


class Teller:
    """Tells a fresh store one step after another, and lets the laws look."""

    def __init__(
        self,
        design: Design,
        under_test: Store | None,
        clock: StoreClock,
        watch: Callable[[Shown], None] | None,
        scribe: Scribe | None = None,
    ) -> None:
        """Nothing has been told yet; `clock` is also the store under test's."""
        self._watch = watch
        self._scribe = scribe
        self._clock = clock
        self._excused = design.excused
        network = Network(clock.timeline, Random(0), Weather(), _nobody)
        under_test = under_test if design.on_real_store else None
        self.server = Server(clock.timeline, clock, network, under_test, design, 0, _nobody)
        self._witness = Witness(self.server.pure.world, self.server.history.stamps)
        self.server.recorder = self._see

    def tell(self, told: Told, command: Command[Any] | None) -> None:
        """One step; raises `Violation` if it breaks a law."""
        self._clock.offset_ms = told.store_at
        if told.truth is not None and isinstance(told.truth.observation, Send):
            self._judge(told.truth, command, told.sender)
        if told.blanket:
            world, now = self.server.pure.world, self._clock()
            sweep, decision = blanket_sweep(world, told.sender, now)
            self.server.carry_out(sweep, decision, _envelope(told.sender, sweep))
        elif command is not None:
            self.server.execute(command, _envelope(told.sender, command))
        if told.truth is not None and not isinstance(told.truth.observation, Send):
            self._judge(told.truth, command, told.sender)

    def _see(self, step: Step, envelope: Envelope) -> None:
        self._witness.see(step)
        if self._scribe is not None:
            self._scribe.step(step, envelope.sender)
        if self._watch is not None:
            verdicts = tuple(self.server.verdicts(step))
            self._watch(
                Shown(step.now, envelope.sender, step.command, step.reply, step.rows, verdicts)
            )

    def _judge(self, truth: Truth, command: Command[Any] | None, sender: str) -> None:
        law = BY_ID[truth.law]
        if law.id in self._excused or law.broken is None:
            return
        now = self._clock()
        seen = self._witness.remade(truth, command, now)
        offence = None if seen is None else law.broken(seen)
        if self._watch is not None:
            verdict = (law.id, offence)
            self._watch(
                Shown(now, sender, truth.observation, None, (), (verdict,), seen is not None)
            )
        if offence is not None:
            raise Violation(law.id, offence)


def carried_out(
    steps: Sequence[Told],
    design: str,
    open_store: OpenStore,
    meaning: Meaning | None = None,
    watch: Callable[[Shown], None] | None = None,
    scribe: Scribe | None = None,
) -> Broken | None:
    """Tell a fresh store of this design, or the one that `open_store` opens, what stands in
    `steps`, each word as it stands unless `meaning` knows better; how a law was broken, or None if
    all held."""
    clock = StoreClock(Timeline(), steps[0].store_at if steps else 0)
    index, broken = 0, None
    with open_store(clock, 0) as store:
        teller = Teller(DESIGNS[design], store, clock, watch, scribe)
        try:
            for index, told in enumerate(steps):
                world = teller.server.pure.world
                command = told.command if meaning is None else meaning(index, world)
                teller.tell(told, command)
            index = len(steps)
            teller.server.compare_all()
        except Violation as found:
            broken = Broken(found.law, found.offence, found.verb, index)
        if scribe is not None:
            scribe.ends(clock(), broken, teller.server.all_checked())
    return broken


def _envelope(sender: str, command: Command[Any]) -> Envelope:
    return Envelope(sender, command, MonoMs(0), lambda reply: None)


def _nobody(*ignored: object) -> None:
    """Nobody waits for answers, and nobody observes."""
