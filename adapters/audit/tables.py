"""Which columns of a store an audit reads: no payload, no result and no output is ever loaded."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from attrs import frozen

from unswept.adapters.sql.rows import EVENT_COLUMNS

NUMBER: Final = "BIGINT"
TEXT: Final = "VARCHAR"

_TEXTS: Final = frozenset(
    {
        "actor", "cause", "consumer", "first_owner", "id", "job_id", "joined_to", "kind", "name",
        "on_orphan", "owner", "own_principal", "own_request_key",
        "principal", "request_key", "requeue", "status",
    }
)  # fmt: skip


@frozen
class Source:
    """One table as the audit sees it."""

    name: str
    columns: tuple[str, ...]
    select: str
    """`{}` is what stands before a table's name: a prefix, or a schema."""

    @property
    def types(self) -> dict[str, str]:
        """What DuckDB is told of each column."""
        return {column: type_of(column) for column in self.columns}


def type_of(column: str) -> str:
    """A number, or a text."""
    return TEXT if column in _TEXTS else NUMBER


def _plain(name: str, *columns: str) -> Source:
    return Source(name, columns, f"SELECT {', '.join(columns)} FROM {{}}{name}")


EVENTS: Final = Source(
    "events",
    ("seq", *EVENT_COLUMNS),
    f"SELECT {', '.join(('seq', *EVENT_COLUMNS))} FROM {{}}events",
)

_SOURCES: Final = (
    EVENTS,
    _plain(
        "jobs",
        *("id", "status", "owner", "epoch", "beats", "deadline", "cancel_requested_at"),
        *("delayed_at", "ttl_ms", "confirm_ms", "requeue", "attempts", "max_attempts"),
        *("on_orphan", "claim_no", "finished_at", "orphaned_at"),
    ),
    _plain("job_ids", "id", "first_owner", "joined_to", "born_at"),
    # An index has it all, so that no payload is passed over.
    _plain("requests", "job_id"),
    _plain("results", "job_id"),
    Source("output", ("job_id", "epoch"), "SELECT DISTINCT job_id, epoch FROM {}output"),
    # Only the requests that a key names are read: behind a payload a row is slow to read.
    Source(
        "dedup_keys",
        ("job_id", "principal", "request_key", "own_principal", "own_request_key"),
        "SELECT k.job_id, k.principal, k.request_key, r.principal, r.request_key"
        " FROM {0}dedup_keys AS k JOIN {0}requests AS r ON r.job_id = k.job_id",
    ),
    _plain("instances", "id", "claim_no"),
    _plain("consumers", "name", "position"),
    _plain("dead_letters", "consumer", "number"),
)

SOURCES: Final[Mapping[str, Source]] = MappingProxyType(
    {source.name: source for source in _SOURCES}
)
"""By the name under which the audit's SQL knows them."""
