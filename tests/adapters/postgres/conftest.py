"""Sessions on the server, beside whatever the store opens."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.adapters.postgres.helpers import Observer, ServerClock, Session
from tests.postgres_server import PostgresServer, running
from unswept.adapters.postgres import PostgresStore

Connect = Callable[[], Session]


@pytest.fixture
def connect(postgres_url: str, postgres_schema: str) -> Iterator[Connect]:
    """Opens sessions; they are closed before the schema is dropped."""
    opened: list[Session] = []

    def open_one() -> Session:
        opened.append(Session(postgres_url))
        return opened[-1]

    yield open_one
    for session in opened:
        session.close()


@pytest.fixture
def observer(connect: Connect) -> Observer:
    return Observer(connect())


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server for one test, to be stopped, crashed and made read-only. What it has committed
    outlives a crash."""
    with running({"synchronous_commit": "on"}) as server:
        yield server


@pytest.fixture
def store(postgres_store: PostgresStore) -> PostgresStore:
    return postgres_store


@pytest.fixture
def clock(store: PostgresStore, postgres_schema: str, connect: Connect) -> ServerClock:
    """The clock of `store`, which stands."""
    return ServerClock(connect(), postgres_schema)
