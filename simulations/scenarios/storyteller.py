"""Tells a story to a store, and notes what the store really answered."""

from __future__ import annotations

from attrs import define, frozen

from unswept.core.commands import Store
from unswept.core.memory import MemoryStore
from unswept.core.units import MonoMs, StoreMs
from unswept.simulations.scenarios.alive import Alive, Lives
from unswept.simulations.scenarios.language import command, lines_of, shown


@define
class StandingClock:
    """A store clock that stands until a story moves it, in either direction."""

    now: StoreMs = StoreMs(0)

    def __call__(self) -> StoreMs:
        """The store time now."""
        return self.now


@frozen
class Told:
    """A story as it was written, and as the store told it."""

    expected: str
    told: str

    @property
    def holds(self) -> bool:
        """Did the store answer each line as it was written?"""
        return self.told == self.expected

    def lines(self) -> list[tuple[str, str]]:
        """Each line, as it was written and as it was told."""
        return list(zip(self.expected.splitlines(), self.told.splitlines(), strict=True))


class Storyteller:
    """A store that is spoken to in lines of text."""

    def __init__(self, store: Store, clock: StandingClock) -> None:
        """The store's time is what `clock` says."""
        self.store = store
        self.clock = clock
        self._own_now = MonoMs(0)
        self._instances: dict[str, Alive] = {}

    @classmethod
    def of_pure_store(cls) -> Storyteller:
        """Speaks to an empty pure store."""
        clock = StandingClock()
        return cls(MemoryStore(clock), clock)

    def play(self, story: str) -> Told:
        """The whole story."""
        lines = lines_of(story)
        return Told("\n".join(lines), "\n".join(self.tell(line) for line in lines))

    def tell(self, line: str) -> str:
        """The line with the reply that the store really gave."""
        said, _, _ = line.partition(" -> ")
        at, *words = said.split()
        self.clock.now = StoreMs(int(at))
        if words[0] == "live":
            return f"{said} -> {', '.join(self._live(words[1:])) or 'nothing'}"
        return f"{said} -> {shown(self.store.execute(command(words)))}"

    def _live(self, words: list[str]) -> list[str]:
        lives = Lives.said(words)
        heard = []
        for _ in range(lives.for_ms):
            for name, holds in lives.holds.items():
                instance = self._instances.get(name)
                if instance is None:
                    instance = self._instances[name] = Alive(name, self._own_now)
                store = None if name in lives.cut_off else self.store
                did = instance.live(self._own_now, store, holds, drains=name in lives.draining)
                heard += [f"{self.clock.now} {name} {what}" for what in did]
            self._own_now = MonoMs(self._own_now + 1)
            self.clock.now = StoreMs(self.clock.now + 1)
        return heard
