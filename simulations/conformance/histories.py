"""Drawn histories of many jobs, under a clock that jumps to whatever falls due."""

from __future__ import annotations

from random import Random
from typing import Final

from unswept.core.units import StoreMs
from unswept.simulations.conformance.asking import a_command, instants
from unswept.simulations.conformance.coverage import Coverage
from unswept.simulations.conformance.lockstep import Lockstep
from unswept.simulations.conformance.sights import Draw, Sight, pick
from unswept.simulations.conformance.stores import MakeStore


class Drawer:
    """A hand on a `Lockstep`: which command is next, and how the clock moves, drawn from a seed."""

    def __init__(self, pair: Lockstep, seed: object) -> None:
        """The same seed gives the same history, whatever else was imported or has run."""
        self.pair = pair
        self.draw: Draw = Random(f"history {seed}")

    def step(self) -> None:
        """One step."""
        pick(self.draw, *_STEPS)(self)

    def ask(self) -> None:
        """Both stores are asked something."""
        sight = Sight(self.pair.pure.world, self.pair.clock.now)
        self.pair.ask(a_command(self.draw, sight))

    def repeat(self) -> None:
        """A command comes again: its answer was lost, or the network sent it twice."""
        recent = self.pair.asked[:-7:-1]
        if recent:
            self.pair.ask(pick(self.draw, *recent)[1])

    def advance(self) -> None:
        """The clock jumps to where something falls due, or beside it by a millisecond."""
        now = self.pair.clock.now
        due = sorted({at for at in instants(self.pair.pure.world) if at >= now})[:4] or [now]
        self._set(pick(self.draw, *due) + pick(self.draw, -1, 0, 1))

    def wait(self) -> None:
        """Time passes."""
        self._set(self.pair.clock.now + self.draw.randrange(200))

    def step_back(self) -> None:
        """The store clock is set back."""
        self._set(self.pair.clock.now - 1 - self.draw.randrange(400))

    def _set(self, now: int) -> None:
        self.pair.clock.now = StoreMs(now)


_STEPS: Final = (
    *[Drawer.ask] * 12,
    *[Drawer.repeat] * 2,
    *[Drawer.advance] * 5,
    Drawer.wait,
    Drawer.step_back,
)


def history(make_store: MakeStore, seed: object, steps: int) -> Coverage:
    """One history, and all reads at its end; what was met on the way.

    Raises `NonconformanceError` where the store differs from the pure one.
    """
    pair = Lockstep(make_store)
    try:
        drawer = Drawer(pair, seed)
        for _ in range(steps):
            drawer.step()
        pair.check_reads()
    finally:
        pair.close()
    return pair.coverage
