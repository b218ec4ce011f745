"""`unswept explore`: search every schedule of a small world for the sweep of a live job."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from typing import Annotated, Any, TypeVar

import typer
from attrs import frozen
from rich.console import Console
from rich.table import Table

from unswept.adapters.cli.common import processes, progress_bar
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
from unswept.adapters.cli.keep_record import Keeper
from unswept.core.checks import check_whole
from unswept.core.errors import MisuseError
from unswept.spec.explorer.designs import DESIGNS, REAL, Design, Mix
from unswept.spec.explorer.neglect import model_of
from unswept.spec.explorer.scope import NOT_SEARCHED, SEARCHED
from unswept.spec.explorer.search import Search, search
from unswept.spec.explorer.story import legend, sentences, timeline
from unswept.spec.explorer.table.designs import TABLE_DESIGNS
from unswept.spec.explorer.table.settled import SETTLING_DESIGNS
from unswept.spec.explorer.windows import CASES, Bracket, Case, bracket
from unswept.spec.laws import LAWS

S = TypeVar("S")
T = TypeVar("T")
Keep = Callable[[dict[str, Any]], None]
"""Keeps what the command came to, for the evidence page."""

_LIMIT = 1_000_000


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
        str, typer.Option(help=f"The design that is searched: {', '.join(DESIGNS)}.")
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
    """Search every schedule of two instances, one job and a few faults, breadth-first.

    The real design is searched under every mix of faults, and each broken design until it sweeps a
    live job, as this search must notice.

    Exit code: 0 no sweep of a live job exists, 1 one was found, 2 usage, 3 a search was given up, 4
    a broken design was not refuted. With --windows: 0 the formula is exact to one tick, 1 it is
    not.
    """
    check_whole("--limit", limit, 1, 1_000_000_000)
    count = processes(workers)
    console = Console(stderr=as_json)
    if windows:
        keeper = Keeper("windows", f"unswept explore --windows --limit {limit}")
        keep: Keep = partial(keeper.keep, whole=limit >= _LIMIT)
        raise typer.Exit(_compare_windows(design, count, limit, console, as_json, keep))
    bounds = _bounds(instances, leases, depth, limit)
    only_table = (instances, leases, depth) != (None, None, None) or is_of_table(design)
    hearts = [] if only_table else _tasks(design, limit, alone)
    table = [] if design in DESIGNS and design != REAL else table_tasks(design, bounds, alone)
    keep = _keep(design, bounds, only_table, alone)
    raise typer.Exit(_explore(design, hearts, table, bounds, count, console, as_json, keep))


def _keep(design: str, bounds: Bounds, only_table: bool, alone: bool) -> Keep:
    """What becomes of the result: a broken design is to be refuted, which is no evidence."""
    sizes = f" --instances {bounds.instances}" if only_table else ""
    sizes += "" if bounds.jobs is None else f" --leases {bounds.jobs}"
    sizes += "" if bounds.depth is None else f" --depth {bounds.depth}"
    part = sizes + " --alone" * alone
    keeper = Keeper("explore", f"unswept explore --limit {bounds.limit}{part}", part)
    if design != REAL:
        return lambda _: None
    return partial(keeper.keep, whole=bounds.depth is None and bounds.limit >= _LIMIT)


def _bounds(instances: int | None, leases: int | None, depth: int | None, limit: int) -> Bounds:
    for name, value in (("--instances", instances), ("--leases", leases)):
        if value is not None:
            check_whole(name, value, 1, 6)
    if depth is not None:
        check_whole("--depth", depth, 1, 1_000)
    return Bounds(instances or 2, leases, depth, limit)


def _in_processes(
    run: Callable[[S], T], tasks: Sequence[S], workers: int, console: Console, what: str
) -> list[T]:
    """What each task came to, in their order, so that no report depends on `workers`."""
    with progress_bar(console) as progress:
        bar = progress.add_task(what, total=len(tasks))
        if workers == 1 or len(tasks) == 1:
            return [run(task) for task in progress.track(tasks, task_id=bar)]
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            try:
                running = [pool.submit(run, task) for task in tasks]
                for _ in as_completed(running):
                    progress.advance(bar)
                return [each.result() for each in running]
            finally:
                pool.shutdown(cancel_futures=True)


@contextmanager
def _without_collector() -> Iterator[None]:
    """A search only grows, and makes no cycles: looking for garbage takes a fifth of its time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


