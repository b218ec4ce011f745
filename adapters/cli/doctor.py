"""`unswept doctor`: judges a real store and its settings, and says what to do next."""

from __future__ import annotations

import json
from collections import Counter
from typing import Final

import typer
from attrs import asdict
from rich.console import Console
from rich.text import Text

from unswept.adapters.cli.check_config import Config
from unswept.adapters.cli.common import rows_table
from unswept.adapters.cli.db import AsJson, Schema, StoreUrl, file_of
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.doctor.check import Finding, Verdict
from unswept.adapters.doctor.examining import examine_file, examine_server
from unswept.adapters.gateway.config import load
from unswept.adapters.urls import is_postgres, need_psycopg
from unswept.core.policy import LeasePolicy

_COLOURS: Final = {Verdict.OK: "green", Verdict.WARN: "yellow", Verdict.BAD: "bold red"}


def doctor(
    store: StoreUrl, schema: Schema = None, config: Config = None, as_json: AsJson = False
) -> None:
    """Judge a store, its server's settings, and how its jobs stand; nothing in it is changed.

    Bounds are those of the policy that an instance which starts in this folder would read.

    Exit code: 0 nothing is bad, 1 something is, 2 usage, 3 the store cannot be asked.
    """
    where, found = _examined(store, schema, load(config).policy)
    bad = any(finding.verdict is Verdict.BAD for finding in found)
    code = ExitCode.REFUTED if bad else ExitCode.HELD
    if as_json:
        verdict = {**code.verdict, "store": where}
        print(json.dumps({**verdict, "findings": [asdict(each) for each in found]}, indent=2))
    else:
        _print(where, found)
    raise typer.Exit(code)


def _examined(
    store: str, schema: str | None, policy: LeasePolicy
) -> tuple[str, tuple[Finding, ...]]:
    if is_postgres(store):
        need_psycopg()
        return examine_server(store, schema, policy)
    path = file_of(store, schema)
    return path, examine_file(path, policy)


def _print(where: str, found: tuple[Finding, ...]) -> None:
    console = Console(markup=False, highlight=False)
    table = rows_table("check", "verdict", "found", "expected", "what to do next")
    for each in found:
        verdict = Text(each.verdict.value, _COLOURS[each.verdict])
        table.add_row(each.check, verdict, *map(Text, (each.found, each.expected, each.advice)))
    console.print(table)
    counts = Counter(each.verdict for each in found)
    said = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict)
    console.print(f"{where}: {said}.", soft_wrap=True)
