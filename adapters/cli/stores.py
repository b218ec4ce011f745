"""Opens the store that `--store` names, as it is there: nothing is made or migrated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from unswept.adapters.cli.db import file_of
from unswept.adapters.doctor.look import Look
from unswept.adapters.doctor.sqlite_look import looked_into
from unswept.adapters.sqlite import SqliteStore
from unswept.adapters.urls import is_postgres, need_psycopg
from unswept.core.commands import Command, Store
from unswept.core.units import Ms

R = TypeVar("R")


@contextmanager
def opened(url: str, schema: str | None, timeout_ms: Ms | None = None) -> Iterator[Store]:
    """A store at the newest version, to work with. An operation may wait for `timeout_ms`; None:
    for as long as the store itself says."""
    if is_postgres(url):
        need_psycopg()
        # The driver is an extra: only who names a Postgres store needs it.
        from unswept.adapters.postgres import PostgresStore
        from unswept.adapters.postgres.dialect import DEFAULT_SCHEMA
        from unswept.adapters.postgres.settings import DEFAULT_TIMEOUT_MS

        with PostgresStore(
            url,
            schema=schema or DEFAULT_SCHEMA,
            migrate=False,
            operation_timeout_ms=timeout_ms or DEFAULT_TIMEOUT_MS,
        ) as place:
            yield place
        return
    path = file_of(url, schema)
    if timeout_ms is None:
        file = SqliteStore(path, migrate=False)
    else:
        file = SqliteStore(path, migrate=False, busy_timeout_ms=timeout_ms)
    with file:
        yield file


def looking(url: str, schema: str | None) -> AbstractContextManager[Look]:
    """A look at a store of whatever version; `StoreError` where it is out of reach."""
    if is_postgres(url):
        need_psycopg()
        from unswept.adapters.doctor.postgres_look import looked_at

        return looked_at(url, schema)
    return looked_into(file_of(url, schema))


def asked(url: str, schema: str | None, question: Command[R]) -> R:
    """The reply to a command that reads, of a store at the newest version that stays as it is."""
    with looking(url, schema) as look:
        look.version()
        return look.execute(question)
