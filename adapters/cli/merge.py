"""`unswept merge`: the shards of a campaign, put together to what one run would have said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from unswept.adapters.cli.ci import GITHUB, JUNIT, check_file, publish
from unswept.adapters.cli.simulate_json import as_json_object, put_together, read_part
from unswept.adapters.cli.simulate_report import print_report


def merge(
    files: Annotated[
        list[Path],
        typer.Argument(help="What unswept simulate --shard I/N --json printed, for each I."),
    ],
    junit: JUNIT = None,
    github: GITHUB = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Put the shards of a campaign together: report and exit code are those of one whole run."""
    check_file(junit)
    report = put_together([read_part(path) for path in files])
    if as_json:
        print(json.dumps(as_json_object(report), indent=2))
    else:
        print_report(Console(), report)
    publish(report, junit, github, to_stderr=as_json)
    raise typer.Exit(report.code)
