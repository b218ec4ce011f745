"""A campaign's report in the forms that CI reads: JUnit XML, and what GitHub Actions shows."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from unswept.adapters.cli import github as githubs
from unswept.adapters.cli import junit as junits
from unswept.adapters.cli import targets
from unswept.adapters.cli.simulate_report import Report

JUNIT = Annotated[Path | None, typer.Option("--junit", help="Write JUnit XML to this file.")]
GITHUB = Annotated[
    bool,
    typer.Option(
        "--github/--no-github",
        envvar="GITHUB_ACTIONS",
        help="Print annotations for GitHub, and add to the job's summary.",
    ),
]


def check_file(junit: Path | None) -> None:
    """Refuse a file that cannot be written before hours are spent on what it is to say."""
    if junit is not None:
        targets.check_file("--junit", junit)


def publish(report: Report, junit: Path | None, github: bool, to_stderr: bool) -> None:
    """Write what is asked for; GitHub reads annotations from either stream."""
    if junit is not None:
        _write("--junit", junit, junits.document(report), "w")
    if not github:
        return
    for line in githubs.workflow_commands(report):
        print(line, file=sys.stderr if to_stderr else sys.stdout)
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        _write("GITHUB_STEP_SUMMARY", Path(summary), githubs.summary(report), "a")


def _write(name: str, path: Path, text: str, mode: str) -> None:
    try:
        with path.open(mode, encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise targets.unwritable(name, path, error) from None
