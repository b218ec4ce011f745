"""`unswept chaos`: real gateways on a real store under real faults, and what held."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from attrs import asdict
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from unswept.adapters.chaos.places import restart_by
from unswept.adapters.chaos.plan import POLICY, Fault
from unswept.adapters.chaos.processes import RunFailedError
from unswept.adapters.chaos.run import Report, Settings, run
from unswept.adapters.chaos.verdict import CHECKS
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.promises import print_counts, print_promises

_STORIES = {
    Fault.KILL: "gateways were killed (SIGKILL)",
    Fault.STOP: "were stopped for longer than their leases (SIGSTOP, SIGCONT)",
    Fault.PAUSE: "were stopped within their leases",
    Fault.TERM: "were drained under load (SIGTERM)",
    Fault.BLOCK: "had their event loop blocked past the stall limit",
    Fault.CUT: "times a gateway's connections were killed",
    Fault.LOCK: "times nobody could renew: the lease table, or the file, was locked",
    Fault.RESTART: "times the server was restarted",
}


def chaos(
    store: Annotated[
        str,
        typer.Option(
            help="sqlite: (a temporary file), sqlite:PATH, or postgresql://USER@HOST/DATABASE; a "
            "password is best left to PGPASSWORD or a password file.",
            envvar="UNSWEPT_STORE",
            show_envvar=True,
        ),
    ] = "sqlite:",
    minutes: Annotated[
        float, typer.Option(help="How long faults go on; the whole takes half a minute more.")
    ] = 2.0,
    instances: Annotated[int, typer.Option(help="Gateways at a time, at least 2.")] = 4,
    seed: Annotated[int, typer.Option(help="Which faults befall whom, and when.")] = 1,
    schema: Annotated[
        str | None,
        typer.Option(help="On Postgres: a schema that is not there yet; by default a new name."),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Do not drop that schema.")] = False,
    restart_command: Annotated[
        str | None,
        typer.Option(
            help="Restarts the Postgres server, and returns when that is done. It must be yours."
        ),
    ] = None,
    evidence: Annotated[
        Path | None, typer.Option(help="An empty folder for the files of evidence, which stay.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run gateways with many jobs while they are killed, stopped, drained, blocked and cut off.

    What each gateway was told, and what was done to it, is written to files of their own, and
    compared with the store's rows and events at the end.

    Exit code: 0 held, 1 a promise was broken, 2 usage, 3 the run itself failed, 4 something was
    never put to the test.
    """
    settings = Settings(
        store,
        minutes,
        instances,
        seed,
        schema,
        keep,
        None if restart_command is None else restart_by(restart_command),
        evidence,
    )
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
            # Only the faults know how much of them is over.
            total = 1.0 if doing == "faults" else None
            progress.update(task, description=doing, completed=part, total=total)

        return run(settings, show)


def _exit_code(report: Report) -> ExitCode:
    if report.violations:
        return ExitCode.REFUTED
    return ExitCode.COVERAGE_SHORT if report.missing else ExitCode.HELD


# What is printed --------------------------------------------------------------------------------


def _print(console: Console, settings: Settings, report: Report, code: ExitCode) -> None:
    faults = [(report.faults[fault], story) for fault, story in _STORIES.items()]
    print_counts(console, "Faults", faults)
    counts = [(count, name) for name, count in sorted(report.counts.items())]
    print_counts(console, "What there was", counts)
    print_promises(console, CHECKS, report.violations, report.missing)
    console.print(
        f"{settings.instances} gateways at a time on {report.place}, seed {settings.seed}, in"
        f" {report.seconds:.0f} s",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    console.print(f"[bold]{_VERDICTS[code]}[/bold]")


_VERDICTS = {
    ExitCode.HELD: "Every promise held: no heartbeated job was swept.",
    ExitCode.REFUTED: "A promise was broken.",
    ExitCode.COVERAGE_SHORT: "Nothing was broken, but not everything was put to the test.",
}


def _as_json(settings: Settings, report: Report, code: ExitCode) -> dict[str, Any]:
    return {
        "verdict": code.name.lower(),
        "exit_code": int(code),
        "store": report.place,
        "minutes": settings.minutes,
        "instances": settings.instances,
        "seed": settings.seed,
        "policy": asdict(POLICY),
        "promises": {
            name: [v.offence for v in report.violations if v.check == name] for name in CHECKS
        },
        "never": list(report.missing),
        "faults": {fault: report.faults[fault] for fault in Fault},
        "counts": dict(sorted(report.counts.items())),
        "seconds": round(report.seconds, 1),
    }
