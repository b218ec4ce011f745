"""A store as a reader has it: it is asked, and neither made, migrated, set right nor written to."""

from __future__ import annotations

from typing import Protocol, TypeVar

from unswept.adapters.sql.steps import Row
from unswept.core.commands import Command

R = TypeVar("R")


class Look(Protocol):
    """One connection, for one thread."""

    @property
    def where(self) -> str:
        """The store for messages; no password is in it."""
        ...

    def version(self) -> int:
        """The schema version that is there, if it is the newest and whole; `StoreError` if not."""
        ...

    def execute(self, command: Command[R]) -> R:
        """The reply to a command that reads; `MisuseError` for one that writes."""
        ...

    def rows(self, sql: str) -> list[Row]:
        """The rows of a SELECT; `{0}` stands before the name of each of the store's tables."""
        ...

    def write_lock_ms(self, most_ms: int) -> float:
        """How long it takes to get the lock that every renewal needs, which is given back at once;
        `StoreError` where it is not to be had within `most_ms`."""
        ...
