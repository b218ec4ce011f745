"""What the commands that run real processes share: options, a bar, the tables, the exit code."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from unswept.adapters.chaos.processes import RunFailedError
from unswept.adapters.chaos.verdict import Violation
from unswept.adapters.cli.exit_codes import ExitCode

StoreOption = Annotated[
    str,
    typer.Option(
        help="sqlite: (a temporary file), sqlite:PATH, or postgresql://USER@HOST/DATABASE; a "
        "password is best left to PGPASSWORD or a password file.",
        envvar="UNSWEPT_STORE",
        show_envvar=True,
    ),
]
SchemaOption = Annotated[
    str | None,
    typer.Option(help="On Postgres: a schema that is not there yet; by default a new name."),
]
KeepOption = Annotated[bool, typer.Option("--keep", help="Do not drop that schema.")]
EvidenceOption = Annotated[
    Path | None, typer.Option(help="An empty folder for the files of evidence, which stay.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


class Report(Protocol):
    """What any run has found."""

    @property
    def violations(self) -> tuple[Violation, ...]:
        """Promises that were broken."""
        ...

    @property
    def missing(self) -> tuple[str, ...]:
        """What there was none of."""
        ...


R = TypeVar("R", bound=Report)


def carry_out(
    run: Callable[[Callable[[str, float], None]], R],
    as_json: bool,
    tell: Callable[[Console, R, ExitCode], None],
    told: Callable[[R, ExitCode], dict[str, Any]],
    keep: Callable[[dict[str, Any]], None],
) -> None:
    """Run with a bar, keep what `told` says of the report, print it as JSON, or by `tell`, and exit
    with its code; a run that failed, or was ended, has no verdict."""
    console = Console(stderr=as_json)
    try:
        report = _with_bar(run, console)
    except RunFailedError as error:
        Console(stderr=True).print(f"unswept: {error}", markup=False, soft_wrap=True)
        raise typer.Exit(ExitCode.UNDETERMINED) from None
    except KeyboardInterrupt:  # typer's own exit code for this would say that a promise was broken
        Console(stderr=True).print("unswept: the run was ended before its verdict")
        raise typer.Exit(ExitCode.UNDETERMINED) from None
    code = _exit_code(report)
    result = told(report, code)
    keep(result)
    if as_json:
        print(json.dumps(result, indent=2))
    else:
        tell(console, report, code)
    raise typer.Exit(code)


def _with_bar(run: Callable[[Callable[[str, float], None]], R], console: Console) -> R:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=1.0)

        def show(doing: str, part: float) -> None:
            # Only in that phase is it known how much is over.
            total = 1.0 if doing == "faults" else None
            progress.update(task, description=doing, completed=part, total=total)

        return run(show)


def _exit_code(report: Report) -> ExitCode:
    if report.violations:
        return ExitCode.REFUTED
    return ExitCode.COVERAGE_SHORT if report.missing else ExitCode.HELD


# What is printed ----------------------------------------------------------------------------------


def print_counts(console: Console, title: str, counts: Iterable[tuple[int, str]]) -> None:
    """How much there was of everything that there was some of."""
    table = Table(title=title, title_justify="left", box=None, show_header=False)
    table.add_column(justify="right")
    table.add_column()
    for count, name in counts:
        if count:
            table.add_row(str(count), name)
    console.print(table)


def print_promises(
    console: Console,
    names: Iterable[str],
    violations: Sequence[Violation],
    missing: Iterable[str],
) -> None:
    """Each promise, then each offence, then what there was none of."""
    table = Table(title="Promises", title_justify="left", box=None, show_header=False)
    for name in names:
        broken = sum(violation.check == name for violation in violations)
        table.add_row(f"[red]broken {broken} times[/red]" if broken else "held", name)
    console.print(table)
    for violation in violations:
        console.print(f"[bold red]{violation.check}[/bold red]:", highlight=False)
        console.print(f"  {violation.offence}", highlight=False, markup=False, soft_wrap=True)
    for name in missing:
        console.print(f"[yellow]never[/yellow] {name}", highlight=False)


def print_verdict(console: Console, run: str, code: ExitCode, held: str) -> None:
    """What was run, and what came of it; `held` says what a good run shows."""
    console.print(run, highlight=False, markup=False, soft_wrap=True)
    verdicts = {
        ExitCode.HELD: held,
        ExitCode.REFUTED: "A promise was broken.",
        ExitCode.COVERAGE_SHORT: "Nothing was broken, but not everything was put to the test.",
    }
    console.print(f"[bold]{verdicts[code]}[/bold]")
