"""`unswept job`, `jobs`, `instances`, `cancel`, `requeue` and `settle`: an operator looks at a
store, and acts on one job of it."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any

import typer
from attrs import asdict
from rich.console import Console

from unswept.adapters.cli.common import rows_console, rows_table
from unswept.adapters.cli.db import AsJson, Schema, StoreUrl
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.job_words import row_words
from unswept.adapters.cli.stores import asked, opened
from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.lease import Status
from unswept.simulations.transcript import said

JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id.", show_default=False)]
ActorName = Annotated[str, typer.Option(help="Who decides it, as the event will say.")]


class Outcome(StrEnum):
    """How an authority may end an orphan."""

    FAILED = Status.FAILED.value
    CANCELED = Status.CANCELED.value


def job(job_id: JobId, store: StoreUrl, schema: Schema = None, as_json: AsJson = False) -> None:
    """Say how one job stands.

    Exit code: 0 it is there, 1 it is not, 2 usage, 3 the store cannot be asked.
    """
    found = asked(store, schema, c.Find(job_id))
    _tell(job_id, found, found, as_json)


def jobs(store: StoreUrl, schema: Schema = None, as_json: AsJson = False) -> None:
    """Count the jobs that are not over, by partition and by where they stand.

    Exit code: 0, 2 usage, 3 the store cannot be asked.
    """
    found = asked(store, schema, c.Count())
    if as_json:
        print(json.dumps(asdict(found), indent=2))
        return
    table = rows_table("partition", "waiting", "the oldest for", "queued", "running", "orphaned")
    for row in found.partitions:
        oldest = "" if row.oldest_at is None else f"{(found.at - row.oldest_at) / 1000:.0f} s"
        counts = (row.waiting, oldest, row.queued, row.running, row.orphaned)
        table.add_row(row.partition or "(none)", *map(str, counts))
    rows_console().print(table)


def instances(store: StoreUrl, schema: Schema = None, as_json: AsJson = False) -> None:
    """List who is registered. It helps people: no lease is decided by it.

    Exit code: 0, 2 usage, 3 the store cannot be asked.
    """
    found = asked(store, schema, c.ListInstances())
    if as_json:
        rows = [asdict(instance) for instance in found.instances]
        print(json.dumps({"at": found.at, "instances": rows}, indent=2))
        return
    table = rows_table("instance", "role", "host", "pid", "registered", "seen")
    for each in found.instances:
        ages = (f"{(found.at - at) / 1000:.0f} s ago" for at in (each.registered_at, each.seen_at))
        table.add_row(each.id, each.role, each.host, str(each.pid or ""), *ages)
    rows_console().print(table)


def cancel(job_id: JobId, store: StoreUrl, schema: Schema = None, as_json: AsJson = False) -> None:
    """Ask for a job to end: its owner hears of it with its next heartbeat; a job that is nobody's
    ends at once.

    Exit code: 0 asked, now or before; 1 there is no such job, or it has ended; 2 usage, 3 the
    store cannot be asked.
    """
    with opened(store, schema) as place:
        seen = place.execute(c.Find(job_id))
        # Of an id that has no job the store would remember the request: here it is a slip.
        done = seen if isinstance(seen, r.Refused) else place.execute(c.RequestCancel(job_id))
        _tell(job_id, done, place.execute(c.Find(job_id)), as_json)


def requeue(
    job_id: JobId,
    store: StoreUrl,
    schema: Schema = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also one that may never run twice; its event says so.")
    ] = False,
    actor: ActorName = "operator",
    as_json: AsJson = False,
) -> None:
    """Put an orphan back into the queue; whatever its old owner still sends is refused.

    Exit code: 0 done; 1 it is no orphan, or may not run twice; 2 usage, 3 the store cannot be
    asked.
    """
    with opened(store, schema) as place:
        seen = place.execute(c.Find(job_id))
        done: Any = seen
        if isinstance(seen, r.Found):
            epoch = seen.job.lease.epoch
            done = place.execute(c.Requeue(job_id, epoch, force=force, actor=actor))
        _tell(job_id, done, place.execute(c.Find(job_id)), as_json)


def settle(
    job_id: JobId,
    store: StoreUrl,
    outcome: Annotated[Outcome, typer.Option("--as", help="How it ends.")],
    schema: Schema = None,
    actor: ActorName = "operator",
    as_json: AsJson = False,
) -> None:
    """End an orphan; whatever its old owner still sends is refused.

    Exit code: 0 done, 1 it is no orphan, 2 usage, 3 the store cannot be asked.
    """
    with opened(store, schema) as place:
        seen = place.execute(c.Find(job_id))
        done: Any = seen
        if isinstance(seen, r.Found):
            epoch = seen.job.lease.epoch
            done = place.execute(c.Settle(job_id, epoch, Status(outcome), actor=actor))
        _tell(job_id, done, place.execute(c.Find(job_id)), as_json)


def _tell(job_id: str, done: Any, found: r.Found | r.Refused, as_json: bool) -> None:
    """What was done or refused, and how the job stands now."""
    refused = isinstance(done, r.Refused)
    code = ExitCode.REFUTED if refused else ExitCode.HELD
    words = "" if done is found and not refused else f"{said(done)}; "
    if as_json:
        standing = asdict(found.job) if isinstance(found, r.Found) else None
        result = None
        if isinstance(found, r.Found) and found.result is not None:
            result = {**asdict(found.result), "body": len(found.result.body)}
        print(
            json.dumps(
                {
                    "exit_code": int(code),
                    "refusal": done.reason.value if refused else None,
                    "at": found.at,
                    "job": standing,
                    "result": result,
                },
                indent=2,
            )
        )
    elif isinstance(found, r.Found):
        row = ", ".join(row_words(found.job, found.at))
        _say(f"{job_id}: {words}{row}")
        if found.result is not None:
            _say(f"result: {_result(found.result)}")
    else:
        _say(f"{job_id}: refused, {found.reason.value}")
    raise typer.Exit(code)


def _result(result: Any) -> str:
    told = {**asdict(result), "body": f"{len(result.body)} bytes"}
    return ", ".join(f"{name} {value}" for name, value in told.items() if value is not None)


def _say(words: str) -> None:
    Console(markup=False, highlight=False).print(words, soft_wrap=True)
