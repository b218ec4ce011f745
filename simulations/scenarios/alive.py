"""Instances that live for a while within a story, by the core's own heart and sweeper.

    0    live 60 S A j1/1      -> nothing
    60   live 100 S            -> 160 S sees j1, 190 S sweeps j1: done

For so many milliseconds the named instances sweep, look for suspects and beat, one after the other;
the jobs behind a name are those that it holds. In each millisecond the sweep comes before the beat:
that is the harder order. `cut=A+S` cuts instances off from the store, `draining=A` lets one drain.
Who is not named does nothing: it is dead, stopped or suspended. Boot time runs in these lines
alone, for all alike, so what the store clock does between two lines is a step of it. Told is what
an instance suspects, sweeps and hears; an accepted beat is nothing to tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import frozen

from unswept.core import commands as c
from unswept.core import heart as hearts
from unswept.core import replies as r
from unswept.core import sweeper as sweepers
from unswept.core.commands import Store
from unswept.core.heart import Phase
from unswept.core.units import MonoMs
from unswept.simulations.scenarios.language import POLICY, TERMS, became, holds_of


@frozen
class Lives:
    """What a line with `live` says."""

    for_ms: int
    holds: dict[str, tuple[c.Hold, ...]]
    """By instance, in the order in which they get their turns."""
    cut_off: frozenset[str]
    draining: frozenset[str]

    @classmethod
    def said(cls, words: list[str]) -> Lives:
        """The words after `live`."""
        for_ms, *rest = words
        options = dict(word.split("=", 1) for word in rest if "=" in word)
        named: dict[str, list[str]] = {}
        for word in rest:
            if "/" in word:
                named[[*named][-1]].append(word)
            elif "=" not in word:
                named[word] = []
        return cls(
            int(for_ms),
            {name: holds_of(holds) for name, holds in named.items()},
            frozenset(options.get("cut", "").split("+")),
            frozenset(options.get("draining", "").split("+")),
        )


class Alive:
    """One instance: what it knows of itself, whom it suspects, and which holds have ended."""

    def __init__(self, name: str, now: MonoMs) -> None:
        """It boots."""
        self.name = name
        self._heart = hearts.boot(POLICY, now)
        self._sweeper = sweepers.begin(POLICY, now)
        self._heard: set[tuple[c.Hold, str]] = set()

    def live(
        self, now: MonoMs, store: Store | None, holds: tuple[c.Hold, ...], drains: bool
    ) -> Iterator[str]:
        """One millisecond, told where it is worth it; no store: it is cut off."""
        if drains:
            self._heart = hearts.drain(self._heart)
        yield from self._sweep(now, store, holds)
        hurried = sweepers.wants_hurry(self._sweeper)
        self._heart = hearts.hurry(self._heart, hurried, now)
        yield from self._beat(now, store, holds)

    def _beat(self, now: MonoMs, store: Store | None, holds: tuple[c.Hold, ...]) -> Iterator[str]:
        before = self._heart.phase
        self._heart, sends = hearts.tick(self._heart, now)
        for send in sends:
            if isinstance(send, hearts.SendRegister):
                if store is not None:
                    store.execute(c.Register(self.name))
                    self._heart = hearts.registered(self._heart, now)
            elif store is None:
                self._heart = hearts.failed(self._heart, send.number, now)
            else:
                yield from self._beaten(now, store, send.number, holds)
        if self._heart.phase is not before and self._heart.phase is Phase.QUIESCED:
            yield "is quiesced"
        if before is Phase.RECOVERING and self._heart.phase is Phase.STEADY:
            yield "is readmitted"

    def _beaten(
        self, now: MonoMs, store: Store, number: int, holds: tuple[c.Hold, ...]
    ) -> Iterator[str]:
        ended = {hold for hold, what in self._heard if what != "cancel"}
        asked = tuple(hold for hold in holds if hold not in ended)
        watched = tuple(self._sweeper.suspicions)
        beaten = store.execute(c.Heartbeat(self.name, TERMS, asked, watched))
        busy = any(answer.answer is r.Answer.BUSY for answer in beaten.answers)
        self._heart = hearts.answered(self._heart, number, now, beaten.registered, busy)
        self._sweeper = sweepers.found_locked(self._sweeper, beaten.locked)
        for answer in beaten.answers:
            yield from self._hear(answer)

    def _hear(self, answer: r.HoldAnswer) -> Iterator[str]:
        said = []
        if answer.answer not in (r.Answer.RENEWED, r.Answer.BUSY):
            said.append(answer.answer.value)
        if answer.cancel_requested_at is not None:
            said.append("cancel")
        for what in said:
            news = (c.Hold(answer.job_id, answer.epoch), what)
            if news not in self._heard:
                self._heard.add(news)
                yield f"hears {answer.job_id}: {what}"

    def _sweep(self, now: MonoMs, store: Store | None, holds: tuple[c.Hold, ...]) -> Iterator[str]:
        own = {hold.job_id for hold in holds}
        self._sweeper, effects = sweepers.tick(self._sweeper, self._heart, now, own)
        while effects:
            effect, *rest = effects
            effects = tuple(rest)
            match effect:
                case sweepers.SendSuspects():
                    effects += self._look(now, store, effect, own)
                case sweepers.FirstSight():
                    yield f"sees {effect.suspect.job_id}"
                case sweepers.SendSweep() if store is not None:
                    swept = store.execute(effect.command(self.name))
                    for answer in swept.answers:
                        yield f"sweeps {answer.job_id}: {became(answer)}"

    def _look(
        self, now: MonoMs, store: Store | None, look: sweepers.SendSuspects, own: set[str]
    ) -> tuple[Any, ...]:
        if store is None:
            self._sweeper = sweepers.failed(self._sweeper, look.number, now)
            return ()
        page = store.execute(look.command)
        self._sweeper, effects = sweepers.answered(self._sweeper, look.number, page, own, now)
        return effects
