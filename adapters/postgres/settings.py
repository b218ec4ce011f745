"""What both kinds of Postgres store are made of: where the server is, and how long it may take."""

from __future__ import annotations

import random
import re
import time
from typing import Any, Final, TypeVar

import psycopg
from attrs import field, frozen
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from unswept.adapters.postgres.dialect import DEFAULT_SCHEMA, PostgresDialect
from unswept.adapters.postgres.errors import (
    ConflictError,
    ConnectionLostError,
    NoConnectionError,
)
from unswept.adapters.postgres.session import Limits, Session, inside, session_of
from unswept.adapters.sql.queries import Queries
from unswept.adapters.sql.scripts import Entry
from unswept.core.checks import check_bool, check_id, check_whole
from unswept.core.commands import Command
from unswept.core.errors import MisuseError
from unswept.core.units import Ms

R = TypeVar("R")

DEFAULT_TIMEOUT_MS: Final = 1_800
"""The default policy's operation timeout."""
DEFAULT_CONNECTIONS: Final = 4
_PART_FOR_ROWS: Final = 8
"""Rows that others are just writing are waited for during this part of the timeout."""

_DEFAULTS: Final = {
    "application_name": "unswept",
    "connect_timeout": "10",
    # A server that is cut off is noticed in seconds, not in the system's hours.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
}


@frozen
class Settings:
    """One store: its server, its schema, its limits."""

    conninfo: str = field(repr=False)
    """May hold a password: it goes to libpq, and into no message."""
    where: str
    """The same for messages."""
    queries: Queries
    clock: str
    limits: Limits
    migrate: bool
    timeout_ms: Ms
    max_connections: int

    @property
    def schema(self) -> str:
        """The schema of all tables."""
        dialect: Any = self.queries.dialect
        name: str = dialect.schema
        return name

    def session(self, entry: Entry, command: Command[R]) -> Session[R]:
        """A command on a connection of the store's."""
        return session_of(
            entry.mode, lambda: entry.script(self.queries, command), self.clock, self.limits
        )

    def session_within(self, entry: Entry, command: Command[R]) -> Session[R]:
        """A command in a transaction that is open."""
        return inside(entry.script(self.queries, command), self.clock, self.limits)

    def pool(self, size: int) -> dict[str, Any]:
        """A pool's arguments besides where it connects to and when it opens."""
        return {
            "kwargs": CONNECTION,
            "min_size": 1,
            "max_size": size,
            "timeout": self.timeout_ms / 1000,
            **POOL,
        }

    @property
    def no_connection(self) -> str:
        """What to say where no connection was to be had in time."""
        return (
            f"{self.where}: no connection within {self.timeout_ms} ms; nothing was written. Is the"
            f" server up, and are {self.max_connections} connections enough for all commands at a"
            " time? Repeat the command"
        )


def settings(
    url: str,
    schema: str = DEFAULT_SCHEMA,
    *,
    migrate: bool = True,
    operation_timeout_ms: int = DEFAULT_TIMEOUT_MS,
    max_connections: int = DEFAULT_CONNECTIONS,
) -> Settings:
    """Checked settings; raises `MisuseError`, in whose message no password stands."""
    check_id("schema", schema)
    dialect = PostgresDialect(schema)
    check_bool("migrate", migrate)
    check_whole("operation_timeout_ms", operation_timeout_ms, 1, 2**31 - 1)
    check_whole("max_connections", max_connections, 1, 10_000)
    given = _parsed(url)
    timeout = Ms(operation_timeout_ms)
    return Settings(
        make_conninfo(**{**_DEFAULTS, **given, "client_encoding": "UTF8"}),
        _where(given, schema),
        Queries(dialect),
        dialect.now,
        Limits(timeout, Ms(max(1, timeout // _PART_FOR_ROWS))),
        migrate,
        timeout,
        max_connections,
    )


_FORM: Final = re.compile(r"postgres(ql)?://([^@/? ]*@)?[^@/? ]*(/[^@? ]*(\?[^ ]*)?|\?[^@ ]*)?")
"""libpq takes more: what stands behind a bare @ or / of a password, for a host or a database."""


def _parsed(url: str) -> dict[str, Any]:
    """What the URL says. Of one that is refused nothing is quoted: any part may be the password."""
    if not isinstance(url, str):
        raise MisuseError(
            f"url must be a string like postgresql://host/database, got a {type(url).__name__}"
        )
    if not url.startswith(("postgresql://", "postgres://")):
        raise MisuseError("url must begin with postgresql://")
    try:
        given = dict(conninfo_to_dict(url)) if _FORM.fullmatch(url) and url.isprintable() else None
    except psycopg.ProgrammingError:
        given = None
    if given is None or not re.fullmatch("[0-9,]*", str(given.get("port", ""))):
        raise MisuseError(
            "url must be a connection URL like postgresql://user@host:5432/database?sslmode=require;"
            " the one that was given cannot be read (a special character in the user or the"
            " password must be percent-encoded: %40 for @, %2F for /)"
        )
    return given


def _where(given: dict[str, Any], schema: str) -> str:
    user = f"{given['user']}@" if "user" in given else ""
    port = f":{given['port']}" if "port" in given else ""
    return f"postgresql://{user}{given.get('host', '')}{port}/{given.get('dbname', '')} ({schema})"


CONNECTION: Final[dict[str, Any]] = {
    # Transactions are begun in so many words, and nothing is kept in the session, so that a pooler
    # may hand each transaction to another one.
    "autocommit": True,
    "prepare_threshold": None,
}


POOL: Final[dict[str, Any]] = {
    # A pool tries again at growing intervals, the first of a second: a heartbeat cannot wait for
    # those. It gives up at once instead, and begins anew whenever a connection is asked for.
    "reconnect_timeout": 0,
    "num_workers": 1,
}


_ASK_S: Final = 0.25
"""A server that is back is noticed within this time."""


class Patience:
    """How long one command may take in all, and whether it is worth another try."""

    def __init__(self, timeout_ms: Ms) -> None:
        self._until = time.monotonic() + timeout_ms / 1000
        self._tries = 0

    @property
    def ask_s(self) -> float:
        """How long to wait for a connection before it is asked for anew, in seconds; never 0, which
        a pool takes for "at once"."""
        return min(_ASK_S, max(0.001, self._until - time.monotonic()))

    def pause_s(self, error: ConflictError | ConnectionLostError | NoConnectionError) -> float:
        """How long to wait before the command is carried out anew, in seconds; raises the error
        where the time is over. None of these errors leaves a trace of the command."""
        self._tries += 1
        # A connection that was idle while the server restarted is found broken at its next use.
        pause = 0.0
        if isinstance(error, ConflictError):
            pause = random.uniform(0, min(0.1, 0.002 * 2**self._tries))
        if time.monotonic() + pause >= self._until:
            raise error
        return pause
