"""Searches for a job of a lost owner that stays as it is for ever, though nobody is unfair."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from attrs import define, field, frozen

from unswept.spec.explorer.offence import Offence
from unswept.spec.explorer.table.judging import Cell, Judge
from unswept.spec.explorer.table.lasso import Edge, around, fair_components
from unswept.spec.explorer.table.scopes import PLAIN, TWICE
from unswept.spec.explorer.table.settling import TICK, Habits, Run, Settling, Troubles

REAL_HABITS: Final = Habits()


@frozen
class SettlingDesign:
    """A way to sweep that leaves some job of a lost owner as it is, for ever."""

    name: str
    sentence: str
    habits: Habits
    jobs: int = 1
    """The least number of jobs that shows it."""


SETTLING_DESIGNS: Final[Mapping[str, SettlingDesign]] = MappingProxyType(
    {
        design.name: design
        for design in (
            SettlingDesign(
                "first-page-only",
                "A sweeper looks at the first suspect alone, so that one that is always late hides "
                "all others.",
                Habits(first_page_only=True),
                jobs=2,
            ),
            SettlingDesign(
                "gives-up",
                "A sweeper whose sweep was refused sweeps no more.",
                Habits(gives_up=True),
            ),
            SettlingDesign(
                "forgets",
                "A sweeper begins every look anew, and so sees nothing twice.",
                Habits(forgets=True),
            ),
            SettlingDesign(
                "pid-veto",
                "A suspect whose process number is alive is spared, as often as that is seen.",
                Habits(vetoes=True),
            ),
            SettlingDesign(
                "instances-trusted",
                "A suspect is spared while its owner stands in the table of instances.",
                Habits(trusts_instances=True),
            ),
        )
    }
)


@define
class Settled:
    """What a search found."""

    states: int = 0
    transitions: int = 0
    depth: int = 0
    seconds: float = 0.0
    complete: bool = True
    way: tuple[str, ...] = ()
    """The shortest way to where a job stays for ever with an owner that is gone."""
    round: tuple[str, ...] = ()
    """And what may happen from there on, again and again, though nobody is unfair."""
    job_id: str = ""
    offences: tuple[Offence, ...] = ()
    """The laws that some step broke."""
    judged: Counter[str] = field(factory=Counter)
    cells: set[Cell] = field(factory=set)

    @property
    def verdict(self) -> str:
        """In one word; undetermined is no pass."""
        if self.round or self.offences:
            return "refuted"
        return "exhausted" if self.complete else "undetermined"


def settle(
    instances: int, jobs: int, habits: Habits = REAL_HABITS, limit: int | None = None
) -> Settled:
    """Search every state, then for a run that leaves a job of a lost owner as it is, for ever.

    Of one job with two kinds of policy, and late heartbeats; of two jobs with neither.
    """
    troubles, profiles = (Troubles(), (PLAIN, TWICE)) if jobs == 1 else (Troubles(1, 0), (PLAIN,))
    began = time.monotonic()
    found = Settled()
    model = Settling(instances, jobs, habits, troubles, profiles, Judge(found.judged, found.cells))
    runs, graph, came = _graph(model, found, limit)
    if found.complete and not found.offences:
        for job_id in model.job_ids:
            inside = [model.neglected(run, job_id) for run in runs]
            nearest = min(fair_components(graph, inside.__getitem__), key=min, default=None)
            if nearest is not None:
                _tell(found, job_id, nearest, graph, came)
                break
    found.seconds = time.monotonic() - began
    return found


_Came = list[tuple[int, str]]
"""From which state each was first reached, and how."""


def _graph(
    model: Settling, found: Settled, limit: int | None
) -> tuple[list[Run], list[list[Edge]], _Came]:
    start = model.first()
    numbers = {model.key(start): 0}
    runs, came, depths = [start], [(-1, "")], [0]
    graph: list[list[Edge]] = []
    while len(graph) < len(runs):
        at = len(graph)
        edges = []
        for move in model.moves(runs[at]):
            key = model.key(move.run)
            number = numbers.setdefault(key, len(runs))
            if number == len(runs):
                runs.append(move.run)
                came.append((at, move.words or TICK))
                depths.append(depths[at] + 1)
            edges.append(Edge(move.action, number, move.words or TICK))
        graph.append(edges)
        found.transitions += len(edges)
        if model.offences or (limit is not None and len(runs) >= limit):
            found.offences, found.complete = model.offences, False
            break
    found.states, found.depth = len(runs), depths[-1]
    return runs, graph, came


def _tell(
    found: Settled, job_id: str, component: list[int], graph: list[list[Edge]], came: _Came
) -> None:
    begin = min(component)
    way, at = [], begin
    while at:
        at, words = came[at]
        way.append(words)
    found.job_id = job_id
    found.way = tuple(reversed(way))
    found.round = tuple(graph[state][n].words for state, n in around(graph, component, begin))
