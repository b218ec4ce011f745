"""The part of `unswept explore` that searches the table: its tasks, and its verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from attrs import frozen

from unswept.spec.explorer.designs import REAL
from unswept.spec.explorer.table.designs import TABLE_DESIGNS
from unswept.spec.explorer.table.judging import Cell
from unswept.spec.explorer.table.scopes import SCOPES
from unswept.spec.explorer.table.search import Found, Table, search
from unswept.spec.explorer.table.settled import SETTLING_DESIGNS, Settled, settle

_SETTLED_JOBS = 2
"""More jobs of owners that are gone are not searched: the graph is kept whole."""


@frozen
class Bounds:
    """How much is searched."""

    instances: int
    jobs: int | None
    """None: one, and two where that takes no time."""
    depth: int | None
    limit: int


@frozen
class TableTask:
    """One search for a step that breaks a law."""

    design: str
    table: Table
    depth: int | None
    limit: int


@frozen
class SettlingTask:
    """One search for a job of a lost owner that stays as it is for ever."""

    design: str
    instances: int
    jobs: int
    limit: int


@frozen
class TableSearched:
    """A search for a step that has ended."""

    task: TableTask
    found: Found


@frozen
class SettlingSearched:
    """A search for a run that has ended."""

    task: SettlingTask
    found: Settled


AnyTask = TableTask | SettlingTask
AnySearched = TableSearched | SettlingSearched


def is_of_table(design: str) -> bool:
    """Is this a broken design of the table?"""
    return design in TABLE_DESIGNS or design in SETTLING_DESIGNS


def table_tasks(design: str, bounds: Bounds, alone: bool) -> list[AnyTask]:
    """What is searched for this design: the real one in every scope, and with it, unless it is to
    be alone, each broken one; a broken one where it shows."""
    if design != REAL:
        return [_of_broken(design, bounds.limit)]
    real = _of_real(bounds)
    if alone:
        return real
    return real + [_of_broken(name, bounds.limit) for name in (*SETTLING_DESIGNS, *TABLE_DESIGNS)]


def _of_real(bounds: Bounds) -> list[AnyTask]:
    jobs, depth, limit = bounds.jobs, bounds.depth, bounds.limit
    small = 1 if jobs is None else jobs
    tables = [Table(scope, bounds.instances, small) for scope in SCOPES]
    if jobs is None:
        tables += [Table(scope, bounds.instances, 2) for scope in SCOPES if scope.quick]
    tasks: list[AnyTask] = [TableTask(REAL, table, depth, limit) for table in tables]
    if depth is None:
        settled = min(small, _SETTLED_JOBS)
        tasks.insert(0, SettlingTask(REAL, bounds.instances, settled, limit))
    return tasks


def _of_broken(name: str, limit: int) -> AnyTask:
    if name in SETTLING_DESIGNS:
        return SettlingTask(name, 2, SETTLING_DESIGNS[name].jobs, limit)
    design = TABLE_DESIGNS[name]
    (scope,) = (scope for scope in SCOPES if scope.name == design.scope)
    return TableTask(name, Table(scope, 2, design.jobs), None, limit)


def run(task: AnyTask) -> AnySearched:
    """Carry out one search."""
    if isinstance(task, SettlingTask):
        if task.design == REAL:
            return SettlingSearched(task, settle(task.instances, task.jobs, limit=task.limit))
        habits = SETTLING_DESIGNS[task.design].habits
        return SettlingSearched(task, settle(task.instances, task.jobs, habits, task.limit))
    if task.design == REAL:
        return TableSearched(task, search(task.table, task.depth, task.limit))
    with TABLE_DESIGNS[task.design].in_place():
        return TableSearched(task, search(task.table, task.depth, task.limit))


def verdict_of(each: AnySearched) -> str:
    """In one word. A broken design that breaks another law than its own counts as not refuted."""
    if isinstance(each, SettlingSearched) or each.task.design == REAL:
        return each.found.verdict
    broken = {offence.law for offence in each.found.offences}
    missed = broken and TABLE_DESIGNS[each.task.design].law not in broken
    return "exhausted" if missed else each.found.verdict


def laws_of(each: AnySearched) -> tuple[str, ...]:
    """The laws that were seen broken."""
    laws = tuple(offence.law for offence in each.found.offences)
    waits = isinstance(each, SettlingSearched) and each.found.round
    return (*laws, "L13") if waits else laws


def laws_broken(done: Sequence[AnySearched], design: str) -> list[str]:
    """The laws that the chosen design was seen to break."""
    return sorted({law for each in done if each.task.design == design for law in laws_of(each)})


def totals(done: Sequence[AnySearched]) -> tuple[Counter[str], set[Cell]]:
    """How often each law judged a step of the real design, and the cells that it exercised. A run
    that lasts for ever is judged in each state."""
    judged: Counter[str] = Counter()
    cells: set[Cell] = set()
    for each in done:
        if each.task.design == REAL:
            judged.update(each.found.judged)
            cells.update(each.found.cells)
            if isinstance(each, SettlingSearched):
                judged["L13"] += each.found.states
    return judged, cells
