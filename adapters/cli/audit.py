"""`unswept audit`: judge a real database, or its exported events, by the laws."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from attrs import asdict
from rich.console import Console

from unswept.adapters.cli.db import Schema
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.core.checks import check_whole


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
    limit: Annotated[int, typer.Option(help="Offences that are shown of each law.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Judge a database by every law that its history can show; nothing is changed.

    Exit code: 0 no offence, 1 offences, 2 usage, 3 it could not be read.
    """
    check_whole("--limit", limit, 0, 1_000_000)
    # DuckDB is an extra: only who audits needs it.
    from unswept.adapters.audit.place import Audit
    from unswept.adapters.audit.place import audit as judged

    found: Audit = judged(place, schema, limit)
    broken = [verdict for verdict in found.verdicts if verdict.count]
    code = ExitCode.REFUTED if broken else ExitCode.HELD
    if as_json:
        print(json.dumps({"verdict": code.name.lower(), "exit_code": int(code), **asdict(found)}))
    raise typer.Exit(code)
