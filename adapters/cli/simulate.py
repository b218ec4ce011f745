"""`unswept simulate`: run the real lease rules on a store under faults, and say what held."""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from attrs import asdict, define, evolve
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from unswept.adapters.cli.common import processes, progress_bar
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.traces import need_traces
from unswept.adapters.urls import TEMPORARY, SimulatedStore, without_password
from unswept.core.checks import check_whole
from unswept.core.errors import MisuseError
from unswept.simulations.campaign import DEFAULT_SEEDS, Totals, broken_designs, run_seeds
from unswept.simulations.designs import DESIGNS
from unswept.simulations.faults import FAULTS
from unswept.simulations.run import Settings
from unswept.spec.laws import LAWS, Judges

if TYPE_CHECKING:
    from unswept.adapters.traces.folder import TraceFolder

_DEFAULT = Settings(seed=1)
_DESIGN_SEEDS = 60
"""How many seeds a broken design gets to show that it is broken."""


@define
class DesignVerdict:
    """What became of a broken design."""

    design: str
    sentence: str
    law: str | None
    seed: int | None
    offence: str | None


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
    hours: Annotated[float, typer.Option(help="Simulated hours per seed.")] = _DEFAULT.hours,
    instances: Annotated[int, typer.Option(help="Gateways at a time.")] = _DEFAULT.instances,
    runners: Annotated[
        int, typer.Option(help="Runners at a time, beside the gateways.")
    ] = _DEFAULT.runners,
    faults: Annotated[
        str, typer.Option(help=f"all, none, or a list of: {', '.join(FAULTS)}.")
    ] = "all",
    design: Annotated[
        str, typer.Option(help=f"The design under test: {', '.join(DESIGNS)}.")
    ] = _DEFAULT.design,
    workers: Annotated[int | None, typer.Option(help="Processes; by default one per core.")] = None,
    trace: Annotated[
        Path | None,
        typer.Option(help="Write the trace of each seed into this folder, for `unswept query`."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run gateways, runners, a store and faults through virtual time; laws judge every step.

    Exit code: 0 held, 1 a law was broken, 2 usage, 4 something was never put to the test, 5 the
    same seed gave two different runs.
    """
    settings = _settings(hours, instances, runners, faults, design)
    wanted = _seeds(seeds, seed)
    count = processes(workers)
    opener = SimulatedStore(store)
    store = without_password(store)
    traces = None if trace is None else _traces(trace, store)
    console = Console(stderr=as_json)
    began = time.monotonic()
    totals = Totals()
    verdicts: list[DesignVerdict] = []
    with progress_bar(console) as progress:
        task = progress.add_task(f"{design} on {store}", total=len(wanted))
        for checked in run_seeds(settings, wanted, opener, count, traces):
            totals.add(checked)
            progress.advance(task)
            if totals.violation is not None or totals.unequal_seed is not None:
                break
        if DESIGNS[design].sound and seed is None and totals.violation is None:
            verdicts = _try_broken_designs(settings, count, progress)
    if traces is not None:
        traces.finish(wanted[: totals.seeds])
    elapsed = time.monotonic() - began
    code = _exit_code(settings, totals, verdicts, seed)
    if as_json:
        print(json.dumps(_as_json(settings, store, totals, verdicts, code), indent=2))
    else:
        _print(console, settings, store, totals, verdicts, code, elapsed)
    raise typer.Exit(code)


def _settings(hours: float, instances: int, runners: int, faults: str, design: str) -> Settings:
    if not 0 < hours <= 100_000:
        raise MisuseError(f"--hours must be above 0 and at most 100000, got {hours}")
    check_whole("--instances", instances, 1, 100)
    check_whole("--runners", runners, 0, 100)
    if design not in DESIGNS:
        raise MisuseError(f"--design must be one of {', '.join(DESIGNS)}, got {design}")
    names = {"all": tuple(FAULTS), "none": ()}.get(faults)
    if names is None:
        names = tuple(name.strip() for name in faults.split(","))
    for name in names:
        if name not in FAULTS:
            raise MisuseError(f"--faults must be all, none or of {', '.join(FAULTS)}, got {name}")
    chosen = tuple(f for f in FAULTS if f in names)
    return Settings(1, hours, instances, chosen, design, runners)


def _traces(folder: Path, store: str) -> TraceFolder:
    need_traces()
    from unswept.adapters.traces.folder import TraceFolder

    traces = TraceFolder(folder, store)
    traces.prepare()
    return traces


def _seeds(seeds: int, seed: int | None) -> list[int]:
    check_whole("--seeds", seeds, 1, 1_000_000)
    if seed is None:
        return list(range(1, seeds + 1))
    check_whole("--seed", seed, 0, 2**63 - 1)
    return [seed]


def _try_broken_designs(
    settings: Settings, workers: int, progress: Progress
) -> list[DesignVerdict]:
    """Each broken design runs on the pure store until a law catches it, as this harness must."""
    verdicts = []
    names = broken_designs()
    task = progress.add_task("broken designs", total=len(names))
    for name in names:
        verdict = DesignVerdict(name, DESIGNS[name].sentence, None, None, None)
        candidates = range(1, _DESIGN_SEEDS + 1)
        tried = evolve(settings, design=name, faults=tuple(FAULTS))
        for checked in run_seeds(tried, candidates, SimulatedStore("memory:"), workers):
            found = checked.outcome.violation
            if found is not None:
                seed = checked.outcome.seed
                verdict = evolve(verdict, law=found.law, seed=seed, offence=found.offence)
                break
        verdicts.append(verdict)
        progress.advance(task)
    return verdicts


def _exit_code(
    settings: Settings, totals: Totals, verdicts: list[DesignVerdict], seed: int | None
) -> ExitCode:
    if totals.violation is not None:
        return ExitCode.REFUTED
    if totals.unequal_seed is not None:
        return ExitCode.NOT_DETERMINISTIC
    if any(verdict.law is None for verdict in verdicts):
        return ExitCode.COVERAGE_SHORT
    if _quotas_bind(settings, totals, seed) and totals.missing():
        return ExitCode.COVERAGE_SHORT
    return ExitCode.HELD


def _quotas_bind(settings: Settings, totals: Totals, seed: int | None) -> bool:
    """Rare events are owed by a whole campaign, not by a few seeds or a few faults."""
    whole = settings.faults == tuple(FAULTS) and settings.hours >= _DEFAULT.hours
    enough = totals.seeds >= DEFAULT_SEEDS and settings.instances >= _DEFAULT.instances
    fleet = settings.runners >= _DEFAULT.runners
    return whole and enough and fleet and seed is None


def replay_command(settings: Settings, store: str, seed: int) -> str:
    """The command that runs one seed again."""
    faults = "all" if settings.faults == tuple(FAULTS) else ",".join(settings.faults) or "none"
    return (
        f"unswept simulate --store {shlex.quote(store)} --seed {seed} --hours {settings.hours:g} "
        f"--instances {settings.instances} --runners {settings.runners} --faults {faults} "
        f"--design {settings.design}"
    )


# What is printed --------------------------------------------------------------------------------


def _print(
    console: Console,
    settings: Settings,
    store: str,
    totals: Totals,
    verdicts: list[DesignVerdict],
    code: ExitCode,
    elapsed: float,
) -> None:
    if totals.violation is not None and totals.violated_seed is not None:
        _print_violation(console, settings, store, totals, totals.violated_seed)
    _print_counts(console, "Faults injected", totals.faults)
    _print_counts(console, "What must sometimes happen", totals.sometimes, totals.missing())
    _print_laws(console, totals)
    if verdicts:
        _print_designs(console, settings, totals, verdicts)
    hours = totals.simulated_ms / 3_600_000
    console.print(
        f"{totals.seeds} seeds, {hours:.1f} simulated hours, {totals.commands} commands, "
        f"{totals.checked['LOCKSTEP']} replies compared with {store}, in {elapsed:.1f} s"
    )
    console.print(f"[bold]{_verdict(code, totals)}[/bold]")


def _verdict(code: ExitCode, totals: Totals) -> str:
    return {
        ExitCode.HELD: "Every law held: no heartbeated job was swept.",
        ExitCode.REFUTED: "A law was broken.",
        ExitCode.COVERAGE_SHORT: "Nothing was broken, but not everything was put to the test.",
        ExitCode.NOT_DETERMINISTIC: f"Seed {totals.unequal_seed} gave two different runs.",
    }[code]


def _print_violation(
    console: Console, settings: Settings, store: str, totals: Totals, seed: int
) -> None:
    found = totals.violation
    assert found is not None
    sentence = next((law.sentence for law in LAWS if law.id == found.law), "")
    console.print(f"[bold red]{found.law} was broken[/bold red] by seed {seed}:", highlight=False)
    console.print(f"  {found.offence}", highlight=False, soft_wrap=True)
    if sentence:
        console.print(f"  The law: {sentence}", highlight=False, soft_wrap=True)
    console.print("\nThe last events before it, in simulated seconds:", highlight=False)
    for line in found.last_lines:
        console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)
    command = replay_command(settings, store, seed)
    console.print(f"\nReplay it:\n  {command}\n", highlight=False, soft_wrap=True)


def _print_counts(
    console: Console, title: str, counts: dict[str, int], missing: list[str] | None = None
) -> None:
    table = Table(title=title, title_justify="left", box=None, show_header=False)
    table.add_column(justify="right")
    table.add_column()
    for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        story = FAULTS[name].story if name in FAULTS else name
        if count:
            table.add_row(str(count), story)
    for name in missing or ():
        table.add_row("[yellow]never[/yellow]", name)
    console.print(table)


def _print_laws(console: Console, totals: Totals) -> None:
    table = Table(title="Laws checked", title_justify="left", box=None)
    table.add_column("law")
    table.add_column("times", justify="right")
    table.add_column("what it says")
    for law in LAWS:
        if law.judges is not Judges.CODE:
            table.add_row(law.id, str(totals.checked[law.id]), law.sentence)
    console.print(table)


def _print_designs(
    console: Console, settings: Settings, totals: Totals, verdicts: list[DesignVerdict]
) -> None:
    table = Table(title="Designs under test", title_justify="left", box=None)
    for heading in ("design", "caught by", "seed", "what it does, and how it fails"):
        table.add_column(heading)
    table.add_row(settings.design, "held", f"1-{totals.seeds}", DESIGNS[settings.design].sentence)
    for verdict in verdicts:
        if verdict.law is None:
            table.add_row(verdict.design, "[red]nothing[/red]", "", verdict.sentence)
        else:
            said = f"{verdict.sentence} {verdict.offence}."
            table.add_row(verdict.design, verdict.law, str(verdict.seed), said)
    console.print(table)


def _as_json(
    settings: Settings,
    store: str,
    totals: Totals,
    verdicts: list[DesignVerdict],
    code: ExitCode,
) -> dict[str, Any]:
    found = asdict(totals)
    if totals.violated_seed is not None:
        found["replay"] = replay_command(settings, store, totals.violated_seed)
    return {
        "verdict": code.name.lower(),
        "exit_code": int(code),
        "store": store,
        "settings": {**asdict(settings), "seed": None},
        **found,
        "never": totals.missing(),
        "designs": [asdict(verdict) for verdict in verdicts],
    }
