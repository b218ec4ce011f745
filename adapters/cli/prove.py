"""`unswept prove`: prove the rules for every input, and that the SQL is the rules."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Any

import typer
from attrs import asdict
from rich.console import Console
from rich.table import Table

from unswept.adapters.cli.common import processes, progress_bar
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.keep_record import Keeper
from unswept.adapters.proofs.catalogue import theorems
from unswept.adapters.proofs.prover import Finding, Shown, Verdict
from unswept.adapters.proofs.runs import missing, prove_all, show_all
from unswept.core.errors import MisuseError
from unswept.spec.theorems.scope import ASSUMED, NOT_COVERED
from unswept.spec.theorems.theorem import Theorem

_COLOURS = {Verdict.PROVED: "green", Verdict.REFUTED: "red", Verdict.UNDETERMINED: "yellow"}


def prove(
    only: Annotated[
        str | None,
        typer.Option(help="A theorem's name, a law's id, or a pattern: renew_*, L3, sql_*."),
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; by default one per core.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    twins: Annotated[
        bool,
        typer.Option(
            "--twins",
            help="Instead: show for each theorem a case that it speaks of, and a case that a "
            "broken twin of the code gets wrong.",
        ),
    ] = False,
) -> None:
    """Prove the laws over every input, with CrossHair; only "confirmed over all paths" is a proof.

    Exit code: 0 everything was proved, 1 a theorem was refuted, 2 usage, 3 a theorem was neither.
    With --twins: 0 every witness and every twin was refuted, as it must be.
    """
    _refuse_without_tools(as_json)
    chosen = _chosen(only)
    count = processes(workers)
    console = Console(stderr=as_json)
    words = "unswept prove" + " --twins" * twins
    words += "" if only is None else f" --only {shlex.quote(only)}"
    keeper = Keeper("twins" if twins else "prove", words)
    run = _show_twins if twins else _prove
    code, result = run(chosen, count, console, as_json)
    keeper.keep(result, whole=only is None)
    raise typer.Exit(code)


def _refuse_without_tools(as_json: bool) -> None:
    lacking = missing()
    if not lacking:
        return
    said = f"nothing was proved: {' and '.join(lacking)} not installed; the extra `prove` has both"
    if as_json:
        code = ExitCode.UNDETERMINED
        print(json.dumps({**code.verdict, "why": said}))
    else:
        Console(stderr=True).print(f"unswept: {said}", markup=False, soft_wrap=True)
    raise typer.Exit(ExitCode.UNDETERMINED)


def _chosen(only: str | None) -> dict[str, Theorem]:
    known = {each.name: each for each in theorems()}
    if only is None:
        return known
    chosen = {
        name: each
        for name, each in known.items()
        if fnmatchcase(name, only) or only.lower() in re.split(r"\W+", each.law.lower())
    }
    if not chosen:
        laws = dict.fromkeys(law for each in known.values() for law in re.split(r"\W+", each.law))
        raise MisuseError(f"--only must name a theorem, or one of {', '.join(laws)}, got {only}")
    return chosen


# Proving ----------------------------------------------------------------------------------------


def _prove(
    chosen: dict[str, Theorem], workers: int, console: Console, as_json: bool
) -> tuple[ExitCode, dict[str, Any]]:
    began = time.monotonic()
    found: dict[str, Finding] = {}
    with progress_bar(console) as progress:
        task = progress.add_task("theorems", total=len(chosen))
        for name, finding in prove_all(chosen, workers):
            found[name] = finding
            progress.advance(task)
    code = _verdict(chosen, found)
    result = _as_json(chosen, found, code)
    if as_json:
        print(json.dumps(result, indent=2))
    else:
        _print(console, chosen, found, code, time.monotonic() - began)
    return code, result


def _verdict(chosen: Mapping[str, Theorem], found: Mapping[str, Finding]) -> ExitCode:
    """Held only if there is a proof for each theorem that was asked for, by its name."""
    if any(finding.verdict is Verdict.REFUTED for finding in found.values()):
        return ExitCode.REFUTED
    proved = {name for name, finding in found.items() if finding.verdict is Verdict.PROVED}
    return ExitCode.HELD if proved == set(chosen) else ExitCode.UNDETERMINED


def _print(
    console: Console,
    chosen: dict[str, Theorem],
    found: dict[str, Finding],
    code: ExitCode,
    elapsed: float,
) -> None:
    table = Table(title="Theorems", title_justify="left", box=None)
    table.add_column("law")
    table.add_column("theorem", overflow="fold")
    table.add_column("claim")
    table.add_column("verdict")
    table.add_column("s", justify="right")
    for name, each in chosen.items():
        finding = found[name]
        verdict = f"[{_COLOURS[finding.verdict]}]{finding.verdict}[/]"
        table.add_row(each.law, name, each.says, verdict, f"{finding.seconds:.1f}")
    console.print(table, highlight=False)
    for name, each in chosen.items():
        _print_failure(console, each, found[name])
    _print_scope(console)
    proved = sum(finding.verdict is Verdict.PROVED for finding in found.values())
    console.print(f"\n{proved} of {len(chosen)} theorems proved, in {elapsed:.1f} s")
    console.print(f"[bold]{_SAID[code]}[/bold]")


_SAID = {
    ExitCode.HELD: "Every theorem is proved, for every input.",
    ExitCode.REFUTED: "A theorem was refuted.",
    ExitCode.UNDETERMINED: "Not every theorem could be proved; that is no pass.",
}


def _print_failure(console: Console, theorem: Theorem, finding: Finding) -> None:
    if finding.verdict is Verdict.PROVED:
        return
    colour = _COLOURS[finding.verdict]
    console.print(
        f"\n[bold {colour}]{theorem.law}: {theorem.name} is {finding.verdict}[/]", highlight=False
    )
    console.print(f"  {theorem.says}", highlight=False, markup=False, soft_wrap=True)
    lead = "But not for" if finding.verdict is Verdict.REFUTED else "Because:"
    console.print(f"  {lead} {finding.why}", highlight=False, markup=False, soft_wrap=True)


def _print_scope(console: Console) -> None:
    for heading, sentences in (("Assumed", ASSUMED), ("Not covered", NOT_COVERED)):
        console.print(f"\n[bold]{heading}[/bold]")
        for sentence in sentences:
            console.print(f"- {sentence}", highlight=False, markup=False)


def _as_json(
    chosen: dict[str, Theorem], found: dict[str, Finding], code: ExitCode
) -> dict[str, Any]:
    return {
        **code.verdict,
        "proved": sum(finding.verdict is Verdict.PROVED for finding in found.values()),
        "theorems": [
            {"name": name, "law": each.law, "claim": each.says, **asdict(found[name])}
            for name, each in chosen.items()
        ],
        "assumed": ASSUMED,
        "not_covered": NOT_COVERED,
    }


# Witnesses and twins ----------------------------------------------------------------------------


def _show_twins(
    chosen: dict[str, Theorem], workers: int, console: Console, as_json: bool
) -> tuple[ExitCode, dict[str, Any]]:
    began = time.monotonic()
    found: dict[str, Shown] = {}
    with progress_bar(console) as progress:
        task = progress.add_task("witnesses and twins", total=len(chosen))
        for name, shown in show_all(chosen, workers):
            found[name] = shown
            progress.advance(task)
    code = _twins_verdict(chosen, found)
    result = _twins_as_json(chosen, found, code)
    if as_json:
        print(json.dumps(result, indent=2))
    else:
        _print_twins(console, chosen, found, code, time.monotonic() - began)
    return code, result


def _twins_verdict(chosen: Mapping[str, Theorem], found: Mapping[str, Shown]) -> ExitCode:
    """Held only if all were refuted; a twin that is proved shows a theorem that proves nothing."""
    verdicts = [
        finding.verdict for shown in found.values() for finding in (shown.witness, shown.twin)
    ]
    if Verdict.PROVED in verdicts:
        return ExitCode.REFUTED
    whole = set(found) == set(chosen) and set(verdicts) == {Verdict.REFUTED}
    return ExitCode.HELD if whole else ExitCode.UNDETERMINED


def _print_twins(
    console: Console,
    chosen: dict[str, Theorem],
    found: dict[str, Shown],
    code: ExitCode,
    elapsed: float,
) -> None:
    for name, each in chosen.items():
        shown = found[name]
        console.print(f"[bold]{each.law}: {name}[/bold]", highlight=False)
        for line in (
            each.says,
            f"speaks of: {_said(shown.witness)}",
            f"twin: {each.twin}",
            f"refuted by: {_said(shown.twin)}",
        ):
            console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)
    refuted = sum(shown.twin.verdict is Verdict.REFUTED for shown in found.values())
    console.print(f"\n{refuted} of {len(chosen)} twins refuted, in {elapsed:.1f} s")
    console.print(f"[bold]{_TWINS_SAID[code]}[/bold]")


_TWINS_SAID = {
    ExitCode.HELD: "Every theorem speaks of something, and notices when the code is broken.",
    ExitCode.REFUTED: "A theorem speaks of nothing, or does not notice that the code is broken.",
    ExitCode.UNDETERMINED: "Not every witness or twin could be refuted.",
}


def _said(finding: Finding) -> str:
    if finding.verdict is Verdict.REFUTED:
        return finding.why
    if finding.verdict is Verdict.PROVED:
        return "nothing, which it should have been"
    return f"unknown: {finding.why}"


def _twins_as_json(
    chosen: dict[str, Theorem], found: dict[str, Shown], code: ExitCode
) -> dict[str, Any]:
    return {
        **code.verdict,
        "theorems": [
            {"name": name, "law": each.law, "twin": str(each.twin), **_shown_as_json(found[name])}
            for name, each in chosen.items()
        ],
    }


def _shown_as_json(shown: Shown) -> dict[str, Any]:
    return {"witness": asdict(shown.witness), "broken": asdict(shown.twin)}
