"""What differs between the databases, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol


class Dialect(Protocol):
    """How one database names tables, takes arrays and locks rows."""

    for_update: str
    """Behind a SELECT: waits for the rows' locks; empty where a writer has the whole store."""
    for_key_share: str
    """The same, for a reader of the row's epoch that heartbeats may pass."""
    skip_locked: str
    """Behind a SELECT: locks the rows that are free, and names no other."""

    holds: str
    """A FROM item with the columns `hold_id` and `hold_epoch`, of the parameters that
    `bind_holds` gives."""
    ids: str
    """A subselect of the ids that `bind_ids` gives."""

    def table(self, name: str) -> str:
        """The full name of one of the store's tables."""
        ...

    def text(self, sql: str) -> str:
        """A statement with `:name` parameters, in the driver's own style."""
        ...

    def bind_holds(self, holds: Iterable[tuple[str, int]]) -> dict[str, Any]:
        """Pairs of distinct job ids and their epochs, as the parameters of `holds`."""
        ...

    def bind_ids(self, ids: Iterable[str]) -> dict[str, Any]:
        """Ids as the parameters of `ids`."""
        ...

    def lock_key(self, keys: str) -> str:
        """The statement that locks the row of (:principal, :request_key) in the table `keys`
        against other admits and gives its job_id; no row or an absent job mean that it is free."""
        ...

    def find_locked(self, jobs: str) -> str | None:
        """The statement that gives those of `ids` whose rows somebody has locked, changing
        nothing; None where rows have no locks of their own."""
        ...