# Designs ----------------------------------------------------------------------------------------


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
    ended = _in_processes(_searched, every, workers, console, "searches")
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
    if name not in DESIGNS:
        known = ", ".join((*DESIGNS, *SETTLING_DESIGNS, *TABLE_DESIGNS))
        raise MisuseError(f"--design must be one of {known}, got {name}")
    chosen = DESIGNS[name]
    designs = DESIGNS.values() if chosen.sound and not alone else (chosen,)
    return [Task(design, mix, limit) for design in designs for mix in design.mixes]


def _searched(task: Task | AnyTask) -> Explored | AnySearched:
    with _without_collector():
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

_COLOURS = {"exhausted": "green", "refuted": "red", "undetermined": "yellow"}


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
            f"[{_COLOURS[each.found.verdict]}]{each.found.verdict}[/]",
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
        "verdict": code.name.lower(),
        "exit_code": int(code),
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


# Windows ----------------------------------------------------------------------------------------


@frozen
class _WindowTask:
    case: Case
    limit: int


def _compare_windows(
    design: str, workers: int, limit: int, console: Console, as_json: bool, keep: Keep
) -> ExitCode:
    if design != REAL:
        raise MisuseError(f"--windows has designs of its own, so --design {design} says nothing")
    # The largest first, so that the processes end together.
    tasks = [_WindowTask(case, limit) for case in reversed(CASES)]
    began = time.monotonic()
    done = _in_processes(_bracketed, tasks, workers, console, "windows")[::-1]
    code = _windows_verdict(done)
    result = _windows_as_json(done, code)
    keep(result)
    if as_json:
        print(json.dumps(result, indent=2))
    else:
        _print_windows(console, done, code, time.monotonic() - began)
    return code


def _bracketed(task: _WindowTask) -> Bracket:
    with _without_collector():
        return bracket(task.case, task.limit)


def _windows_verdict(done: list[Bracket]) -> ExitCode:
    if any(found.complete and not found.agrees for found in done):
        return ExitCode.REFUTED
    return ExitCode.HELD if all(found.agrees for found in done) else ExitCode.UNDETERMINED


_WINDOWS_SAID = {
    ExitCode.HELD: "The formula is exact to one tick.",
    ExitCode.REFUTED: "The formula is wrong.",
    ExitCode.UNDETERMINED: "A search was given up before it had seen every state; that is no pass.",
}


_WINDOW_COLUMNS = ("retry", "pause", "k", "beat", "timeout", "too short", "least", "policy", "s")
_WINDOW_LEGEND = """
retry     of the owner, after a failed beat; pause: of the sweeper, between two beats; in heartbeats
k         flaps that come with the clock step
beat      the heartbeat, and timeout the operation timeout, in ticks
too short the greatest window that must be refuted by the formula, and least the next one, in ticks
policy    the window that a policy takes for too short (LeasePolicy.flaps_survived)"""


def _print_windows(console: Console, done: list[Bracket], code: ExitCode, elapsed: float) -> None:
    table = Table(title="Windows", title_justify="left", box=None)
    for heading in _WINDOW_COLUMNS:
        table.add_column(heading, justify="right")
    for found in done:
        case = found.case
        seconds = found.too_short.seconds + found.least.seconds
        table.add_row(
            case.row.retry,
            case.row.pause,
            str(case.flaps),
            str(case.heartbeat),
            str(case.timeout),
            _window(case.too_short, found.too_short),
            _window(case.too_short + 1, found.least),
            str(case.safe_side),
            f"{seconds:.1f}",
        )
    console.print(table, highlight=False)
    console.print(_WINDOW_LEGEND, highlight=False)
    states = sum(found.too_short.states + found.least.states for found in done)
    console.print(f"\n{states} states, in {elapsed:.1f} s", highlight=False)
    console.print(f"[bold]{_WINDOWS_SAID[code]}[/bold]")


def _window(ticks: int, found: Search) -> str:
    return f"[{_COLOURS[found.verdict]}]{ticks}: {found.verdict}[/]"


def _windows_as_json(done: list[Bracket], code: ExitCode) -> dict[str, Any]:
    return {
        "verdict": code.name.lower(),
        "exit_code": int(code),
        "windows": [
            {
                "owner_retry": found.case.row.retry,
                "sweeper_pause": found.case.row.pause,
                "flaps": found.case.flaps,
                "heartbeat": found.case.heartbeat,
                "timeout": found.case.timeout,
                "too_short": found.case.too_short,
                "too_short_verdict": found.too_short.verdict,
                "least": found.case.too_short + 1,
                "least_verdict": found.least.verdict,
                "policy_bound": found.case.safe_side,
                "agrees": found.agrees,
            }
            for found in done
        ],
    }
