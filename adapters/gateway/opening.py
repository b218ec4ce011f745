"""Opens a gateway from its settings, store included: `sqlite:PATH` or `postgresql://...`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from unswept.adapters.gateway.errors import ConfigError
from unswept.adapters.gateway.gateway import Gateway
from unswept.adapters.gateway.observer import Observer
from unswept.adapters.gateway.settings import Settings
from unswept.adapters.sqlite import SqliteStore
from unswept.adapters.urls import check_store_url, is_postgres
from unswept.core.commands import Store
from unswept.core.units import Ms

log: Final = logging.getLogger(__name__)


@contextmanager
def open_store(url: str, operation_timeout_ms: Ms) -> Iterator[Store]:
    """The store that a URL names, made where there is none, and closed at the end. An operation may
    wait for `operation_timeout_ms`; another kind of URL is a `MisuseError`."""
    check_store_url(url)
    if is_postgres(url):
        from unswept.adapters.postgres import PostgresStore

        with PostgresStore(url, operation_timeout_ms=operation_timeout_ms) as store:
            yield store
    else:
        with SqliteStore(url, busy_timeout_ms=operation_timeout_ms) as file:
            yield file


@asynccontextmanager
async def open_gateway(
    settings: Settings, *, observer: Observer | None = None
) -> AsyncIterator[Gateway]:
    """A gateway that is drained, and whose store is closed, at the end; the log has what the
    settings warn of.

    A store that cannot be opened is raised as its error: a gateway without its store is no gateway.
    """
    if settings.store_url is None:
        raise ConfigError("the settings name no store, and a gateway admits no job without one")
    for warning in settings.warnings:
        log.warning("%s", warning)
    store = open_store(settings.store_url, settings.policy.operation_timeout_ms)
    opened = await asyncio.to_thread(store.__enter__)
    try:
        gateway = Gateway(
            opened,
            policy=settings.policy,
            limits=settings.limits,
            max_output_bytes=settings.max_output_bytes,
            observer=observer,
        )
        async with gateway:
            yield gateway
    finally:
        await asyncio.to_thread(store.__exit__, None, None, None)
