"""`unswept audit`: judge a real database, or its exported events, by the laws."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer
from attrs import asdict
from rich.console import Console
from rich.table import Table

from unswept.adapters.cli.db import AsJson, Schema
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.keep_record import Keeper
from unswept.adapters.extras import need
from unswept.core.checks import check_whole

if TYPE_CHECKING:
    from unswept.adapters.audit.judge import Offence, Verdict
    from unswept.adapters.audit.place import Audit


def audit(
    place: Annotated[
        str,
        typer.Argument(
            metavar="URL|FILE",
            help="sqlite:PATH, a path, postgresql://USER@HOST/DATABASE, or a file of exported"
            " events: .parquet, .csv or .jsonl.",
            envvar="UNSWEPT_STORE",
            show_envvar=True,
        ),
    ],
    schema: Schema = None,
    export: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write the events there too: .parquet, .csv or .jsonl, a file that is not there.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(help="How many offences of each law are shown.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Judge a database by every law that its history can show; nothing in it is changed.

    Exit code: 0 no offence, 1 offences, 2 usage, 3 it could not be read.
    """
    check_whole("--limit", limit, 0, 1_000_000)
    keeper = Keeper("audit", f"unswept audit {shlex.quote(place)}", place)
    found = _judged(place, schema, limit, export)
    broken = any(verdict.count for verdict in found.verdicts)
    code = ExitCode.REFUTED if broken else ExitCode.HELD
    result = {**code.verdict, **asdict(found)}
    keeper.keep(result)
    if as_json:
        print(json.dumps(result, indent=2))
    else:
        _print(found)
    raise typer.Exit(code)


def _judged(place: str, schema: str | None, limit: int, export: str | None) -> Audit:
    need("an audit needs DuckDB", "simulate", "duckdb")
    from unswept.adapters.audit.place import audit as judged

    return judged(place, schema, limit, export)


def _print(found: Audit) -> None:
    console = Console()
    plain: dict[str, Any] = {"highlight": False, "soft_wrap": True, "markup": False}
    table = Table("law", "offences", "looked at", "history does not show")
    for verdict in found.verdicts:
        offences = str(verdict.count) if verdict.looked_at else "not judged"
        table.add_row(verdict.law, offences, "; ".join(verdict.looked_at), verdict.unseen)
    console.print(table)
    broken = [verdict for verdict in found.verdicts if verdict.count]
    for verdict in broken:
        console.print(f"{verdict.law}: {verdict.sentence}", **plain)
        for offence in verdict.offences:
            _print_offence(console, offence, plain)
        _print_rest(console, verdict, plain)
    judged = sum(bool(verdict.looked_at) for verdict in found.verdicts)
    said = f"{found.place}: {found.events} events, {judged} of {len(found.verdicts)} laws judged: "
    laws = ", ".join(verdict.law for verdict in broken)
    console.print(f"{said}{f'offences against {laws}' if broken else 'no offence'}.", **plain)


def _print_offence(console: Console, offence: Offence, plain: dict[str, Any]) -> None:
    subject = "" if offence.job is None else f"{offence.job} "
    console.print(f"  {subject}{offence.said}", **plain)
    for event in offence.events:
        console.print(f"    event {_facts(event)}", **plain)
    if offence.row is not None:
        console.print(f"    row {_facts(offence.row)}", **plain)


def _print_rest(console: Console, verdict: Verdict, plain: dict[str, Any]) -> None:
    rest = verdict.count - len(verdict.offences)
    if rest:
        console.print(f"  and {rest} more (--limit)", **plain)


def _facts(row: Mapping[str, Any]) -> str:
    """What is set in a row; the names of what is not would only be in the way."""
    return " ".join(f"{name}={value}" for name, value in row.items() if value is not None)
