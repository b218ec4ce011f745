"""Breadth-first search of the table: the shortest way to a broken law, or none."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from attrs import define, field, frozen

from unswept.core import commands as c
from unswept.core.records import changed
from unswept.core.units import StoreMs
from unswept.core.world import decide
from unswept.spec.explorer.offence import Offence
from unswept.spec.explorer.table.asking import Asking
from unswept.spec.explorer.table.judging import Cell, Judge
from unswept.spec.explorer.table.made import Ask
from unswept.spec.explorer.table.scopes import STEP_BACK, Scope
from unswept.spec.explorer.table.state import Keys, State, first

TICK: Final = "a tick passes"
BACK: Final = "the store clock steps back"
What = Ask | str
"""A command that reaches the store, or what its clock does."""

_OF_INSTANCES: Final = (c.Claim, c.Register, c.Deregister)
"""What may change an instance's row and no job."""


@frozen
class Table:
    """What is searched: a scope, with so many instances and jobs."""

    scope: Scope
    instances: int
    jobs: int

    @property
    def names(self) -> tuple[str, ...]:
        """Of the instances."""
        return tuple(f"i{n}" for n in range(1, self.instances + 1))

    @property
    def job_ids(self) -> tuple[str, ...]:
        """The ids that jobs may be born under."""
        jobs = max(self.jobs, 2) if self.scope.of_pairs else self.jobs
        return tuple(f"j{n}" for n in range(1, jobs + 1))


@define
class Found:
    """What a search found, and how far it looked."""

    states: int = 0
    transitions: int = 0
    depth: int = 0
    """Steps of the longest of the shortest ways."""
    seconds: float = 0.0
    judged: Counter[str] = field(factory=Counter)
    """How often each law's predicate looked at a step."""
    cells: set[Cell] = field(factory=set)
    """The cells of the status table that were exercised."""
    offences: tuple[Offence, ...] = ()
    """The laws that the last step of the trace breaks."""
    trace: tuple[What, ...] = ()
    """The shortest way to a step that breaks a law; empty: there is none."""
    complete: bool = True
    """False: the search ended before it had seen every state."""

    @property
    def verdict(self) -> str:
        """In one word; undetermined is no pass."""
        if self.offences:
            return "refuted"
        return "exhausted" if self.complete else "undetermined"


class _Way(NamedTuple):
    """How a state was first reached."""

    parent: int
    what: What


class Move(NamedTuple):
    """One thing that may happen next."""

    what: What
    state: State
    """The very state before, where nothing changed that matters."""
    offences: tuple[Offence, ...] = ()


def first_refuted(
    scopes: Iterable[Scope], instances: int, jobs: int, depth: int | None = None
) -> tuple[Table, Found] | None:
    """The first of these searches in which a law is broken, if any."""
    for scope in scopes:
        table = Table(scope, instances, jobs)
        found = search(table, depth)
        if found.offences:
            return table, found
    return None


def search(table: Table, depth: int | None = None, limit: int | None = None) -> Found:
    """Search every state that can be reached, nearest first, to this depth and so many states."""
    began = time.monotonic()
    found = Found()
    _search(table, depth, limit, found)
    found.seconds = time.monotonic() - began
    return found


class Model:
    """The transition relation of one table."""

    def __init__(self, table: Table, judge: Judge) -> None:
        """A model whose steps this judge judges."""
        self._table = table
        self._judge = judge
        self._asking = Asking(table.scope, table.names, table.job_ids)
        self._keys = Keys(table.scope, table.names, table.job_ids)
        self.key = self._keys.key

    def first(self) -> State:
        """No job, and every instance registered."""
        return self._keys.told(first(self._table.scope, self._table.names))

    def moves(self, state: State) -> Iterator[Move]:
        """Everything that may happen next."""
        told, now, left = self._keys.told, state.now, state.steps_back
        yield Move(TICK, told(changed(state, now=StoreMs(now + 1))))
        if left:
            earlier = StoreMs(now - STEP_BACK)
            yield Move(BACK, told(changed(state, now=earlier, steps_back=left - 1)))
        for command in self._asking.commands(state):
            decision = decide(state.world, command, now)
            step = state.ghosts.step(state.world, command, decision, now)
            offences = self._judge.offences(step)
            if offences or not (decision.changes or decision.events):
                yield Move(command, state, offences)
                continue
            after = self._keys.told_again(state.after(decision, step), step)
            same = after.facts == state.facts and not isinstance(command, _OF_INSTANCES)
            yield Move(command, state if same else after)


def _search(table: Table, depth: int | None, limit: int | None, found: Found) -> None:
    model = Model(table, Judge(found.judged, found.cells))
    start = model.first()
    seen = {model.key(start)}
    ways = [_Way(-1, TICK)]
    level = [(0, start)]
    while level:
        if depth is not None and found.depth >= depth:
            found.complete = False
            return
        deeper: list[tuple[int, State]] = []
        for number, state in level:
            for what, after, offences in model.moves(state):
                found.transitions += 1
                if offences:
                    found.offences, found.depth = offences, found.depth + 1
                    found.trace = _trace(ways, _Way(number, what))
                    return
                if after is state:
                    continue
                key = model.key(after)
                if key not in seen:
                    seen.add(key)
                    ways.append(_Way(number, what))
                    deeper.append((len(ways) - 1, after))
            found.states = len(seen)
            if limit is not None and len(seen) >= limit:
                found.complete = False
                return
        level = deeper
        found.depth += bool(level)


def _trace(ways: list[_Way], last: _Way) -> tuple[What, ...]:
    told = [last.what]
    while last.parent > 0:
        last = ways[last.parent]
        told.append(last.what)
    return tuple(reversed(told))
