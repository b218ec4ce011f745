"""What differs between the databases, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol


class Dialect(Protocol):
    """How one database names tables, takes arrays and locks rows."""

    for_update: str
    """Behind a SELECT: waits for the rows' locks; empty where a writer has the whole store."""
    for_key_share: str
    """The same, for a reader of the row's epoch that heartbeats may pass."""
    for_renewal: str
    """The same, for a row that is to be renewed: an output of its owner may pass."""
    skip_locked: str
    """Behind one of these: rows that somebody has locked are passed over."""

    holds: str
    """A FROM item with the columns `hold_id` and `hold_epoch`: of the holds that `bind_holds`
    gives, those whose rows are free, locked in id order."""
    with_holds: str
    """What stands before a statement that uses `holds`; empty where nothing must."""
    holds_now: str
    """The store time in such a statement, read once all locks are held."""
    ids: str
    """A subselect of the ids that `bind_ids` gives."""
    offered: str
    """Are all members of `labels`, a sorted JSON array, among those of the array `:offered`?"""

    probe: str | None
    """A statement that gives a mark: whoever has taken an event's number by now began to write
    before it. None where numbers leave no gap."""
    settled: str
    """Is everybody over who began to write before the mark `:probe`?"""

    def table(self, name: str) -> str:
        """The full name of one of the store's tables."""
        ...

    def text(self, sql: str) -> str:
        """A statement with `:name` parameters, in the driver's own style."""
        ...

    def bind_holds(self, epochs: Mapping[str, int]) -> dict[str, Any]:
        """Job ids and their epochs, as the parameters of `holds`."""
        ...

    def bind_ids(self, ids: Iterable[str]) -> dict[str, Any]:
        """Ids as the parameters of `ids`."""
        ...

    def lock_key(self, keys: str) -> str:
        """The statement that locks the row of (:principal, :request_key) in the table `keys`
        against other admits and gives its job_id; no row, NULL or an absent job mean that it is
        free."""
        ...

    def free_key(self, keys: str) -> str | None:
        """The statement that takes away a row which `lock_key` made and nobody used; None where it
        makes none."""
        ...

    def find_locked(self, jobs: str) -> str | None:
        """The statement that gives those of `ids` whose rows somebody has locked against renewal,
        changing nothing; None where rows have no locks of their own."""
        ...
