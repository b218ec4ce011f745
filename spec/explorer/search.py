"""Breadth-first search over a model: the shortest way to a state that breaks a law, or none."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from attrs import define, field, frozen

from unswept.spec.explorer.happenings import What
from unswept.spec.explorer.model import Model, State
from unswept.spec.explorer.offence import Offence

REPORT_EVERY: Final = 5_000


@frozen
class Event:
    """One thing that happened on the way, and when, in ticks."""

    tick: int
    what: What


@define
class Search:
    """What a search found, and how far it looked."""

    states: int = 0
    transitions: int = 0
    depth: int = 0
    """Moves on the longest of the shortest ways."""
    seconds: float = 0.0
    trace: tuple[Event, ...] = ()
    """The shortest way to a state that breaks a law; empty: there is none."""
    offence: Offence | None = None
    """The law that its last state breaks."""
    complete: bool = True
    """False: the search ended before it had seen every state."""

    @property
    def refuted(self) -> bool:
        """A law can be broken."""
        return bool(self.trace)

    @property
    def verdict(self) -> str:
        """In one word; undetermined is no pass."""
        if self.refuted:
            return "refuted"
        return "exhausted" if self.complete else "undetermined"


@define
class _Way:
    """How a state was first reached."""

    parent: Any
    what: What | None
    tick: int
    depth: int = field(default=0)


def search(
    model: Model,
    limit: int | None = None,
    progress: Callable[[Search], None] = lambda found: None,
) -> Search:
    """Search every state that the model can reach from any of its starts, nearest first; `limit`
    bounds the states."""
    began = time.monotonic()
    found = Search()
    ways: dict[Any, _Way] = {}
    queue: deque[tuple[Any, State]] = deque()
    for start in model.starts():
        key = model.key(start)
        if key not in ways:
            ways[key] = _Way(None, None, 0)
            queue.append((key, start))
    while queue:
        key, state = queue.popleft()
        way = ways[key]
        found.depth = max(found.depth, way.depth)
        for move in model.moves(state):
            found.transitions += 1
            after = model.key(move.state)
            if after in ways:
                continue
            ways[after] = _Way(key, move.what, way.tick + move.ticks, way.depth + 1)
            if move.state.offence:
                found.offence = move.state.offence
                found.trace = _trace(ways, after)
                queue.clear()
                break
            queue.append((after, move.state))
        if len(ways) % REPORT_EVERY == 0:
            found.states = len(ways)
            progress(found)
        if limit is not None and len(ways) >= limit and queue:
            found.complete = False
            break
    found.states = len(ways)
    found.seconds = time.monotonic() - began
    return found


def _trace(ways: dict[Any, _Way], key: Any) -> tuple[Event, ...]:
    events: list[Event] = []
    while key is not None:
        way = ways[key]
        if way.what is not None:
            events.append(Event(way.tick, way.what))
        key = way.parent
    return tuple(reversed(events))
