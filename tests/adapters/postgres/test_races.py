"""Every two commands on the same job at once, in both orders, come to what one of two orders gives.

See `races` for what is allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest

from tests.adapters.postgres.helpers import PATIENT_MS, Observer, ServerClock, Session
from tests.adapters.postgres.races import (
    PAIRS,
    SITUATIONS,
    VERBS,
    Races,
    does_something,
    situations,
)
from tests.conftest import drop_schema
from unswept.adapters.postgres import PostgresStore
from unswept.adapters.postgres.dialect import PostgresDialect


@contextmanager
def races_on(url: str) -> Iterator[Races]:
    """One store for all races: each has a job of its own."""
    schema = f"unswept_test_{uuid4().hex[:12]}"
    with Session(url) as moving, Session(url) as holding, Session(url) as observing:
        with PostgresStore(url, schema=schema, operation_timeout_ms=PATIENT_MS) as store:
            clock = ServerClock(moving, schema)
            yield Races(store, clock, schema, holding, Observer(observing))
        holding.rollback()
    drop_schema(url, schema)


@pytest.fixture(scope="module")
def races(postgres_url: str) -> Iterator[Races]:
    with races_on(postgres_url) as made:
        yield made


@pytest.mark.parametrize(("x", "y"), PAIRS, ids=[f"{x}, {y}" for x, y in PAIRS])
def test_two_at_once_come_to_one_after_the_other(x: str, y: str, races: Races) -> None:
    """Y begins while X is not committed yet; once X is rolled back instead. So the laws of single
    steps (L1, L2, L3, L4, L5, L6, L7, L9) hold of steps that meet."""
    first, *others = situations(x, y)
    races.run(x, y, first, commit=False)
    for situation in (first, *others):
        races.run(x, y, situation, commit=True)


@pytest.mark.parametrize("verb", VERBS)
def test_each_command_does_something_somewhere(verb: str) -> None:
    """Else its races would show nothing."""
    assert any(does_something(verb, situation) for situation in SITUATIONS)


@pytest.mark.parametrize(
    ("lock", "x", "y"),
    [
        ("for_update", "heartbeat", "start"),
        ("for_update", "complete", "release"),
        ("for_key_share", "evict", "output"),
    ],
)
def test_a_store_that_does_not_lock_is_noticed(
    lock: str, x: str, y: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same scripts without a lock that they need fail a race that needs it."""
    monkeypatch.setattr(PostgresDialect, lock, "")
    with races_on(postgres_url) as broken, pytest.raises(AssertionError, match="not X, then Y"):
        broken.run(x, y, next(situations(x, y)), commit=True)
