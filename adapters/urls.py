"""Stores are named by URL: `memory:`, `sqlite:PATH`, `sqlite::memory:`, `postgresql://...`."""

from __future__ import annotations

import itertools
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from attrs import field, frozen

from unswept.adapters.extras import need
from unswept.adapters.sqlite import SqliteStore, files
from unswept.core.commands import Store
from unswept.core.errors import MisuseError
from unswept.core.units import StoreMs

TEMPORARY: Final = "sqlite:"
"""A SQLite file of its own for each seed, in a temporary folder."""


def without_password(text: str) -> str:
    """A URL, or a message that quotes one, without whatever may be a password.

    One that is well-formed still leads to the store, if the password comes from elsewhere.
    """

    def only_user(found: re.Match[str]) -> str:
        credentials = re.fullmatch(r"([^:@/?]+)(:[^:@/?]*)?@", found[2])
        return f"{found[1]}...@" if credentials is None else f"{found[1]}{credentials[1]}@"

    text = re.sub(r"(ssl)?password=[^&]*&?", "", text)
    # Also where a slash was forgotten, or taken away with others as if the URL were a path.
    return re.sub(r"(://|\bpostgres(?:ql)?:/?(?!/))(.*@)", only_user, text)


@frozen
class SimulatedStore:
    """Opens the empty store under test that a URL names, for one seed, on the simulator's clock.

    `memory:` is the pure store alone. `sqlite:` takes a temporary file; `sqlite:PATH` makes the
    file PATH.SEED, or PATH.SEED-2 and so on where that exists, and leaves it to be looked at.
    `postgresql://...` makes a schema in that database, and drops it when the run is over.
    """

    url: str = field(repr=without_password)

    def __attrs_post_init__(self) -> None:
        """The kinds of store that can be simulated."""
        if is_postgres(self.url):
            check_store_url(self.url)
        elif self.url != "memory:" and not self.url.startswith("sqlite:"):
            raise MisuseError(
                "store must be memory:, sqlite:, sqlite:PATH, sqlite::memory: or"
                f" postgresql://..., got {without_password(self.url)}"
            )

    @contextmanager
    def __call__(self, clock: Callable[[], StoreMs], seed: int) -> Iterator[Store | None]:
        """The store for a seed, closed when the run is over."""
        if self.url == "memory:":
            yield None
        elif is_postgres(self.url):
            from unswept.adapters.postgres.simulated import simulated

            with simulated(self.url, clock, f"seed_{seed}") as store:
                yield store
        elif self.url == "sqlite::memory:":
            with SqliteStore(self.url, clock=clock) as store:
                yield store
        elif self.url == TEMPORARY:
            with tempfile.TemporaryDirectory(prefix="unswept-") as folder:
                yield from _on_file(Path(folder, "jobs.db"), clock)
        else:
            yield from _on_file(_free(f"{self.url.removeprefix('sqlite:')}.{seed}"), clock)


def reopened(url: str) -> str:
    """Where a store is opened anew for each try: a file of its own is for a run to be looked at."""
    is_path = url.startswith("sqlite:") and url != "sqlite::memory:"
    return TEMPORARY if is_path else url


def is_postgres(url: str) -> bool:
    """Does the URL name a Postgres server?"""
    return url.startswith(("postgresql://", "postgres://"))


def check_store_url(url: str) -> None:
    """Refuse, as the store would, a URL by which none can be opened; nothing is opened."""
    if is_postgres(url):
        need_psycopg()
        from unswept.adapters.postgres.settings import settings

        settings(url)
    elif url.startswith("sqlite:"):
        files.path_of(url)
    else:
        raise MisuseError(
            f"expected sqlite:PATH or postgresql://... as a store, got {without_password(url)}"
        )


def need_psycopg() -> None:
    """Refuse a Postgres store where its driver is not installed."""
    need("a store on Postgres needs psycopg and its pool", "postgres", "psycopg_pool")


def _free(name: str) -> Path:
    """The first name that is not taken: the simulator touches no file that is there."""
    names = itertools.chain((name,), (f"{name}-{number}" for number in itertools.count(2)))
    return next(path for path in map(Path, names) if not path.exists())


def _on_file(path: Path, clock: Callable[[], StoreMs]) -> Iterator[Store]:
    # A simulated run knows no power cut, so it need not wait for the disk at each commit.
    with SqliteStore(path, clock=clock, durability="normal") as store:
        yield store
