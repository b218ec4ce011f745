"""Judges a recorded trace by the specification: each of its commands must be one of its steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from attrs import fields_dict, frozen
from cattrs import Converter

from unswept.core.errors import MisuseError
from unswept.core.job import Job
from unswept.core.lease import Lease
from unswept.simulations.commands_json import command_of
from unswept.simulations.script_file import object_of
from unswept.simulations.trace import FORMAT
from unswept.spec.agreement.behaviour import offence

_CONVERTER: Final = Converter(detailed_validation=False)
_OF_A_LEASE: Final = (*fields_dict(Lease),)
_OF_A_JOB: Final = {*fields_dict(Job)} - {"id", "lease", "process"}


@frozen
class Judgement:
    """What came of a trace."""

    commands: int
    """How many were judged, the last of them included."""
    line: int = 0
    """The line of the first one that is no step of the specification."""
    offence: str | None = None
    """Why it is none; None: all are."""


def judged(lines: Iterable[str]) -> Judgement:
    """Judge the commands of a trace that `unswept simulate --trace` wrote, from an empty store on.

    A trace shows which row each command left, so its rows are taken for what the store did. Raises
    `MisuseError` for a line that is none of a trace's.
    """
    rows: dict[str, Job] = {}
    commands = 0
    for number, text in enumerate(lines, 1):
        try:
            record = object_of(text)
        except MisuseError as error:
            raise MisuseError(f"line {number}: {error}") from None
        if number == 1 and (record.get("type"), record.get("format")) != ("run", FORMAT):
            raise MisuseError(f"line 1 must begin a trace of format {FORMAT}, got {text[:80]!r}")
        if record.get("type") != "command":
            continue
        commands += 1
        try:
            found = _offence(record, rows)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise MisuseError(f"line {number} is no command of a trace: {error!r}") from None
        if found is not None:
            return Judgement(commands, number, found)
    return Judgement(commands)


def _offence(record: Mapping[str, Any], rows: dict[str, Job]) -> str | None:
    """Judge one command, and keep the rows that it left."""
    command = command_of(record["verb"], record["command"])
    after: dict[str, Job | None] = {}
    for change in record["changes"]:
        job_id = change["job"]
        was = after[job_id] if job_id in after else rows.get(job_id)
        if was != _job(job_id, change["before"]):
            return (
                f"{record['verb']} at {record['store_at']}: {job_id} changed by no command before"
            )
        after[job_id] = _job(job_id, change["after"])
    found = offence(record["store_at"], command, rows, after)
    for job_id, job in after.items():
        if job is None:
            del rows[job_id]
        else:
            rows[job_id] = job
    return found


def _job(job_id: str, row: Mapping[str, Any] | None) -> Job | None:
    """The job of a trace's row, in which what is not set is left out."""
    if row is None:
        return None
    facts: dict[str, Any] = {name: row[name] for name in _OF_A_JOB if name in row}
    if "pid" in row:
        process = {"pid": row["pid"], "start": row["process_start"], "boot_id": row["boot_id"]}
        facts["process"] = process
    lease = {name: row.get(name) for name in _OF_A_LEASE}
    return _CONVERTER.structure({"id": job_id, "lease": lease, **facts}, Job)
