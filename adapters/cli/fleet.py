"""`unswept fleet`: real runners share a queue while they are killed, and what held."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import typer
from attrs import asdict
from rich.console import Console

from unswept.adapters.chaos.fleet.load import POLICY
from unswept.adapters.chaos.fleet.run import Report, Settings, run
from unswept.adapters.chaos.fleet.verdict import CHECKS
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


def fleet(
    store: StoreOption = "sqlite:",
    runners: Annotated[int, typer.Option(help="Runner processes at a time, at least 2.")] = 4,
    jobs: Annotated[int, typer.Option(help="Jobs in all, at least 100.")] = 2_000,
    seed: Annotated[int, typer.Option(help="What the jobs do, and what befalls whom.")] = 1,
    schema: SchemaOption = None,
    keep: KeepOption = False,
    evidence: EvidenceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run runner processes on one queue while they are killed, stopped and drained.

    What each runner was granted and did, and what the producer was told, is written to files of
    their own, and compared with the store's rows and events at the end.

    Exit code: 0 held, 1 a promise was broken, 2 usage, 3 the run itself failed, 4 something was
    never put to the test.
    """
    settings = Settings(store, runners, jobs, seed, schema, keep, evidence)
    keeper = Keeper(
        "fleet",
        f"unswept fleet --store {shlex.quote(store)} --runners {runners} --jobs {jobs}"
        f" --seed {seed}",
        store.partition(":")[0],
    )
    carry_out(
        lambda show: run(settings, show),
        as_json,
        lambda console, report, code: _print(console, settings, report, code),
        lambda report, code: _as_json(settings, report, code),
        lambda result: keeper.keep(result, weight=jobs),
    )


def _print(console: Console, settings: Settings, report: Report, code: ExitCode) -> None:
    counts = [(count, name) for name, count in sorted(report.counts.items())]
    print_counts(console, "What there was", counts)
    print_promises(console, CHECKS, report.violations, report.missing)
    print_verdict(
        console,
        f"{settings.runners} runners at a time and {settings.jobs} jobs on {report.place}, seed"
        f" {settings.seed}, in {report.working_s:.0f} s, judged in"
        f" {report.seconds - report.working_s:.0f} s",
        code,
        "Every promise held.",
    )


def _as_json(settings: Settings, report: Report, code: ExitCode) -> dict[str, Any]:
    return {
        **code.verdict,
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
