"""The store of a fleet's run as its processes open it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from unswept.adapters.chaos.fleet.load import POLICY
from unswept.adapters.chaos.worker import Charge
from unswept.adapters.sqlite import SqliteStore
from unswept.adapters.sqlite.opening import Durability
from unswept.adapters.urls import is_postgres
from unswept.core.commands import Store

CONNECTIONS: Final = 2
"""Of each runner, besides those for heartbeats and for listening: sixteen of them share a server
that has a hundred."""


@contextmanager
def open_for(
    charge: Charge, *, connections: int = CONNECTIONS, announce: bool = False
) -> Iterator[Store]:
    """As patient as the policy. A run kills processes and no power, so that on SQLite nothing is
    lost by not waiting for the disk."""
    timeout_ms = POLICY.operation_timeout_ms
    if not is_postgres(charge.url):
        with SqliteStore(
            charge.url, durability=Durability.NORMAL, busy_timeout_ms=timeout_ms
        ) as file:
            yield file
        return
    from unswept.adapters.postgres import PostgresStore

    assert charge.schema is not None
    with PostgresStore(
        charge.url,
        schema=charge.schema,
        migrate=False,
        operation_timeout_ms=timeout_ms,
        max_connections=connections,
        announce=announce,
    ) as store:
        yield store
