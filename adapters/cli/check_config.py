"""`unswept check-config`: what a gateway's configuration comes to, before a gateway runs on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.gateway.config import describe, effective, load
from unswept.adapters.gateway.errors import ConfigError
from unswept.adapters.gateway.settings import Settings

File = Annotated[
    Path | None,
    typer.Argument(
        help="unswept.toml, pyproject.toml, or the config.toml of llm-cli-gateway; by default what"
        " a gateway that starts in this folder would read.",
        show_default=False,
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Where the policy stands: unswept.toml, pyproject.toml, or the config.toml of"
        " llm-cli-gateway; by default what a gateway that starts in this folder would read.",
    ),
]
"""The policy of whoever looks at a store or sweeps it."""
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def check_config(file: File = None, as_json: AsJson = False) -> None:
    """Print the effective settings, where each came from, and what they mean.

    Variables of the environment count, as they would for a gateway. No store is opened.

    Exit code: 0 a gateway would run on it, 2 usage: it would refuse it.
    """
    try:
        settings = load(file)
    except ConfigError as error:
        if not as_json:
            raise
        _print_json(ExitCode.USAGE, {"why": str(error)})
        raise typer.Exit(ExitCode.USAGE) from None
    if as_json:
        _print_json(ExitCode.HELD, _as_json(settings))
    else:
        Console().print(describe(settings), markup=False, highlight=False, soft_wrap=True)


def _as_json(settings: Settings) -> dict[str, Any]:
    policy = settings.policy
    return {
        "settings": {
            name: {"value": row.value, "source": row.source}
            for name, row in effective(settings).items()
        },
        "missed_beats": policy.missed_beats(),
        "flaps_survived": policy.flaps_survived(),
        "detection_ms": {
            "process": policy.detection_ms(),
            "http": policy.detection_ms(policy.http_grace_ms),
        },
        "warnings": list(settings.warnings),
    }


def _print_json(code: ExitCode, found: dict[str, Any]) -> None:
    print(json.dumps({**code.verdict, **found}, indent=2))
