"""Cuts a run that broke a law down to a script that still breaks it: first the run, then what its
store was told. All bounds are numbers of commands, so that the same run gives the same script."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Final

from attrs import define, evolve, frozen

from unswept.core.errors import UnsweptError
from unswept.simulations.campaign import EPOCH, OpenStore, pure_alone
from unswept.simulations.designs import DESIGNS
from unswept.simulations.recording import Entry, RecordedRun, TooLong
from unswept.simulations.run import HOUR, Found, Settings
from unswept.simulations.script import Script
from unswept.simulations.script_search import Search, cost
from unswept.simulations.timeline import StoreClock, Timeline

_COMMANDS: Final = 8_000
"""How much all tries to cut the run may tell the pure store; a longer run is not cut."""


@frozen
class Shrunk:
    """A minimal script, and how it was come by."""

    script: Script
    told: int
    """What the store had been told in the run that the script was cut out of."""
    run_tries: int
    script_tries: int


class NotReproducedError(UnsweptError):
    """The run broke a law, and what its store was told does not break it again."""


def shrink(settings: Settings, open_store: OpenStore, store: str, version: str) -> Shrunk:
    """Run the settings, which break a law, and cut the run down to a script; `store` names what
    `open_store` opens. Raises `NotReproducedError` where that cannot be done."""
    whole = _Runs(settings, open_store).whole()
    opens = open_store if whole.found.verb else pure_alone  # laws judge what the pure store does
    cut = _Runs(settings, opens).cut(whole)
    search = Search(cut.found, cut.settings.design, opens)
    minimal = search.minimal(cut.entries)
    if minimal is None:
        raise NotReproducedError(
            f"{cut.found.law} was broken by seed {settings.seed}, but not by what its store was "
            f"told alone: {cut.found.offence}"
        )
    steps, broken = minimal
    script = Script(
        broken.law, broken.offence, broken.verb, store, cut.settings, version, tuple(steps)
    )
    return Shrunk(script, len(cut.entries), cut.tries, search.tries)


@frozen
class Cut:
    """What a run was cut down to."""

    settings: Settings
    found: Found
    entries: tuple[Entry, ...]
    tries: int = 0


@define
class _Runs:
    """The search for a smaller run: fewer runners, instances and faults, and not longer."""

    settings: Settings
    open_store: OpenStore
    told: int = 0

    def whole(self) -> Cut:
        """The run as it was found."""
        found = self._recorded(self.settings, None)
        if found is None:
            raise NotReproducedError(f"seed {self.settings.seed} broke no law when it ran again")
        return found

    def cut(self, whole: Cut) -> Cut:
        """The smallest run that was found; the whole one, if it is longer than all tries may be: to
        find out that others take as long would be most of the time, and the script needs none."""
        best = whole
        tried: set[Settings] = set()
        if len(whole.entries) > _COMMANDS:
            return best
        while (smaller := self._smaller(best, tried)) is not None:
            best = smaller
        return evolve(best, tries=len(tried))

    def _smaller(self, best: Cut, tried: set[Settings]) -> Cut | None:
        for candidate in _fewer(best.settings):
            same = evolve(candidate, hours=self.settings.hours)
            if same in tried or self.told >= _COMMANDS:
                continue
            tried.add(same)
            found = self._recorded(candidate, min(len(best.entries), _COMMANDS - self.told))
            if found is not None and found.found.law == best.found.law:
                return found
        return None

    def _recorded(self, settings: Settings, at_most: int | None) -> Cut | None:
        """A run that breaks a law and tells its store no more than `at_most`."""
        clock = StoreClock(Timeline(), EPOCH)
        with self.open_store(clock, settings.seed) as store:
            run = RecordedRun(settings, store, clock, at_most)
            try:
                found = run.outcome().violation
            except TooLong:
                found = None
        self.told += cost(len(run.entries), with_store=store is not None)
        if found is None:
            return None
        hours = min(settings.hours, ceil(found.at_ms / HOUR * 10_000) / 10_000)
        return Cut(evolve(settings, hours=hours), found, tuple(run.entries))


def _fewer(settings: Settings) -> Iterator[Settings]:
    """The same run with less of one thing; the greatest steps come first."""
    if not DESIGNS[settings.design].of_gateways:
        for runners in range(settings.runners):
            yield evolve(settings, runners=runners)
    for instances in range(1, settings.instances):
        yield evolve(settings, instances=instances)
    faults = settings.faults
    if faults:
        yield evolve(settings, faults=())
    if len(faults) > 3:
        half = len(faults) // 2
        yield evolve(settings, faults=faults[:half])
        yield evolve(settings, faults=faults[half:])
    if len(faults) > 1:
        for index in range(len(faults)):
            yield evolve(settings, faults=(*faults[:index], *faults[index + 1 :]))
