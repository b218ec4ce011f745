"""`unswept orphans`: the jobs that wait for somebody's decision, and what it needs."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from attrs import asdict
from rich.console import Console

from unswept.adapters.cli.common import rows_console, rows_table
from unswept.adapters.cli.db import AsJson, Schema, StoreUrl
from unswept.adapters.cli.stores import looking
from unswept.adapters.doctor.orphans import Orphan, read_orphans
from unswept.core import commands as c
from unswept.core.checks import check_whole
from unswept.core.lease import RequeueRule
from unswept.core.units import StoreMs

Limit = Annotated[int, typer.Option(help="How many are listed, those that wait longest first.")]


def orphans(
    store: StoreUrl, schema: Schema = None, limit: Limit = 100, as_json: AsJson = False
) -> None:
    """List the orphans: jobs that were swept, and of which somebody decides what becomes.

    Exit code: 0, 2 usage, 3 the store cannot be asked.
    """
    check_whole("--limit", limit, 1, c.MAX_PAGE)
    with looking(store, schema) as look:
        look.version()
        counts = look.execute(c.Count())
        found = read_orphans(look, limit)
    total = counts.total.orphaned
    if as_json:
        rows = [asdict(orphan) for orphan in found]
        print(json.dumps({"at": counts.at, "total": total, "orphans": rows}, indent=2))
        return
    _print(found, total, counts.at)


def _print(found: tuple[Orphan, ...], total: int, now: StoreMs) -> None:
    console = rows_console()
    if not found:
        console.print("No job is orphaned.")
        return
    table = rows_table(
        "job", "owner", "epoch", "orphaned", "last beat", "requeue", "attempts", "cause"
    )
    for each in found:
        table.add_row(
            each.id,
            each.owner,
            str(each.epoch),
            f"{(now - each.orphaned_at) / 1000:.0f} s ago",
            "" if each.beat_at is None else f"{(now - each.beat_at) / 1000:.0f} s ago",
            f"{each.requeue.value}, on orphan: {each.on_orphan.value}",
            str(each.attempts) if each.max_attempts is None else _of(each),
            _cause(each),
        )
    console.print(table)
    if total > len(found):
        console.print(f"{total - len(found)} more (--limit)")
    _print_advice(console, found)


def _of(orphan: Orphan) -> str:
    return f"{orphan.attempts} of {orphan.max_attempts}"


def _cause(orphan: Orphan) -> str:
    words = [] if orphan.cause is None else [orphan.cause.value]
    if orphan.cancel_requested_at is not None:
        words.append("cancel asked")
    return ", ".join(words)


def _print_advice(console: Console, found: tuple[Orphan, ...]) -> None:
    """Each may still heal: an owner that comes back completes it under its epoch."""
    lines = ["An orphan heals if its owner completes it after all. To decide before that:"]
    rules = {each.requeue for each in found}
    if RequeueRule.ALLOWED in rules:
        lines.append("  unswept requeue ID               back into the queue")
    if RequeueRule.NEVER in rules:
        lines.append("  unswept requeue ID --force       also with requeue = never, at your risk")
    lines.append("  unswept settle ID --as failed    over, as failed or as canceled")
    console.print("\n".join(lines), soft_wrap=True)
