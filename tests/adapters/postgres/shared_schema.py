"""One schema for many stores in a row: to empty its tables takes a tenth of making them anew."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Final, TypeVar
from unittest import mock

import psycopg

from tests.adapters.test_conformance_sqlite import WRONG_GUARDS, queries_with
from unswept.adapters.postgres import AsyncPostgresStore, PostgresStore
from unswept.adapters.postgres import settings as settings_module
from unswept.adapters.postgres.simulated import GivenClockStore, SchemaStore
from unswept.core.commands import Command
from unswept.core.units import StoreMs

R = TypeVar("R")

_NUMBERS: Final = itertools.count()
_TABLES: Final = (
    *("jobs", "job_ids", "dedup_keys", "requests", "results", "output", "instances", "events"),
    *("consumers", "dead_letters"),
)


class Awaited:
    """An asynchronous store in an event loop of its own, for whoever waits."""

    def __init__(self, store: AsyncPostgresStore) -> None:
        self.schema = store.schema
        self._store = store
        self._loop = asyncio.Runner()
        self._loop.run(store.open())

    def execute(self, command: Command[R]) -> R:
        return self._loop.run(self._store.execute(command))

    def close(self) -> None:
        self._loop.run(self._store.close())
        self._loop.close()


class SharedSchema:
    """Makes stores that are empty, one at a time, all in one schema and on given clocks."""

    def __init__(self, url: str, *, asynchronous: bool = False) -> None:
        name = f"unswept_shared_{next(_NUMBERS)}"
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())
        store: SchemaStore
        if asynchronous:
            store = Awaited(AsyncPostgresStore(url, schema=name))
        else:
            store = PostgresStore(url, schema=name)
        self._now: Callable[[], StoreMs] = lambda: StoreMs(0)
        self._store = GivenClockStore(store, lambda: self._now(), self._connection)

    def make_store(self, clock: Callable[[], StoreMs]) -> Lent:
        """An empty store whose time is what `clock` returns."""
        schema = self._store.schema
        deleted = "; ".join(f"DELETE FROM {schema}.{table}" for table in _TABLES)
        numbered = f"SELECT setval('{schema}.events_seq_seq', 1, false)"
        self._connection.execute(f"{deleted}; {numbered}".encode())
        self._now = clock
        return Lent(self._store)

    def close(self) -> None:
        """Takes the schema away."""
        self._store.close()


BROKEN: Final = (
    "L1: the sweep takes a deadline equal to now",
    "L3: complete drops the epoch",
)
"""Some of `WRONG_GUARDS`: on SQLite all of them are planted, in the same statements."""


@contextmanager
def broken_schema(name: str, url: str) -> Iterator[SharedSchema]:
    """Makes stores in whose SQL this wrong guard stands."""
    fault = WRONG_GUARDS[name]
    with mock.patch.object(settings_module, "Queries", lambda d: queries_with(fault, d)):
        schema = SharedSchema(url)
    with closing(schema):
        yield schema


class Lent:
    """The store, whose `close` leaves it open for the next."""

    def __init__(self, store: GivenClockStore) -> None:
        self._store = store

    def execute(self, command: Command[R]) -> R:
        return self._store.execute(command)

    def close(self) -> None:
        """Nothing: the schema is emptied for the next."""
