"""What another transaction commits between two statements of a command is no wrong answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg

from tests.adapters.postgres.conftest import Connect
from tests.adapters.postgres.helpers import TERMS, ServerClock, Session
from unswept.adapters.postgres import PostgresStore
from unswept.adapters.postgres.dialect import PostgresDialect
from unswept.adapters.postgres.session import transaction
from unswept.adapters.postgres.settings import settings
from unswept.adapters.postgres.sync import drive
from unswept.adapters.sql.queries import Queries
from unswept.adapters.sql.scripts import SCRIPTS
from unswept.adapters.sql.steps import Script
from unswept.core import commands as c
from unswept.core.replies import Accepted, Answer, Joined, Refused
from unswept.core.units import Ms, StoreMs
from unswept.core.values import Request

HOUR = Ms(3_600_000)


def interrupted(
    session: Session, schema: str, command: c.Command[Any], where: str, what: Any
) -> Any:
    """The command's reply, where `what` is done as soon as a statement with `where` in it ran."""
    mine = settings(session.url, schema)
    queries = Queries(PostgresDialect(schema))

    def script() -> Script[Any]:
        steps = SCRIPTS[type(command)].script(queries, command)
        left: list[Callable[[], Any]] = [what]
        step = next(steps)
        while True:
            rows = yield step
            if left and where in getattr(step, "sql", ""):
                left.pop()()
            try:
                step = steps.send(rows)
            except StopIteration as end:
                assert not left, f"no statement of {command} has {where!r} in it"
                return end.value

    return drive(session.connection, transaction(script, mine.clock, mine.limits), "the test")


def test_a_job_that_comes_between_two_looks_is_no_spent_id(
    store: PostgresStore, connect: Connect
) -> None:
    """An expiry that saw no job, and then that its id is used, looks for the job once more."""
    reply = interrupted(
        connect(),
        store.schema,
        c.ExpireQueued("j"),
        "FOR UPDATE",
        lambda: store.execute(c.Enqueue("j", queue_deadline=StoreMs(1))),
    )
    assert isinstance(reply, Accepted)
    assert reply.standing.status == "expired"


def test_a_renewal_in_between_does_not_make_a_twin_look_suspect(
    store: PostgresStore, connect: Connect, clock: ServerClock
) -> None:
    """The twin's row is read after the clock, so that a job which is alive is handed out. (L15)"""
    asked = Request(b"", "p", "k")
    store.execute(c.Admit("first", "i", TERMS, request=asked, dedup_window_ms=HOUR))

    def renewed() -> None:
        clock.now += TERMS.lease_ttl_ms - 1
        store.execute(c.Heartbeat("i", TERMS, (c.Hold("first", 1),)))
        clock.now += 50

    again = c.Admit("second", "i", TERMS, request=asked, dedup_window_ms=HOUR)
    reply = interrupted(connect(), store.schema, again, "jobs WHERE id", renewed)
    assert isinstance(reply, Joined)
    assert reply.standing.job_id == "first"


def test_a_withdrawal_in_between_spends_the_id(store: PostgresStore, connect: Connect) -> None:
    """An admit that would join finds its own id spent meanwhile, and is refused. (L6)"""
    asked = Request(b"", "p", "k")
    store.execute(c.Admit("first", "i", TERMS, request=asked, dedup_window_ms=HOUR))
    again = c.Admit("second", "i", TERMS, request=asked, dedup_window_ms=HOUR)
    reply = interrupted(
        connect(),
        store.schema,
        again,
        "SELECT first_owner",
        lambda: store.execute(c.Withdraw("second", "i")),
    )
    assert isinstance(reply, Refused)
    assert reply.reason == "spent"


def test_a_locked_instance_row_delays_no_renewal(store: PostgresStore, connect: Connect) -> None:
    """Liveness never comes from the instances' table, nor does waiting for it. (L8)"""
    store.execute(c.Register("i"))
    store.execute(c.Admit("j", "i", TERMS))
    stranger = connect()
    stranger.begin()
    stranger.run(f"SELECT * FROM {store.schema}.instances FOR UPDATE")
    beaten = store.execute(c.Heartbeat("i", TERMS, (c.Hold("j", 1),)))
    assert beaten.answers[0].answer is Answer.RENEWED
    assert beaten.registered
    stranger.rollback()


def test_no_event_is_passed_over(store: PostgresStore, postgres_url: str) -> None:
    """Numbers are handed out before the commit: a reader waits for a lower one that may yet come,
    and not for one that was rolled back."""

    def read(after: int) -> list[str]:
        return [event.job_id for event in store.execute(c.ReadEvents(after)).events]

    store.execute(c.Enqueue("a"))
    with psycopg.connect(postgres_url) as caller:
        store.execute_within(caller, c.Enqueue("lost"))
        store.execute(c.Enqueue("b"))
        assert read(0) == ["a"]
        assert read(1) == []
        caller.rollback()
        assert read(0) == ["a", "b"]
        store.execute_within(caller, c.Enqueue("late"))
        store.execute(c.Enqueue("c"))
        assert read(3) == []
        caller.commit()
    assert read(3) == ["late", "c"]
    assert store.execute(c.ReadEvents(3)).next_after == 5
