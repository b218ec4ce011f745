"""`unswept simulate`: run the real lease rules on a store under faults, and say what held."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from unswept.adapters.cli.ci import GITHUB, JUNIT, check_file, publish
from unswept.adapters.cli.common import processes, progress_bar
from unswept.adapters.cli.keep_record import Keeper
from unswept.adapters.cli.keep_script import FOLDER, keep_script
from unswept.adapters.cli.simulate_json import Part, as_json_object
from unswept.adapters.cli.simulate_options import (
    DEFAULT,
    Campaign,
    checked,
    seconds_named,
    shard_named,
)
from unswept.adapters.cli.simulate_report import Report, print_report
from unswept.adapters.cli.targets import check_folder
from unswept.adapters.cluster import on_cluster
from unswept.adapters.traces import need_traces
from unswept.adapters.urls import TEMPORARY, SimulatedStore, without_password
from unswept.core.errors import MisuseError
from unswept.simulations import headline
from unswept.simulations import workers as crews
from unswept.simulations.campaign import (
    DEFAULT_SEEDS,
    Task,
    Totals,
    broken_designs,
    run_seeds,
    tasks,
)
from unswept.simulations.designs import DESIGNS
from unswept.simulations.faults import FAULTS
from unswept.simulations.headline import Cell
from unswept.simulations.mutants import SEEDS, Verdict, check_canary, try_canary, try_designs
from unswept.simulations.profiles import PROFILES, faults_of
from unswept.simulations.run import Settings
from unswept.simulations.workers import Workers

if TYPE_CHECKING:
    from unswept.adapters.traces.folder import TraceFolder

_PURE = SimulatedStore("memory:")


def simulate(
    store: Annotated[
        str,
        typer.Option(
            help="The store under test, in lockstep with the pure one: sqlite: (a temporary file "
            "per seed), sqlite:PATH, sqlite::memory:, postgresql://... (a schema of its own per "
            "seed), or memory: (the pure store alone)."
        ),
    ] = TEMPORARY,
    seeds: Annotated[int, typer.Option(help="Run seeds 1 to N.")] = DEFAULT_SEEDS,
    seed: Annotated[int | None, typer.Option(help="Run this one seed.")] = None,
    hours: Annotated[float, typer.Option(help="Simulated hours per seed.")] = DEFAULT.hours,
    instances: Annotated[int, typer.Option(help="Gateways at a time.")] = DEFAULT.instances,
    runners: Annotated[
        int, typer.Option(help="Runners at a time, beside the gateways.")
    ] = DEFAULT.runners,
    jobs: Annotated[
        int | None, typer.Option(help="Jobs that the gateways run at a time, on average.")
    ] = None,
    job_minutes: Annotated[
        float | None, typer.Option(help="How long a gateway's job takes, on average.")
    ] = None,
    faults: Annotated[
        str,
        typer.Option(help=f"Of the profiles {', '.join(PROFILES)}, and of: {', '.join(FAULTS)}."),
    ] = "all",
    design: Annotated[
        str, typer.Option(help=f"The design under test: {', '.join(DESIGNS)}.")
    ] = DEFAULT.design,
    workers: Annotated[int | None, typer.Option(help="Processes; by default one per core.")] = None,
    trace: Annotated[
        Path | None,
        typer.Option(help="Write the trace of each seed into this folder, for `unswept query`."),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(help="Run on a Dask cluster instead: its scheduler's address."),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(help="Run part I of N, as I/N; unswept merge puts the parts together."),
    ] = None,
    time_budget: Annotated[
        str | None, typer.Option(help="Begin no more seeds after this time: 90s, 10m, 1.5h.")
    ] = None,
    require_coverage: Annotated[
        bool,
        typer.Option(
            help="Owe what must sometimes happen whatever the number of seeds, and list the empty "
            "cells of transition x fault."
        ),
    ] = False,
    shrink: Annotated[
        bool, typer.Option("--shrink/--no-shrink", help="Cut a violation down to a script.")
    ] = True,
    save: Annotated[Path, typer.Option(help="The folder for the script.")] = FOLDER,
    junit: JUNIT = None,
    github: GITHUB = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run gateways, runners, a store and faults through virtual time; laws judge every step.

    Exit code: 0 held, 1 a law was broken, 2 usage, 3 it could not be found out, 4 something was
    never put to the test, 5 the same seed gave two different runs.
    """
    campaign = checked(
        Campaign(
            Settings(1, hours, instances, faults_of(faults), design, runners, jobs, job_minutes),
            without_password(store),
            seeds,
            seed,
            shard_named(shard),
            require_coverage,
        )
    )
    budget_s = seconds_named(time_budget)
    check_file(junit)
    if shrink and save != FOLDER:
        check_folder("--save", save)
    opener = SimulatedStore(store)
    traces = None if trace is None else _traces(trace, campaign.store)
    hands = _workers(workers, scheduler)
    console = Console(stderr=as_json)
    keeper = Keeper("simulate", campaign.command(), campaign.store.partition(":")[0])
    began = time.monotonic()
    totals = Totals()
    part = Part(campaign)
    ran: list[int] = []
    canary = try_canary()
    with hands as crew, progress_bar(console) as progress:
        todo = _tasks(campaign, opener, traces)
        bar = progress.add_task(f"{design} on {campaign.store}", total=len(todo))
        for outcome in run_seeds(_within(budget_s, todo), crew):
            totals.add(outcome)
            part.keep(outcome)
            ran.append(outcome.outcome.seed)
            progress.advance(bar)
        if not totals.ended:
            check_canary(canary)
        if campaign.tries_broken_designs() and not totals.ended:
            part.designs = _try_broken_designs(campaign, crew, progress)
            if campaign.has_headline() and budget_s is None:
                part.table = _headline(campaign, crew, progress)
    if traces is not None:
        traces.finish(ran)
    report = Report(campaign, totals, tuple(part.designs), tuple(part.table), canary)
    elapsed = time.monotonic() - began
    found = as_json_object(report)
    if campaign.judges_the_design():
        keeper.keep(found, report.stands_for_all, totals.simulated_ms)
    kept = keep_script(report, opener, save, console) if shrink else None
    if as_json:
        script = {} if kept is None else {"script": kept.path and str(kept.path)}
        print(json.dumps({**found, **part.as_json(), **script}, indent=2))
    else:
        print_report(console, report, elapsed)
    if kept is not None:
        console.print(f"\n{kept.sentence}", markup=False, highlight=False, soft_wrap=True)
    publish(report, junit, github, to_stderr=as_json)
    raise typer.Exit(report.code)


