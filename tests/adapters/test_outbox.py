"""On Postgres: consumers that meet, and events whose numbers appear out of order."""

from __future__ import annotations

from threading import Barrier, Thread
from typing import Any

import pytest

from tests.adapters.postgres.helpers import Session
from unswept.adapters.postgres import PostgresStore
from unswept.core import commands as c
from unswept.core.refusal import Refusal
from unswept.core.replies import Acknowledged, EventsLeased, Refused
from unswept.core.units import Ms

LONG = Ms(3_600_000)


@pytest.fixture
def store(postgres_store: PostgresStore) -> PostgresStore:
    return postgres_store


@pytest.mark.parametrize("known", [False, True])
def test_one_of_many_gets_the_lease(store: PostgresStore, known: bool) -> None:
    """Also where all of them begin the consumer at once."""
    if known:
        first = store.execute(c.LeaseEvents("mail", "first", LONG))
        assert isinstance(first, EventsLeased)
        store.execute(c.Acknowledge("mail", first.token, 0, last=True))
    barrier, replies = Barrier(6), list[Any]()

    def lease(worker: int) -> None:
        barrier.wait()
        replies.append(store.execute(c.LeaseEvents("mail", f"w{worker}", LONG)))

    threads = [Thread(target=lease, args=(worker,)) for worker in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    leased = [reply for reply in replies if isinstance(reply, EventsLeased)]
    others = [reply.reason for reply in replies if isinstance(reply, Refused)]
    assert [reply.token for reply in leased] == [2 if known else 1]
    assert others == [Refusal.LEASED] * 5


def test_no_event_is_passed_over(
    store: PostgresStore, postgres_url: str, postgres_schema: str
) -> None:
    """An event that is committed after one of a higher number is delivered before it."""
    seen: list[str] = []
    leased = store.execute(c.LeaseEvents("mail", "a", LONG))
    assert isinstance(leased, EventsLeased)
    position = leased.position

    def deliver() -> None:
        nonlocal position
        page = store.execute(c.ReadEvents(position))
        seen.extend(event.job_id for event in page.events)
        done = store.execute(c.Acknowledge("mail", leased.token, page.next_after))
        assert isinstance(done, Acknowledged)
        position = done.position

    with Session(postgres_url) as slow:
        store.execute(c.Enqueue("one"))
        slow.begin()
        slow.execute(postgres_schema, c.Enqueue("two"))
        store.execute(c.Enqueue("three"))
        deliver()
        assert seen == ["one"]
        slow.commit()
    deliver()
    assert seen == ["one", "two", "three"]
    assert position == 3
