"""Other roles and databases on the server of the tests, and both kinds of store alike."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import quote
from uuid import uuid4

import psycopg
from psycopg.conninfo import conninfo_to_dict

from unswept.adapters.postgres import AsyncPostgresStore, PostgresStore
from unswept.adapters.postgres.simulated import SchemaStore
from unswept.core.commands import Command

R = TypeVar("R")

KINDS = ("blocking", "asynchronous")


class Awaiting:
    """An asynchronous store in an event loop of its own, for whoever waits."""

    def __init__(self, store: AsyncPostgresStore, loop: asyncio.Runner) -> None:
        self.store = store
        self.schema = store.schema
        self.loop = loop

    def execute(self, command: Command[R]) -> R:
        return self.loop.run(self.store.execute(command))

    def close(self) -> None:
        self.loop.run(self.store.close())

    def __repr__(self) -> str:
        return repr(self.store)


@contextmanager
def opened(kind: str, url: str, **options: Any) -> Iterator[SchemaStore]:
    """A store of either kind, closed at the end."""
    if kind == "blocking":
        with PostgresStore(url, **options) as store:
            yield store
        return
    with asyncio.Runner() as loop:
        awaited = AsyncPostgresStore(url, **options)
        loop.run(awaited.open())
        try:
            yield Awaiting(awaited, loop)
        finally:
            loop.run(awaited.close())


def open_once(kind: str, url: str, **options: Any) -> None:
    """Where no more is asked than whether it can be opened."""
    with opened(kind, url, **options):
        pass


def changed(url: str, **parts: str) -> str:
    """The URL with another user, password, dbname, host or whatever else libpq knows."""
    given = {**conninfo_to_dict(url), **parts}
    named = {name: quote(str(value), safe="") for name, value in given.items()}
    user, database = named.pop("user"), named.pop("dbname")
    password = f":{named.pop('password')}" if "password" in named else ""
    rest = "&".join(f"{name}={value}" for name, value in named.items())
    return f"postgresql://{user}{password}@/{database}?{rest}"


def run(url: str, *statements: str) -> list[tuple[Any, ...]]:
    """Statements, each for itself; gives the rows of the last."""
    rows: list[tuple[Any, ...]] = []
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement.encode())
            rows = cursor.fetchall() if cursor.description else []
    return rows


@contextmanager
def role(url: str, *grants: str, options: str = "") -> Iterator[str]:
    """The URL for a role of its own, which has what is granted (`{role}` is its name)."""
    name = f"unswept_role_{uuid4().hex[:12]}"
    run(url, f"CREATE ROLE {name} LOGIN {options}")
    try:
        run(url, *(grant.replace("{role}", name) for grant in grants))
        yield changed(url, user=name)
    finally:
        run(url, f"DROP OWNED BY {name} CASCADE", f"DROP ROLE {name}")


@contextmanager
def database(url: str, options: str = "") -> Iterator[str]:
    """The URL for a database of its own."""
    name = f"unswept_database_{uuid4().hex[:12]}"
    run(url, f"CREATE DATABASE {name} TEMPLATE template0 {options}")
    try:
        yield changed(url, dbname=name)
    finally:
        run(url, f"DROP DATABASE {name} WITH (FORCE)")


def least(schema: str) -> tuple[str, ...]:
    """What a role needs to work with a store that somebody else has made."""
    return (
        f"GRANT USAGE ON SCHEMA {schema} TO {{role}}",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {{role}}",
    )
