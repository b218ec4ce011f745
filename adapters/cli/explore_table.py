"""The part of `unswept explore` that searches the table: its tasks, its verdict, its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from attrs import frozen
from rich.console import Console
from rich.table import Table as Grid

from unswept.adapters.cli.exit_codes import ExitCode
from unswept.spec.explorer.table.designs import TABLE_DESIGNS
from unswept.spec.explorer.table.judging import Cell, every_cell
from unswept.spec.explorer.table.scopes import SCOPES
from unswept.spec.explorer.table.search import Found, Table, search
from unswept.spec.explorer.table.story import sentences, told
from unswept.spec.laws import LAWS

REAL = "unswept"


@frozen
class Bounds:
    """How much is searched."""

    instances: int
    jobs: int
    depth: int | None
    limit: int


@frozen
class TableTask:
    """One search of the table: a design's name, what is searched, and how far."""

    design: str
    table: Table
    depth: int | None
    limit: int


@frozen
class TableSearched:
    """A search of the table that has ended."""

    task: TableTask
    found: Found


def table_tasks(design: str, bounds: Bounds, alone: bool) -> list[TableTask]:
    """What is searched for this design: the real one in every scope, and with it, unless it is to
    be alone, each broken one; a broken one where it shows."""
    if design in TABLE_DESIGNS:
        return [_of_broken(design, bounds.limit)]
    real = [
        TableTask(REAL, Table(scope, bounds.instances, bounds.jobs), bounds.depth, bounds.limit)
        for scope in SCOPES
    ]
    return real if alone else real + [_of_broken(name, bounds.limit) for name in TABLE_DESIGNS]


def _of_broken(name: str, limit: int) -> TableTask:
    design = TABLE_DESIGNS[name]
    (scope,) = (scope for scope in SCOPES if scope.name == design.scope)
    return TableTask(name, Table(scope, 2, design.jobs), None, limit)


def run(task: TableTask) -> TableSearched:
    """Carry out one search."""
    if task.design == REAL:
        return TableSearched(task, search(task.table, task.depth, task.limit))
    with TABLE_DESIGNS[task.design].in_place():
        return TableSearched(task, search(task.table, task.depth, task.limit))


def verdicts(done: Sequence[TableSearched], design: str) -> tuple[list[str], list[str]]:
    """Those of the chosen design, and those of the broken ones beside it. A broken one that breaks
    another law than its own counts as not refuted."""
    own = [each.found.verdict for each in done if each.task.design == design]
    others = [_as_named(each) for each in done if each.task.design != design]
    return own, others


def _as_named(each: TableSearched) -> str:
    law = TABLE_DESIGNS[each.task.design].law
    broken = {offence.law for offence in each.found.offences}
    return "exhausted" if broken and law not in broken else each.found.verdict


def _totals(done: Sequence[TableSearched]) -> tuple[Counter[str], set[Cell]]:
    judged: Counter[str] = Counter()
    cells: set[Cell] = set()
    for each in done:
        if each.task.design == REAL:
            judged.update(each.found.judged)
            cells.update(each.found.cells)
    return judged, cells


def _named(cell: Cell) -> str:
    kind, was, now = cell
    return f"{kind}: {was} to {now or 'gone'}"


# What is printed --------------------------------------------------------------------------------

_COLOURS = {"exhausted": "green", "refuted": "red", "undetermined": "yellow"}


def print_table(console: Console, done: Sequence[TableSearched], design: str) -> None:
    """Each search, what was exercised, and the first counterexample of the chosen design."""
    grid = Grid(title="\nSearches of the table", title_justify="left", box=None)
    for heading in ("design", "scope", "jobs", "verdict"):
        grid.add_column(heading)
    for heading in ("states", "transitions", "depth", "s"):
        grid.add_column(heading, justify="right", no_wrap=True)
    for each in done:
        found, task = each.found, each.task
        laws = " ".join(offence.law for offence in found.offences)
        grid.add_row(
            task.design,
            task.table.scope.name,
            f"{task.table.instances} x {len(task.table.job_ids)}",
            f"[{_COLOURS[found.verdict]}]{found.verdict}[/] {laws}",
            str(found.states),
            str(found.transitions),
            str(found.depth),
            f"{found.seconds:.1f}",
        )
    console.print(grid, highlight=False)
    _print_exercised(console, done)
    for each in done:
        if each.found.offences and each.task.design == design:
            console.print(
                f"\nThe shortest way of {design} to a broken law, in the scope of "
                f"{each.task.table.scope.name}:",
                highlight=False,
            )
            for line in sentences(each.found):
                console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)
            return


def _print_exercised(console: Console, done: Sequence[TableSearched]) -> None:
    judged, cells = _totals(done)
    if not judged:
        return
    counts = ", ".join(f"{law.id} {judged[law.id]}" for law in LAWS if judged[law.id])
    console.print(f"\nSteps judged, by law: {counts}", highlight=False)
    every = every_cell()
    missed = sorted(map(_named, every - cells))
    console.print(
        f"Cells of the status table exercised: {len(cells & every)} of {len(every)}"
        + (f"; not exercised: {'; '.join(missed)}" if missed else ""),
        highlight=False,
    )


def as_json(done: Sequence[TableSearched], bounds: Bounds) -> dict[str, Any]:
    """The same for machines."""
    judged, cells = _totals(done)
    every = every_cell()
    real = [each.found for each in done if each.task.design == REAL]
    return {
        "instances": bounds.instances,
        "leases": bounds.jobs,
        "depth": bounds.depth,
        "states": sum(found.states for found in real),
        "transitions": sum(found.transitions for found in real),
        "judged": {law.id: judged[law.id] for law in LAWS if judged[law.id]},
        "cells": {
            "exercised": sorted(map(_named, cells & every)),
            "not_exercised": sorted(map(_named, every - cells)),
        },
        "searches": [_search_as_json(each) for each in done],
    }


def _search_as_json(each: TableSearched) -> dict[str, Any]:
    task, found = each.task, each.found
    expected = TABLE_DESIGNS[task.design].law if task.design != REAL else None
    return {
        "design": task.design,
        "scope": task.table.scope.name,
        "instances": task.table.instances,
        "leases": len(task.table.job_ids),
        "verdict": found.verdict,
        "law": found.offences[0].law if found.offences else None,
        "laws": [offence.law for offence in found.offences],
        "expected": expected,
        "offences": [f"{offence.law}: {offence.sentence}" for offence in found.offences],
        "states": found.states,
        "transitions": found.transitions,
        "depth": found.depth,
        "seconds": round(found.seconds, 3),
        "trace": [{"tick": step.tick, "what": step.words} for step in told(found.trace)],
    }


def laws_broken(done: Sequence[TableSearched], design: str) -> list[str]:
    """The laws that the chosen design was seen to break."""
    return sorted(
        {o.law for each in done if each.task.design == design for o in each.found.offences}
    )


def exit_code(own: list[str], others: list[str]) -> ExitCode:
    """The chosen design decides; the broken ones beside the real one must all be refuted."""
    if "refuted" in own:
        return ExitCode.REFUTED
    if "undetermined" in own + others:
        return ExitCode.UNDETERMINED
    return ExitCode.COVERAGE_SHORT if "exhausted" in others else ExitCode.HELD
