"""Opens runners, and queues for producers, by the URL of the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

from unswept.adapters.gateway.opening import open_store
from unswept.adapters.runner.job import Handler
from unswept.adapters.runner.runner import Runner
from unswept.adapters.runner.waking import Waker
from unswept.adapters.urls import is_postgres, need_psycopg
from unswept.core.commands import Store
from unswept.core.policy import LeasePolicy
from unswept.core.units import Ms

DEFAULT_TIMEOUT_MS: Final = LeasePolicy().operation_timeout_ms


@contextmanager
def open_queue(
    url: str, *, schema: str | None = None, operation_timeout_ms: Ms = DEFAULT_TIMEOUT_MS
) -> Iterator[Store]:
    """The store that a URL names, for who enqueues: on Postgres it tells runners of new work. An
    operation may wait for `operation_timeout_ms`; another kind of URL is a `MisuseError`."""
    if not is_postgres(url):
        with open_store(url, operation_timeout_ms) as store:
            yield store
        return
    need_psycopg()
    from unswept.adapters.postgres import PostgresStore
    from unswept.adapters.postgres.dialect import DEFAULT_SCHEMA

    with PostgresStore(
        url,
        schema=schema or DEFAULT_SCHEMA,
        operation_timeout_ms=operation_timeout_ms,
        announce=True,
    ) as store:
        yield store


@asynccontextmanager
async def open_runner(
    url: str,
    handle: Handler,
    *,
    schema: str | None = None,
    listen_url: str | None = None,
    policy: LeasePolicy | None = None,
    **options: Any,
) -> AsyncIterator[Runner]:
    """A runner that is drained, and whose store is closed, at the end; the options are `Runner`'s.

    On Postgres it is told of new work, through a connection to `listen_url`: the server itself,
    where `url` leads to a pooler.
    """
    policy = LeasePolicy() if policy is None else policy
    queue = open_queue(url, schema=schema, operation_timeout_ms=policy.operation_timeout_ms)
    store = await asyncio.to_thread(queue.__enter__)
    try:
        options.setdefault("waker", _listener(listen_url or url, schema))
        async with Runner(store, handle, policy=policy, **options) as runner:
            yield runner
    finally:
        await asyncio.to_thread(queue.__exit__, None, None, None)


def _listener(url: str, schema: str | None) -> Waker | None:
    if not is_postgres(url):
        return None
    from unswept.adapters.postgres.dialect import DEFAULT_SCHEMA
    from unswept.adapters.runner.listener import Listener

    return Listener(url, schema=schema or DEFAULT_SCHEMA)
