"""Runs the checks over an arranged history, and says what came of every law."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import duckdb
from attrs import frozen

from unswept.adapters.audit.check import Check
from unswept.adapters.audit.event_checks import EVENT_CHECKS
from unswept.adapters.audit.row_checks import ROW_CHECKS
from unswept.adapters.audit.unseen import UNSEEN
from unswept.spec.laws import LAWS

CHECKS: Final[tuple[Check, ...]] = (*EVENT_CHECKS, *ROW_CHECKS)


@frozen
class Offence:
    """One job and what was done to it, with the rows that show it."""

    law: str
    job: str | None
    said: str
    events: tuple[dict[str, Any], ...]
    row: dict[str, Any] | None
    """The job's row, where the check looks at it."""


@frozen
class Verdict:
    """What history shows of one law."""

    law: str
    sentence: str
    looked_at: tuple[str, ...]
    """Empty: it could not be judged."""
    unseen: str
    """What of it history does not show, and why; empty where it shows all."""
    count: int
    """How many offences there are."""
    offences: tuple[Offence, ...]
    """The first of them."""


def judge(
    connection: duckdb.DuckDBPyConnection, tables: Collection[str], limit: int
) -> tuple[Verdict, ...]:
    """One verdict for each law, with at most `limit` offences in each."""
    verdicts = []
    for law in LAWS:
        mine = [check for check in CHECKS if check.law == law.id]
        able = [check for check in mine if {*check.needs} <= {*tables}]
        lacking = sorted({table for check in mine for table in check.needs} - {*tables})
        count = 0
        offences: list[Offence] = []
        for check in able:
            more, first = _found(connection, check, limit - len(offences))
            count += more
            offences += _shown(connection, check, first)
        verdicts.append(
            Verdict(
                law.id,
                law.sentence,
                tuple(check.looks_at for check in able),
                _unseen(law.id, lacking),
                count,
                tuple(offences),
            )
        )
    return tuple(verdicts)


def _unseen(law: str, lacking: Sequence[str]) -> str:
    said = [UNSEEN[law]] if law in UNSEEN else []
    if lacking:
        said.append(f"exported events are without the table(s) {', '.join(lacking)}")
    return "; ".join(said)


_Found = tuple[str | None, list[int | None], str]


def _found(
    connection: duckdb.DuckDBPyConnection, check: Check, limit: int
) -> tuple[int, list[_Found]]:
    """How many offences there are, and the first of them: there may be millions."""
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE found AS FROM ({check.sql}) AS found (job, seqs, said)"
    )
    counted = connection.execute("SELECT count(*) FROM found").fetchone()
    assert counted is not None
    first = connection.execute("FROM found ORDER BY seqs[-1], job, said LIMIT ?", [limit])
    return counted[0], first.fetchall()


def _shown(
    connection: duckdb.DuckDBPyConnection, check: Check, found: Sequence[_Found]
) -> list[Offence]:
    seqs = sorted({seq for _, numbers, _ in found for seq in numbers if seq is not None})
    events = {row["seq"]: row for row in _rows(connection, "events", "seq", seqs)}
    jobs: dict[str, dict[str, Any]] = {}
    if "jobs" in check.needs:
        ids = sorted({job for job, _, _ in found if job is not None})
        jobs = {row["id"]: row for row in _rows(connection, "jobs", "id", ids)}
    return [
        Offence(
            check.law,
            job,
            said,
            tuple(events[seq] for seq in numbers if seq in events),
            None if job is None else jobs.get(job),
        )
        for job, numbers, said in found
    ]


def _rows(
    connection: duckdb.DuckDBPyConnection, table: str, key: str, wanted: Sequence[Any]
) -> list[dict[str, Any]]:
    if not wanted:
        return []
    rows = connection.execute(
        f"SELECT * FROM {table} WHERE list_contains(?, {key}) ORDER BY {key}", [list(wanted)]
    )
    names = [column[0] for column in rows.description or ()]
    return [dict(zip(names, row, strict=True)) for row in rows.fetchall()]
