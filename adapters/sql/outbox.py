"""The scripts of consumers of events. A consumer's row is locked, the core's function says what it
becomes, and it is written so: nobody else has moved it meanwhile."""

from __future__ import annotations

from typing import Any

from unswept.adapters.sql.queries import Queries
from unswept.adapters.sql.rows import consumer_of, letter_of
from unswept.adapters.sql.steps import Each, Script, Statement, Tell, Timed, read_clock
from unswept.core import commands as c
from unswept.core import outbox
from unswept.core import replies as r
from unswept.core.outbox import Consumer, DeadLetter
from unswept.core.refusal import Refusal
from unswept.core.units import Ms, StoreMs
from unswept.core.world import leased


def lease_events(q: Queries, cmd: c.LeaseEvents) -> Script[r.EventsLeased | r.Refused]:
    """Takes a consumer's lease, or keeps it."""
    known, now = yield from _locked(q, cmd.consumer)
    while known is None:
        first = outbox.grant(None, cmd.consumer, cmd.holder, cmd.lease_ms, now)
        assert isinstance(first, Consumer)  # nobody could have its lease
        rows = yield Timed(q.begin_consumer, vars(first))
        now = yield from read_clock()  # it may have waited for another that began it
        if rows:
            break
        known, now = yield from _locked(q, cmd.consumer)
    row = outbox.grant(known, cmd.consumer, cmd.holder, cmd.lease_ms, now)
    if isinstance(row, Refusal):
        return r.Refused(now, row, None)
    yield Tell(q.move_consumer, [vars(row)])
    return leased(known, row, now)


def acknowledge(q: Queries, cmd: c.Acknowledge) -> Script[r.Acknowledged | r.Refused]:
    """Moves a consumer's position, by its newest token."""
    known, now = yield from _locked(q, cmd.consumer)
    if known is None:
        return r.Refused(now, Refusal.ABSENT, None)
    rows = yield Statement(q.newest_event, {})
    row = outbox.acknowledge(known, cmd.token, cmd.upto, rows[0][0], cmd.last)
    if isinstance(row, Refusal):
        return r.Refused(now, row, None)
    moved = row.position > known.position
    if row != known:
        yield Tell(q.move_consumer, [vars(row)])
    if moved and cmd.error is not None:
        letter = DeadLetter(row.name, row.position, now, known.attempts, cmd.error)
        yield Tell(q.put_letter, [vars(letter)])
    return r.Acknowledged(now, row.position, repeated=not moved)


def forget_consumer(q: Queries, cmd: c.ForgetConsumer) -> Script[r.Forgotten | r.Refused]:
    """Removes a consumer whose lease nobody has, and its dead letters."""
    known, now = yield from _locked(q, cmd.consumer)
    if known is None:
        return r.Forgotten(now, 0)
    if outbox.is_leased(known, now):
        return r.Refused(now, Refusal.LEASED, None)
    for drop in (q.drop_letters, q.drop_consumer):
        yield Tell(drop, [{"name": known.name}])
    return r.Forgotten(now, 1)


def past_events(q: Queries, cmd: c.LookOverdue, now: StoreMs) -> Script[tuple[str, ...]]:
    """Jobs whose events may go; none is looked for where events are kept for ever."""
    if cmd.event_retention_ms is None:
        return ()
    bounds = yield from _bounds(q, cmd.event_retention_ms, now)
    rows = yield Statement(q.past_events, {**bounds, "rows": cmd.limit})
    return tuple(job_id for (job_id,) in rows)


def forget_events(q: Queries, cmd: c.ForgetEvents) -> Script[r.Forgotten]:
    """Removes the events of jobs that were evicted long ago. The positions may be read before: they
    only grow, and a consumer that begins meanwhile finds what is left."""
    now = yield from read_clock()
    bounds = yield from _bounds(q, cmd.event_retention_ms, now)
    rows = yield Each(q.forget_events, [{**bounds, "id": job_id} for job_id in sorted(cmd.job_ids)])
    return r.Forgotten(now, len({job_id for (job_id,) in rows}))


def list_consumers(q: Queries, cmd: c.ListConsumers) -> Script[r.Consumers]:
    """All consumers, and how far they have come."""
    rows = yield Timed(q.list_consumers, {})
    now = yield from read_clock()
    consumers = tuple(consumer_of(row[1:]) for row in rows if row[1] is not None)
    return r.Consumers(now, rows[0][0], consumers)


def read_dead_letters(q: Queries, cmd: c.ReadDeadLetters) -> Script[r.DeadLettersPage]:
    """A consumer's dead letters."""
    params = {"consumer": cmd.consumer, "after": cmd.after, "rows": cmd.limit + 1}
    rows = yield Timed(q.read_letters, params)
    now = yield from read_clock()
    page = tuple(letter_of(row) for row in rows[: cmd.limit])
    return r.DeadLettersPage(now, page, more=len(rows) > cmd.limit)


def _bounds(q: Queries, event_retention_ms: Ms, now: StoreMs) -> Script[dict[str, Any]]:
    """What `outbox.may_forget` compares an eviction's event with."""
    rows = yield Statement(q.how_far, {})
    newest, behind = rows[0]
    return {
        "newest": newest,
        "behind": newest if behind is None else behind,
        "event_retention_ms": event_retention_ms,
        "now": now,
    }


def _locked(q: Queries, name: str) -> Script[tuple[Consumer | None, StoreMs]]:
    rows = yield Timed(q.lock_consumer, {"name": name})
    now = yield from read_clock()
    return (consumer_of(rows[0]) if rows else None), now
