"""What `unswept explore` says of its searches of the table, for people and for machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table as Grid

from unswept.adapters.cli.explore_table import (
    AnySearched,
    Bounds,
    SettlingSearched,
    TableSearched,
    laws_of,
    totals,
)
from unswept.adapters.cli.searching import COLOURS
from unswept.spec.explorer.designs import REAL
from unswept.spec.explorer.table.designs import TABLE_DESIGNS
from unswept.spec.explorer.table.judging import Cell, every_cell
from unswept.spec.explorer.table.story import sentences, settled_sentences, told
from unswept.spec.laws import LAWS

_SETTLING: Final = "settling"


def print_table(console: Console, done: Sequence[AnySearched], design: str) -> None:
    """Each search, what was exercised, and the first counterexample of the chosen design."""
    grid = Grid(title="\nSearches of the table", title_justify="left", box=None)
    for heading in ("design", "scope", "verdict"):
        grid.add_column(heading)
    for heading in ("size", "states", "transitions", "depth", "s"):
        grid.add_column(heading, justify="right", no_wrap=True)
    for each in done:
        found = each.found
        grid.add_row(
            each.task.design,
            _scope(each),
            f"[{COLOURS[found.verdict]}]{found.verdict}[/] {' '.join(laws_of(each))}",
            "{}x{}".format(*_size(each)),
            str(found.states),
            str(found.transitions),
            str(found.depth),
            f"{found.seconds:.1f}",
        )
    console.print(grid, highlight=False)
    _print_exercised(console, done)
    own = (each for each in done if each.task.design == design)
    broken = next((each for each in own if each.found.verdict == "refuted"), None)
    if broken is not None:
        heading = f"\n{design}: the shortest way to a broken law ({_scope(broken)}):"
        console.print(heading, highlight=False, markup=False)
        for line in _story(broken):
            console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)


def _story(each: AnySearched) -> tuple[str, ...]:
    if isinstance(each, TableSearched):
        return sentences(each.found)
    return settled_sentences(each.found)


def _scope(each: AnySearched) -> str:
    return _SETTLING if isinstance(each, SettlingSearched) else each.task.table.scope.name


def _size(each: AnySearched) -> tuple[int, int]:
    """Instances and jobs."""
    if isinstance(each, SettlingSearched):
        return each.task.instances, each.task.jobs
    return each.task.table.instances, len(each.task.table.job_ids)


def _print_exercised(console: Console, done: Sequence[AnySearched]) -> None:
    judged, cells = totals(done)
    if not judged:
        return
    counts = ", ".join(f"{law.id} {judged[law.id]}" for law in LAWS if judged[law.id])
    console.print(f"\nSteps judged, by law: {counts}", highlight=False)
    every = every_cell()
    exercised, missed = _names(cells & every), _names(every - cells)
    console.print(
        f"Cells of the status table exercised: {len(exercised)} of {len(every)}", highlight=False
    )
    for name in missed:
        console.print(f"- not exercised: {name}", highlight=False)


def _names(cells: set[Cell] | frozenset[Cell]) -> list[str]:
    return sorted(f"{kind}: {was} to {now or 'gone'}" for kind, was, now in cells)


def as_json(done: Sequence[AnySearched], bounds: Bounds) -> dict[str, Any]:
    """The same for machines."""
    judged, cells = totals(done)
    every = every_cell()
    real = [each.found for each in done if each.task.design == REAL]
    return {
        "instances": bounds.instances,
        "leases": bounds.jobs,
        "depth": bounds.depth,
        "states": sum(found.states for found in real),
        "transitions": sum(found.transitions for found in real),
        "judged": {law.id: judged[law.id] for law in LAWS if judged[law.id]},
        "cells": {"exercised": _names(cells & every), "not_exercised": _names(every - cells)},
        "searches": [dict(_search_as_json(each)) for each in done],
    }


def _search_as_json(each: AnySearched) -> Iterator[tuple[str, Any]]:
    found, laws = each.found, laws_of(each)
    yield "design", each.task.design
    yield "scope", _scope(each)
    yield "instances", _size(each)[0]
    yield "leases", _size(each)[1]
    yield "verdict", found.verdict
    yield "law", laws[0] if laws else None
    yield "laws", list(laws)
    if isinstance(each, TableSearched):
        named = TABLE_DESIGNS.get(each.task.design)
        yield "expected", None if named is None else named.law
    else:
        yield "expected", None if each.task.design == REAL else "L13"
    yield "offences", [f"{offence.law}: {offence.sentence}" for offence in found.offences]
    yield "states", found.states
    yield "transitions", found.transitions
    yield "depth", found.depth
    yield "seconds", round(found.seconds, 3)
    if isinstance(each, TableSearched):
        steps = told(each.found.trace)
        yield "trace", [{"tick": step.tick, "what": step.words} for step in steps]
    else:
        yield "trace", [{"what": words} for words in each.found.way]
        yield "again", list(each.found.round)
