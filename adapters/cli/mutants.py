"""`unswept mutants`: run each broken design until a law catches it; say which, how soon, and what
it takes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from attrs import asdict
from rich.console import Console
from rich.text import Text

from unswept.adapters.cli.common import processes, progress_bar
from unswept.adapters.cli.designs_table import add_verdict, designs_table
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.keep_record import Keeper
from unswept.adapters.cli.replay_view import shown_title
from unswept.adapters.cli.simulate_options import Campaign
from unswept.adapters.report.words import counted
from unswept.adapters.version import version
from unswept.core.checks import check_whole
from unswept.core.errors import MisuseError
from unswept.simulations import workers as crews
from unswept.simulations.campaign import broken_designs, pure_alone
from unswept.simulations.mutants import PURE, SEEDS, Exhibit, exhibit_designs
from unswept.simulations.run import Settings
from unswept.simulations.script import Script, Shown, carried_out


def mutants(
    names: Annotated[
        list[str] | None, typer.Argument(help="Designs to try; by default every broken one.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Give each design seeds 1 to N.")] = SEEDS,
    workers: Annotated[int | None, typer.Option(help="Processes; by default one per core.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run each broken design on the pure store, under the faults that bring it out, until a law
    catches it; then cut the run down to the few steps that it takes.

    Exit code: 0 all were caught, 2 usage, 4 one survived, or an unexpected law caught it.
    """
    wanted = _names(names)
    check_whole("--seeds", seeds, 1, 1_000_000)
    count = processes(workers)
    console = Console(stderr=as_json)
    keeper = Keeper("mutants", f"unswept mutants --seeds {seeds}")
    found = []
    with crews.processes(count) as crew, progress_bar(console) as progress:
        task = progress.add_task("broken designs", total=len(wanted))
        for exhibit in exhibit_designs(Settings(seed=1), wanted, seeds, crew, version()):
            found.append(exhibit)
            progress.advance(task)
    all_caught = all(exhibit.verdict.caught for exhibit in found)
    code = ExitCode.HELD if all_caught else ExitCode.COVERAGE_SHORT
    result = _as_json(found, seeds, code)
    keeper.keep(result, whole=not names, weight=seeds)
    if as_json:
        print(json.dumps(result, indent=2))
    else:
        _print(console, found, seeds)
    raise typer.Exit(code)


def _names(names: Sequence[str] | None) -> list[str]:
    broken = broken_designs()
    for name in names or ():
        if name not in broken:
            raise MisuseError(f"NAME must be one of {', '.join(broken)}, got {name}")
    return list(dict.fromkeys(names)) if names else broken


def _print(console: Console, found: list[Exhibit], seeds: int) -> None:
    table = designs_table()
    for exhibit in found:
        _print_exhibit(console, exhibit, seeds)
        add_verdict(table, exhibit.verdict)
    console.print(table)
    if survivors := _survivors(found):
        console.print(f"[bold red]Not caught as they must be: {', '.join(survivors)}.[/bold red]")
    else:
        console.print(f"[bold]All {len(found)} broken designs were caught.[/bold]")


def _survivors(found: list[Exhibit]) -> list[str]:
    return [exhibit.verdict.design for exhibit in found if not exhibit.verdict.caught]


def _print_exhibit(console: Console, exhibit: Exhibit, seeds: int) -> None:
    """One design's section: the law, the seeds that were needed, the offence, the minimal trace."""

    def say(words: str | Text) -> None:
        console.print(words, highlight=False, markup=False, soft_wrap=True)

    verdict = exhibit.verdict
    say(Text.assemble((verdict.design, "bold"), f": {verdict.sentence}"))
    if exhibit.settings is None:
        say(Text(f"  No law caught it in {seeds} seeds.\n", "red"))
        return
    say(f"  {verdict.law}, in seed {verdict.seed}: {verdict.offence}")
    if exhibit.script is None:
        say(f"  It could not be shrunk: {exhibit.why_no_script}")
    else:
        say(f"  Shrunk to {counted(len(exhibit.script.steps), 'step')}:")
        for line in _trace(exhibit.script):
            say(line)
        say(f"  {exhibit.script.law}: {exhibit.script.offence}")
    say(f"  Replay it: {_replay(exhibit.settings)}\n")


def _trace(script: Script) -> list[Text]:
    """What its store is told, and what it answers; where a law judges what no store knows, that
    too."""
    lines: list[Text] = []
    began_at = script.steps[0].store_at

    def show(shown: Shown) -> None:
        lines.append(shown_title(shown, began_at))

    carried_out(script.steps, script.settings.design, pure_alone, watch=show)
    return lines


def _replay(settings: Settings) -> str:
    """The command that runs the seed again, and keeps its script."""
    return Campaign(settings, PURE).replay_command(settings.seed)


def _as_json(found: list[Exhibit], seeds: int, code: ExitCode) -> dict[str, Any]:
    return {
        **code.verdict,
        "seeds": seeds,
        "survivors": _survivors(found),
        "designs": [_exhibit_as_json(exhibit) for exhibit in found],
    }


def _exhibit_as_json(exhibit: Exhibit) -> dict[str, Any]:
    script = exhibit.script
    minimal = script and {
        "steps": len(script.steps),
        "offence": script.offence,
        "trace": [line.plain.strip() for line in _trace(script)],
    }
    return {
        **asdict(exhibit.verdict),
        "minimal": minimal,
        "why_not_minimal": exhibit.why_no_script,
        "replay": exhibit.settings and _replay(exhibit.settings),
    }
