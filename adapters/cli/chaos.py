"""`unswept chaos`: real gateways on a real store under real faults, and what held."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import typer
from attrs import asdict
from rich.console import Console

from unswept.adapters.chaos.places import restart_by
from unswept.adapters.chaos.plan import POLICY, Fault
from unswept.adapters.chaos.run import Report, Settings, run
from unswept.adapters.chaos.verdict import CHECKS
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.keep_record import Keeper
from unswept.adapters.cli.real_runs import (
    EvidenceOption,
    JsonOption,
    KeepOption,
    SchemaOption,
    StoreOption,
    carry_out,
    print_counts,
    print_promises,
    print_verdict,
)

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
    store: StoreOption = "sqlite:",
    minutes: Annotated[
        float, typer.Option(help="How long faults go on; the whole takes half a minute more.")
    ] = 2.0,
    instances: Annotated[int, typer.Option(help="Gateways at a time, at least 2.")] = 4,
    seed: Annotated[int, typer.Option(help="Which faults befall whom, and when.")] = 1,
    schema: SchemaOption = None,
    keep: KeepOption = False,
    restart_command: Annotated[
        str | None,
        typer.Option(
            help="Restarts the Postgres server, and returns when that is done. It must be yours."
        ),
    ] = None,
    evidence: EvidenceOption = None,
    as_json: JsonOption = False,
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
    keeper = Keeper(
        "chaos",
        f"unswept chaos --store {shlex.quote(store)} --minutes {minutes:g} --instances {instances}"
        f" --seed {seed}",
        store.partition(":")[0],
    )
    carry_out(
        lambda show: run(settings, show),
        as_json,
        lambda console, report, code: _print(console, settings, report, code),
        lambda report, code: _as_json(settings, report, code),
        lambda result: keeper.keep(result, weight=minutes),
    )


def _print(console: Console, settings: Settings, report: Report, code: ExitCode) -> None:
    faults = [(report.faults[fault], story) for fault, story in _STORIES.items()]
    print_counts(console, "Faults", faults)
    counts = [(count, name) for name, count in sorted(report.counts.items())]
    print_counts(console, "What there was", counts)
    print_promises(console, CHECKS, report.violations, report.missing)
    print_verdict(
        console,
        f"{settings.instances} gateways at a time on {report.place}, seed {settings.seed}, in"
        f" {report.seconds:.0f} s",
        code,
        "Every promise held: no heartbeated job was swept.",
    )


def _as_json(settings: Settings, report: Report, code: ExitCode) -> dict[str, Any]:
    return {
        **code.verdict,
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
