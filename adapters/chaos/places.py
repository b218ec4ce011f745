"""The store of a run as the driver uses it: opened, locked, cut off, restarted, and tidied up.

Two kinds, because what can befall a file and a server differ; the server is in `server`.
"""

from __future__ import annotations

import shlex
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from attrs import define

from unswept.adapters.chaos.plan import Fault
from unswept.adapters.sqlite import SqliteStore, files
from unswept.adapters.sqlite.patience import Wait, patiently
from unswept.adapters.urls import is_postgres, need_psycopg, without_password
from unswept.core.commands import Store
from unswept.core.errors import MisuseError

LOCK_WAIT_MS: Final = 3_000
"""How long the driver tries to get a lock, or a connection."""
RESTART_S: Final = 120
"""How long a restart may take."""


class Place(Protocol):
    """Where a run's jobs are."""

    @property
    def name(self) -> str:
        """For messages; no password is in it."""
        ...

    @property
    def schema(self) -> str | None:
        """The schema of all tables; None: the store has none."""
        ...

    def faults(self) -> tuple[Fault, ...]:
        """Which faults can befall it."""
        ...

    def url_for(self, gateway: int) -> str:
        """The URL for one gateway."""
        ...

    def cut(self, gateway: int) -> int:
        """Kill that gateway's connections; how many there were."""
        ...

    def lock(self) -> bool:
        """Keep everybody from renewing; False: the lock was not to be had."""
        ...

    def unlock(self) -> None:
        """Let them again."""
        ...

    def restart(self) -> None:
        """Restart the server; returns when that is done."""
        ...


@contextmanager
def open_place(
    url: str,
    folder: Path,
    *,
    schema: str | None,
    keep: bool,
    restart: Callable[[], None] | None = None,
) -> Iterator[tuple[Place, Store]]:
    """The place that a URL names, with a store for the driver; tidied up at the end.

    `sqlite:` is a file in `folder`. On Postgres all is in a schema that must not be there yet, and
    is dropped unless it is to be kept.
    """
    if is_postgres(url):
        need_psycopg()  # the driver is an extra: only who names a Postgres store needs it
        from unswept.adapters.chaos.server import on_server

        with on_server(url, schema, keep, restart) as found:
            yield found
        return
    if not url.startswith("sqlite:") or url == "sqlite::memory:":
        raise MisuseError(
            "--store must be sqlite:, sqlite:PATH or postgresql://USER@HOST/DATABASE, got"
            f" {without_password(url)}"
        )
    if schema is not None or restart is not None:
        raise MisuseError("a schema and a restart are for Postgres; a SQLite file has neither")
    path = str(folder / "jobs.db") if url == "sqlite:" else files.path_of(url)
    file = _File(path)
    with SqliteStore(path) as store:
        try:
            yield file, store
        finally:
            file.unlock()


def restart_by(line: str) -> Callable[[], None]:
    """A restart by a command of the shell's language, run without a shell."""
    words = shlex.split(line)
    if not words:
        raise MisuseError("--restart-command must be a command, got nothing")

    def restart() -> None:
        subprocess.run(words, check=True, timeout=RESTART_S, stdout=subprocess.DEVNULL)

    return restart


@define(eq=False)
class _File:
    """One SQLite file."""

    path: str
    schema: None = None
    _locker: sqlite3.Connection | None = None

    @property
    def name(self) -> str:
        """Its URL."""
        return f"sqlite:{self.path}"

    def faults(self) -> tuple[Fault, ...]:
        return tuple(fault for fault in Fault if fault not in (Fault.CUT, Fault.RESTART))

    def url_for(self, gateway: int) -> str:
        return self.name

    def cut(self, gateway: int) -> int:
        raise NotImplementedError("a file has no connections to kill")

    def lock(self) -> bool:
        locker = sqlite3.connect(self.path, isolation_level=None, timeout=0)
        try:
            patiently(lambda: locker.execute("BEGIN IMMEDIATE"), Wait(LOCK_WAIT_MS))
        except sqlite3.OperationalError:
            locker.close()
            return False
        self._locker = locker
        return True

    def unlock(self) -> None:
        if self._locker is not None:
            self._locker.close()  # which rolls back
            self._locker = None

    def restart(self) -> None:
        raise NotImplementedError("a file has no server")
