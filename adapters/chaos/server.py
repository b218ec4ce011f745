"""The place of a run on Postgres: a schema of its own, and what can befall a server's clients."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from attrs import define

from unswept.adapters.chaos.places import LOCK_WAIT_MS, Place
from unswept.adapters.chaos.plan import Fault
from unswept.adapters.postgres import PostgresStore
from unswept.adapters.postgres.settings import Settings, settings
from unswept.adapters.postgres.sync import connected
from unswept.core.commands import Store
from unswept.core.errors import MisuseError

_PATIENCE_MS = 10_000
"""The driver's own store only looks, and must not fail because others take their time."""


@contextmanager
def on_server(
    url: str, schema: str | None, keep: bool, restart: Callable[[], None] | None
) -> Iterator[tuple[Place, Store]]:
    """The place, and a store for the driver; the schema is dropped at the end unless kept."""
    token = secrets.token_hex(4)
    place = _Server(url, settings(url, schema or f"unswept_chaos_{token}"), token, restart)
    place.check_free()
    try:
        with PostgresStore(url, schema=place.schema, operation_timeout_ms=_PATIENCE_MS) as store:
            yield place, store
    finally:
        place.unlock()
        if not keep:
            place.drop()


@define(eq=False, repr=False)
class _Server:
    """One schema of a Postgres database."""

    _url: str
    _settings: Settings
    _token: str
    _restart: Callable[[], None] | None
    _locker: psycopg.Connection[Any] | None = None

    @property
    def name(self) -> str:
        """Where it is, without a password."""
        return self._settings.where

    @property
    def schema(self) -> str:
        """The schema of all tables."""
        return self._settings.schema

    def faults(self) -> tuple[Fault, ...]:
        return tuple(f for f in Fault if f is not Fault.RESTART or self._restart is not None)

    def url_for(self, gateway: int) -> str:
        mark = "&" if "?" in self._url else "?"
        return f"{self._url}{mark}application_name={self._application(gateway)}"

    def cut(self, gateway: int) -> int:
        with connected(self._settings) as connection:
            return connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = %(name)s",
                {"name": self._application(gateway)},
            ).rowcount

    def lock(self) -> bool:
        connection = connected(self._settings)
        try:
            connection.execute("BEGIN")
            connection.execute(f"SET LOCAL lock_timeout = {LOCK_WAIT_MS}".encode())
            # What the building of an index takes: readers pass, writers wait.
            connection.execute(f"LOCK TABLE {self.schema}.jobs IN SHARE MODE".encode())
        except psycopg.Error:
            connection.close()
            return False
        self._locker = connection
        return True

    def unlock(self) -> None:
        if self._locker is not None:
            self._locker.close()
            self._locker = None

    def restart(self) -> None:
        assert self._restart is not None
        self.unlock()
        self._restart()

    def check_free(self) -> None:
        """A schema that is there already may be somebody's: it is not used, and not dropped."""
        with connected(self._settings) as connection:
            there = connection.execute(
                "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %(name)s",
                {"name": self.schema},
            ).fetchone()
        if there is not None:
            raise MisuseError(f"--schema must name one that is not there yet, got {self.schema}")

    def drop(self) -> None:
        """Take the schema away."""
        with connected(self._settings) as connection:
            connection.execute("SET lock_timeout = '20s'")
            connection.execute(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE".encode())

    def _application(self, gateway: int) -> str:
        return f"unswept-chaos-{self._token}-{gateway}"
