"""`unswept mutants`: run each broken design until a law catches it; say which, and how soon."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer
from attrs import asdict
from rich.console import Console

from unswept.adapters.cli.common import processes, progress_bar
from unswept.adapters.cli.designs_table import add_verdict, designs_table
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.keep_record import Keeper
from unswept.core.checks import check_whole
from unswept.core.errors import MisuseError
from unswept.simulations import workers as crews
from unswept.simulations.campaign import broken_designs
from unswept.simulations.mutants import SEEDS, Verdict, try_designs
from unswept.simulations.run import Found, Settings

_SHOWN: Final = 6
"""Events before a violation that are printed."""


def mutants(
    names: Annotated[
        list[str] | None, typer.Argument(help="Designs to try; by default every broken one.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Give each design seeds 1 to N.")] = SEEDS,
    workers: Annotated[int | None, typer.Option(help="Processes; by default one per core.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run each broken design on the pure store, under all faults, until a law catches it.

    Exit code: 0 all were caught, 2 usage, 4 one survived, or an unexpected law caught it.
    """
    wanted = _names(names)
    check_whole("--seeds", seeds, 1, 1_000_000)
    count = processes(workers)
    console = Console(stderr=as_json)
    keeper = Keeper("mutants", f"unswept mutants --seeds {seeds}")
    verdicts = []
    with crews.processes(count) as crew, progress_bar(console) as progress:
        task = progress.add_task("broken designs", total=len(wanted))
        for verdict in try_designs(Settings(seed=1), wanted, seeds, crew):
            verdicts.append(verdict)
            progress.advance(task)
    code = ExitCode.HELD if all(verdict.caught for verdict in verdicts) else ExitCode.COVERAGE_SHORT
    result = _as_json(verdicts, seeds, code)
    keeper.keep(result, whole=not names, weight=seeds)
    if as_json:
        print(json.dumps(result, indent=2))
    else:
        _print(console, verdicts, seeds)
    raise typer.Exit(code)


def _names(names: Sequence[str] | None) -> list[str]:
    broken = broken_designs()
    for name in names or ():
        if name not in broken:
            raise MisuseError(f"NAME must be one of {', '.join(broken)}, got {name}")
    return list(dict.fromkeys(names)) if names else broken


def _print(console: Console, verdicts: list[Verdict], seeds: int) -> None:
    for verdict in verdicts:
        _print_verdict(console, verdict, seeds)
    table = designs_table()
    for verdict in verdicts:
        add_verdict(table, verdict)
    console.print(table)
    survivors = [verdict.design for verdict in verdicts if not verdict.caught]
    if survivors:
        console.print(f"[bold red]Not caught as they must be: {', '.join(survivors)}.[/bold red]")
    else:
        console.print(f"[bold]All {len(verdicts)} broken designs were caught.[/bold]")


def _print_verdict(console: Console, verdict: Verdict, seeds: int) -> None:
    """One design's section: the law, the seeds that were needed, the offence, the last events."""
    console.print(f"[bold]{verdict.design}[/bold]: {verdict.sentence}", highlight=False)
    if verdict.found is None:
        console.print(f"  [red]No law caught it in {seeds} seeds.[/red]\n", highlight=False)
        return
    console.print(f"  {verdict.law}, in seed {verdict.seed}: {verdict.offence}", highlight=False)
    for line in _trace(verdict.found):
        console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)
    console.print()


def _trace(found: Found) -> tuple[str, ...]:
    """What led to a violation, as lines: the last events before it; the last line is itself."""
    return found.last_lines[-_SHOWN - 1 : -1]


def _as_json(verdicts: list[Verdict], seeds: int, code: ExitCode) -> dict[str, Any]:
    return {
        "verdict": code.name.lower(),
        "exit_code": int(code),
        "seeds": seeds,
        "survivors": [verdict.design for verdict in verdicts if not verdict.caught],
        "designs": [asdict(verdict) for verdict in verdicts],
    }
