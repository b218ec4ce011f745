"""The scripts of consumers of events. A consumer's row is locked, the core's function says what it
becomes, and it is written so: nobody else has moved it meanwhile."""

from __future__ import annotations

from unswept.adapters.sql.queries import Queries
from unswept.adapters.sql.rows import consumer_of, letter_of
from unswept.adapters.sql.steps import Script, Statement, Tell, Timed, read_clock
from unswept.core import commands as c
from unswept.core import outbox
from unswept.core import replies as r
from unswept.core.outbox import Consumer, DeadLetter
from unswept.core.refusal import Refusal
from unswept.core.units import StoreMs
from unswept.core.world import leased


def lease_events(q: Queries, cmd: c.LeaseEvents) -> Script[r.EventsLeased | r.Refused]:
    """Takes a consumer's lease, or keeps it."""
    known, now = yield from _locked(q, cmd.consumer)
    if known is None:
        first = outbox.grant(None, cmd.consumer, cmd.holder, cmd.lease_ms, now)
        assert isinstance(first, Consumer)  # nobody could have its lease
        rows = yield Timed(q.begin_consumer, vars(first))
        now = yield from read_clock()  # it may have waited for another that began it
        if not rows:
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


def _locked(q: Queries, name: str) -> Script[tuple[Consumer | None, StoreMs]]:
    rows = yield Timed(q.lock_consumer, {"name": name})
    now = yield from read_clock()
    return (consumer_of(rows[0]) if rows else None), now
