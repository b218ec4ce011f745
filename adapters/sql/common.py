"""What the scripts share: lock the row, read the clock, carry out a transition, say why not."""

from __future__ import annotations

from collections.abc import Iterable

from unswept.adapters.sql.queries import Queries
from unswept.adapters.sql.rows import Before, event_params, job_of, standing_of
from unswept.adapters.sql.statements import Transition
from unswept.adapters.sql.steps import (
    CLOCK,
    Params,
    Row,
    Script,
    Statement,
    Tell,
    Timed,
    read_clock,
)
from unswept.core.errors import StoreError
from unswept.core.job import Job
from unswept.core.refusal import Refusal
from unswept.core.replies import Accepted, Refused, Standing
from unswept.core.units import StoreMs


class GuardError(StoreError):
    """A statement's guard and the core's function disagree on a row; nothing was changed."""


def bear(q: Queries, job_id: str, owner: str | None) -> Script[StoreMs | None]:
    """Uses the id and gives the store time; None where it has been used. Waits for whoever is
    using it now, so the time that counts is read after. (L6)"""
    born_at = yield CLOCK
    used = {"id": job_id, "owner": owner, "now": born_at[0][0], "joined_to": None}
    rows = yield Timed(q.bear_id, used)
    now = yield CLOCK
    return StoreMs(now[0][0]) if rows else None


def locked_job(q: Queries, job_id: str) -> Script[tuple[Before | Refusal, StoreMs]]:
    """One job, with its row locked, or why there is none; and the store time, read once that lock
    is held."""
    row, now = yield from found_job(q, q.lock_job, job_id)
    return (row if isinstance(row, Refusal) else Before(*row)), now


def found_job(q: Queries, lock: str, job_id: str) -> Script[tuple[Row | Refusal, StoreMs]]:
    """The row that a statement locks, or why there is none, and the store time behind the lock."""
    rows = yield Timed(lock, {"id": job_id})
    now = yield from read_clock()
    if rows:
        return rows[0], now
    if (yield from absence(q, job_id)) is Refusal.ABSENT:
        return Refusal.ABSENT, now
    # Its birth may have been committed between the two looks.
    rows = yield Timed(lock, {"id": job_id})
    now = yield from read_clock()
    return (rows[0] if rows else Refusal.SPENT), now


def read_job(q: Queries, job_id: str) -> Script[Job]:
    """The whole row of a job that is there, for the core to say why nothing was done."""
    rows = yield Statement(q.read_job, {"id": job_id})
    return job_of(rows[0])


def read_jobs(q: Queries, job_ids: Iterable[str]) -> Script[dict[str, Job]]:
    """The same for many, those that are there."""
    ids = list(job_ids)
    if not ids:
        return {}
    rows = yield Statement(q.read_jobs, q.dialect.bind_ids(ids))
    return {row[0]: job_of(row) for row in rows}


def absence(q: Queries, job_id: str) -> Script[Refusal]:
    """Why there is no row."""
    rows = yield Statement(q.read_id, {"id": job_id})
    return Refusal.SPENT if rows else Refusal.ABSENT


def carry_out(
    q: Queries,
    transition: Transition,
    before: Before,
    now: StoreMs,
    actor: str | None,
    params: Params,
    *,
    forced: bool = False,
) -> Script[Accepted | None]:
    """The transition and its event; None where the guard does not hold on the row. (L5)"""
    rows = yield Statement(q.update[transition.name], {"id": before.id, "now": now, **params})
    if not rows:
        return None
    after = rows[0]
    event = event_params(transition.kind, before, after, now, actor, forced=forced)
    yield Tell(q.put_event, [event])
    return Accepted(now, standing_of(after), transition.kind)


def repeated(job: Job, now: StoreMs) -> Accepted:
    """The command had taken effect before."""
    return Accepted(now, Standing.of(job), None)


def absent(reason: Refusal, now: StoreMs) -> Refused:
    """There is no row: the id has been used, or never was."""
    return Refused(now, reason, None)


def refused(reason: Refusal, job: Job, now: StoreMs) -> Refused:
    """Nothing changed; this stands."""
    return Refused(now, reason, Standing.of(job))


def why_skipped(core_says: object) -> Refusal:
    """The core's refusal, for a row that was passed over; where the core has none, somebody has it
    locked."""
    return core_says if isinstance(core_says, Refusal) else Refusal.BUSY


def why(core_says: object, transition: Transition, job_id: str) -> Refusal:
    """The core's refusal, for a statement that changed no row."""
    if isinstance(core_says, Refusal):
        return core_says
    raise GuardError(
        f"the guard of {transition.name} refused job {job_id!r} although the core allows it;"
        " this is a fault of the statement table: please report it"
    )
