"""`unswept fleet`: real runners share a queue while they are killed, and what held."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from attrs import asdict
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from unswept.adapters.chaos.fleet.load import POLICY
from unswept.adapters.chaos.fleet.run import Report, Settings, run
from unswept.adapters.chaos.fleet.verdict import CHECKS
from unswept.adapters.chaos.processes import RunFailedError
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.promises import print_counts, print_promises


def fleet(
    store: Annotated[
        str,
        typer.Option(
            help="sqlite: (a temporary file), sqlite:PATH, or postgresql://USER@HOST/DATABASE; a "
            "password is best left to PGPASSWORD or a password file.",
            envvar="UNSWEPT_STORE",
            show_envvar=True,
        ),
    ] = "sqlite:",
    runners: Annotated[int, typer.Option(help="Runner processes at a time, at least 2.")] = 4,
    jobs: Annotated[int, typer.Option(help="Jobs in all, at least 100.")] = 2_000,
    seed: Annotated[int, typer.Option(help="What the jobs do, and what befalls whom.")] = 1,
    schema: Annotated[
        str | None,
        typer.Option(help="On Postgres: a schema that is not there yet; by default a new name."),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Do not drop that schema.")] = False,
    evidence: Annotated[
        Path | None, typer.Option(help="An empty folder for the files of evidence, which stay.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run runner processes on one queue while they are killed, stopped and drained.

    What each runner was granted and did, and what the producer was told, is written to files of
    their own, and compared with the store's rows and events at the end.

    Exit code: 0 held, 1 a promise was broken, 2 usage, 3 the run itself failed, 4 something was
    never put to the test.
    """
    settings = Settings(store, runners, jobs, seed, schema, keep, evidence)
    console = Console(stderr=as_json)
    try:
        report = _with_bar(settings, console)
    except RunFailedError as error:
        Console(stderr=True).print(f"unswept: {error}", markup=False, soft_wrap=True)
        raise typer.Exit(ExitCode.UNDETERMINED) from None
    except KeyboardInterrupt:  # typer's own exit code for this would say that a promise was broken
        Console(stderr=True).print("unswept: the run was ended before its verdict")
        raise typer.Exit(ExitCode.UNDETERMINED) from None
    code = _exit_code(report)
    if as_json:
        print(json.dumps(_as_json(settings, report, code), indent=2))
    else:
        _print(console, settings, report, code)
    raise typer.Exit(code)


def _with_bar(settings: Settings, console: Console) -> Report:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=1.0)

        def show(doing: str, part: float) -> None:
            # Only once all jobs are in the queue it is known how much is over.
            total = 1.0 if doing == "faults" else None
            progress.update(task, description=doing, completed=part, total=total)

        return run(settings, show)


def _exit_code(report: Report) -> ExitCode:
    if report.violations:
        return ExitCode.REFUTED
    return ExitCode.COVERAGE_SHORT if report.missing else ExitCode.HELD


_VERDICTS = {
    ExitCode.HELD: "Every promise held.",
    ExitCode.REFUTED: "A promise was broken.",
    ExitCode.COVERAGE_SHORT: "Nothing was broken, but not everything was put to the test.",
}


def _print(console: Console, settings: Settings, report: Report, code: ExitCode) -> None:
    counts = [(count, name) for name, count in sorted(report.counts.items())]
    print_counts(console, "What there was", counts)
    print_promises(console, CHECKS, report.violations, report.missing)
    console.print(
        f"{settings.runners} runners at a time and {settings.jobs} jobs on {report.place}, seed"
        f" {settings.seed}, in {report.working_s:.0f} s, judged in"
        f" {report.seconds - report.working_s:.0f} s",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    console.print(f"[bold]{_VERDICTS[code]}[/bold]")


def _as_json(settings: Settings, report: Report, code: ExitCode) -> dict[str, Any]:
    return {
        "verdict": code.name.lower(),
        "exit_code": int(code),
        "store": report.place,
        "runners": settings.runners,
        "jobs": settings.jobs,
        "seed": settings.seed,
        "policy": asdict(POLICY),
        "promises": {
            name: [v.offence for v in report.violations if v.check == name] for name in CHECKS
        },
        "never": list(report.missing),
        "counts": dict(sorted(report.counts.items())),
        "working_seconds": round(report.working_s, 1),
        "seconds": round(report.seconds, 1),
    }
