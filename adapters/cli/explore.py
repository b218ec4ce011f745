"""`unswept explore`: search every schedule of a few instances and jobs for a broken law."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import Annotated, Any

import typer
from attrs import frozen
from rich.console import Console
from rich.table import Table

from unswept.adapters.cli.common import processes
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.explore_table import (
    AnySearched,
    AnyTask,
    Bounds,
    is_of_table,
    laws_broken,
    run,
    table_tasks,
    totals,
    verdict_of,
)
from unswept.adapters.cli.explore_table_report import as_json as as_json_of_table
from unswept.adapters.cli.explore_table_report import print_table
from unswept.adapters.cli.explore_windows import compare_windows
from unswept.adapters.cli.keep_record import Keep, Keeper
from unswept.adapters.cli.searching import COLOURS, in_processes, without_collector
from unswept.core.checks import check_whole
from unswept.core.errors import MisuseError
from unswept.spec.explorer.designs import DESIGNS, REAL, Design, Mix
from unswept.spec.explorer.neglect import model_of
from unswept.spec.explorer.scope import NOT_SEARCHED, SEARCHED
from unswept.spec.explorer.search import Search, search
from unswept.spec.explorer.story import legend, sentences, timeline
from unswept.spec.explorer.table.designs import TABLE_DESIGNS
from unswept.spec.explorer.table.settled import SETTLING_DESIGNS
from unswept.spec.laws import LAWS

_LIMIT = 1_000_000
_NAMES = (*DESIGNS, *SETTLING_DESIGNS, *TABLE_DESIGNS)


@frozen
class Task:
    """One search: a design under one mix of faults, up to so many states."""

    design: Design
    mix: Mix
    limit: int


@frozen
class Explored:
    """A search that has ended."""

    task: Task
    found: Search


def explore(
    design: Annotated[
        str, typer.Option(help=f"The design that is searched: {', '.join(_NAMES)}.")
    ] = REAL,
    workers: Annotated[int | None, typer.Option(help="Processes; by default one per core.")] = None,
    limit: Annotated[
        int, typer.Option(help="States after which a search is given up; that is no pass.")
    ] = _LIMIT,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    instances: Annotated[
        int | None, typer.Option(help="Search the table only, with so many instances.")
    ] = None,
    leases: Annotated[
        int | None, typer.Option(help="Search the table only, with so many jobs.")
    ] = None,
    depth: Annotated[
        int | None, typer.Option(help="Search the table only, so many steps deep; else to its end.")
    ] = None,
    alone: Annotated[
        bool, typer.Option("--alone", help="Search the real design without the broken ones.")
    ] = False,
    windows: Annotated[
        bool,
        typer.Option(
            "--windows",
            help="Instead: search for the least window that survives a clock step and some flaps, "
            "and compare it with the formula; takes minutes.",
        ),
    ] = False,
) -> None:
    """Search every schedule of a few instances and jobs for a broken law, breadth-first.

    Three parts: hearts under every mix of faults, in exact time; the table under every command that
    could be on its way; and instances that must finally settle what a lost owner held. The real
    design is searched to the end, and each broken design until it breaks its law, as the search
    must notice.

    Exit code: 0 no law can be broken, 1 one can, 2 usage, 3 a search was given up, 4 a broken
    design was not refuted. With --windows: 0 the formula is exact to one tick, 1 it is not.
    """
    check_whole("--limit", limit, 1, 1_000_000_000)
    count = processes(workers)
    console = Console(stderr=as_json)
    if windows:
        keeper = Keeper("windows", f"unswept explore --windows --limit {limit}")
        keep: Keep = partial(keeper.keep, whole=limit >= _LIMIT)
        raise typer.Exit(compare_windows(design, count, limit, console, as_json, keep))
    if design not in _NAMES:
        raise MisuseError(f"--design must be one of {', '.join(_NAMES)}, got {design}")
    bounds = _bounds(instances, leases, depth, limit)
    bounded = (instances, leases, depth) != (None, None, None)
    of_hearts = design in DESIGNS and design != REAL
    if bounded and of_hearts:
        raise MisuseError(f"--instances, --leases, --depth are of the table, and {design} is not")
    only_table = bounded or is_of_table(design)
    hearts = [] if only_table else _tasks(design, limit, alone)
    table = [] if of_hearts else table_tasks(design, bounds, alone)
    keep = _keep(design, bounds, only_table, alone)
    raise typer.Exit(_explore(design, hearts, table, bounds, count, console, as_json, keep))


def _keep(design: str, bounds: Bounds, only_table: bool, alone: bool) -> Keep:
    """What becomes of the result: a broken design is to be refuted, which is no evidence."""
    sizes = f" --instances {bounds.instances}" if only_table else ""
    sizes += "" if bounds.jobs is None else f" --leases {bounds.jobs}"
    sizes += "" if bounds.depth is None else f" --depth {bounds.depth}"
    part = sizes + " --alone" * alone
    if design != REAL:
        return lambda _: None
    keeper = Keeper("explore", f"unswept explore --limit {bounds.limit}{part}", part)
    return partial(keeper.keep, whole=bounds.depth is None and bounds.limit >= _LIMIT)


def _bounds(instances: int | None, leases: int | None, depth: int | None, limit: int) -> Bounds:
    for name, value in (("--instances", instances), ("--leases", leases)):
        if value is not None:
            check_whole(name, value, 1, 6)
    if depth is not None:
        check_whole("--depth", depth, 1, 1_000)
    return Bounds(instances or 2, leases, depth, limit)


def _explore(
    design: str,
    hearts: list[Task],
    table: list[AnyTask],
    bounds: Bounds,
    workers: int,
    console: Console,
    as_json: bool,
    keep: Keep,
) -> ExitCode:
    began = time.monotonic()
    every: list[Task | AnyTask] = [*hearts, *table]
    ended = in_processes(_searched, every, workers, console, "searches")
    done = [each for each in ended if isinstance(each, Explored)]
    of_table = [each for each in ended if not isinstance(each, Explored)]
    code = _exit_code(done, of_table, design)
    result = _as_json(done, of_table, bounds, design, code)
    keep(result)
    if as_json:
        print(json.dumps(result, indent=2))
    else:
        _print(console, done, of_table, design, code, time.monotonic() - began)
    return code


def _tasks(name: str, limit: int, alone: bool) -> list[Task]:
    chosen = DESIGNS[name]
    designs = DESIGNS.values() if chosen.sound and not alone else (chosen,)
    return [Task(design, mix, limit) for design in designs for mix in design.mixes]


def _searched(task: Task | AnyTask) -> Explored | AnySearched:
    with without_collector():
        if not isinstance(task, Task):
            return run(task)
        return Explored(task, search(model_of(task.design, task.mix), task.limit))


def _exit_code(done: list[Explored], of_table: list[AnySearched], design: str) -> ExitCode:
    """The chosen design decides; the broken ones beside the real one must all be refuted."""
    verdicts = [(each.task.design.name, each.found.verdict) for each in done]
    verdicts += [(each.task.design, verdict_of(each)) for each in of_table]
    own = [verdict for name, verdict in verdicts if name == design]
    others = [verdict for name, verdict in verdicts if name != design]
    if "refuted" in own:
        return ExitCode.REFUTED
    if "undetermined" in own + others:
        return ExitCode.UNDETERMINED
    return ExitCode.COVERAGE_SHORT if "exhausted" in others else ExitCode.HELD


def _print(
    console: Console,
    done: list[Explored],
    of_table: list[AnySearched],
    design: str,
    code: ExitCode,
    elapsed: float,
) -> None:
    if done:
        console.print(_table(done), highlight=False)
    refuted = next(
        (each for each in done if each.found.refuted and each.task.design.name == design), None
    )
    if refuted is not None:
        _print_counterexample(console, refuted)
    if of_table:
        print_table(console, of_table, design)
    for heading, sayings in (("Searched", SEARCHED), ("Not searched", NOT_SEARCHED)):
        console.print(f"\n[bold]{heading}[/bold]")
        for saying in sayings:
            console.print(f"- {saying}", highlight=False, markup=False)
    every: list[Explored | AnySearched] = [*done, *of_table]
    states = sum(each.found.states for each in every)
    transitions = sum(each.found.transitions for each in every)
    console.print(
        f"\n{states} states, {transitions} transitions, {states / max(elapsed, 0.001):.0f} "
        f"states/s, in {elapsed:.1f} s",
        highlight=False,
    )
    console.print(f"[bold]{_SAID[code]}[/bold]")


_SAID = {
    ExitCode.HELD: "No schedule breaks a law; every broken design was refuted.",
    ExitCode.REFUTED: "A schedule breaks a law.",
    ExitCode.UNDETERMINED: "A search was given up before it had seen every state; that is no pass.",
    ExitCode.COVERAGE_SHORT: "A design that is broken was not refuted: this search is blind to it.",
}


def _table(done: list[Explored]) -> Table:
    table = Table(title="Searches", title_justify="left", box=None)
    table.add_column("design", no_wrap=True)
    table.add_column("what may go wrong")
    table.add_column("verdict", no_wrap=True)
    for heading in ("states", "transitions", "depth", "s"):
        table.add_column(heading, justify="right")
    for each in done:
        found = each.found
        table.add_row(
            each.task.design.name,
            str(each.task.mix),
            f"[{COLOURS[each.found.verdict]}]{each.found.verdict}[/]",
            str(found.states),
            str(found.transitions),
            str(found.depth),
            f"{found.seconds:.1f}",
        )
    return table


def _print_counterexample(console: Console, refuted: Explored) -> None:
    task, trace = refuted.task, refuted.found.trace
    paragraphs = (
        (f"\n{task.design.name}: {task.design.sentence}", ()),
        (f"The shortest way to a broken law ({task.mix}):", (*sentences(trace), _broken(refuted))),
        ("\nThe same by ticks, each a quarter of a heartbeat:", timeline(trace)),
        ("", legend(trace)),
    )
    for heading, lines in paragraphs:
        console.print(heading, highlight=False, markup=False, soft_wrap=True)
        for line in lines:
            console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)


def _broken(refuted: Explored) -> str:
    offence = refuted.found.offence
    return "" if offence is None else f"{offence.law}: {offence.sentence}"


def _as_json(
    done: list[Explored],
    of_table: list[AnySearched],
    bounds: Bounds,
    design: str,
    code: ExitCode,
) -> dict[str, Any]:
    return {
        **code.verdict,
        "design": design,
        "searches": [
            {
                "design": each.task.design.name,
                "mix": str(each.task.mix),
                "verdict": each.found.verdict,
                "law": None if each.found.offence is None else each.found.offence.law,
                "states": each.found.states,
                "transitions": each.found.transitions,
                "depth": each.found.depth,
                "seconds": round(each.found.seconds, 3),
                "trace": [
                    {"tick": event.tick, "lane": event.what.lane, "what": event.what.words}
                    for event in each.found.trace
                ],
            }
            for each in done
        ],
        "laws_broken": _laws_broken(done, of_table, design),
        "judged": _judged(done, of_table),
        "table": as_json_of_table(of_table, bounds),
        "searched": SEARCHED,
        "not_searched": NOT_SEARCHED,
    }


def _laws_broken(done: list[Explored], of_table: list[AnySearched], design: str) -> list[str]:
    own = (each.found.offence for each in done if each.task.design.name == design)
    return sorted({offence.law for offence in own if offence} | {*laws_broken(of_table, design)})


def _judged(done: list[Explored], of_table: list[AnySearched]) -> dict[str, int]:
    """How often each law was asked about the real design: about a step of the table, or a state of
    the hearts."""
    judged, _ = totals(of_table)
    for each in done:
        if each.task.design.sound:
            judged["L12"] += each.found.states
            judged["L13"] += each.found.states if each.task.mix.faults.deaths else 0
    return {law.id: judged[law.id] for law in LAWS if judged[law.id]}