def _workers(count: int | None, scheduler: str | None) -> AbstractContextManager[Workers]:
    if scheduler is None:
        return crews.processes(processes(count))
    if count is not None:
        raise MisuseError("--scheduler runs on a cluster's workers, and --workers on this machine")
    return on_cluster(scheduler)


def _tasks(campaign: Campaign, opener: SimulatedStore, traces: TraceFolder | None) -> list[Task]:
    return campaign.part().of(tasks(campaign.settings, campaign.all_seeds(), opener, traces))


def _within(budget_s: float | None, todo: list[Task]) -> Iterable[Task]:
    """What is begun before the time is over, and the first in any case."""
    if budget_s is None:
        return todo
    end = time.monotonic() + budget_s
    return takewhile(lambda task: task is todo[0] or time.monotonic() < end, todo)


def _traces(folder: Path, store: str) -> TraceFolder:
    need_traces()
    from unswept.adapters.traces.folder import TraceFolder

    traces = TraceFolder(folder, store)
    traces.prepare()
    return traces


def _try_broken_designs(campaign: Campaign, crew: Workers, progress: Progress) -> list[Verdict]:
    """Each broken design runs on the pure store until a law catches it, as this harness must."""
    names = campaign.part().of(broken_designs())
    bar = progress.add_task("broken designs", total=len(names))
    verdicts = []
    for verdict in try_designs(campaign.settings, names, SEEDS, crew):
        verdicts.append(verdict)
        progress.advance(bar)
    return verdicts


def _headline(campaign: Campaign, crew: Workers, progress: Progress) -> list[Cell]:
    wanted = campaign.part().of(headline.cells())
    bar = progress.add_task("headline table", total=len(wanted))
    found = []
    for cell in headline.fill(wanted, _PURE, crew):
        found.append(cell)
        progress.advance(bar)
    return found
