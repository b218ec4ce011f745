"""Postgres's dialect: rows have locks of their own, arrays are arrays, the clock is a function."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from unswept.core.checks import shown
from unswept.core.errors import MisuseError

DEFAULT_SCHEMA: Final = "unswept"


class PostgresDialect:
    """See `unswept.adapters.sql.dialect.Dialect`."""

    for_update = "FOR UPDATE"
    # The epoch is part of a key: what moves it waits for these, a renewal does not.
    for_key_share = "FOR KEY SHARE"
    for_renewal = "FOR NO KEY UPDATE"
    skip_locked = "SKIP LOCKED"

    holds = "free_holds, stamp"
    holds_now = "stamped_at"
    ids = "SELECT unnest(:ids::text[])"
    offered = "labels::jsonb <@ :offered::jsonb"
    # Its own transaction number, which is greater than any that has been handed out before.
    probe: str | None = "SELECT pg_current_xact_id()::text"
    settled = "pg_snapshot_xmin(pg_current_snapshot()) > :probe::xid8"

    def __init__(self, schema: str = DEFAULT_SCHEMA) -> None:
        """The dialect for the tables of one schema."""
        if not re.fullmatch(r"(?!pg_)[a-z_][a-z0-9_]{0,62}", schema):
            raise MisuseError(
                "schema must be 1 to 63 small letters, digits and underscores, beginning with no"
                f" digit and not with pg_, got {shown(schema)}"
            )
        self.schema = schema
        self.now = f"{schema}.now_ms()"
        """The store clock."""
        # One statement that never waits, so that no hold spoils the others, and that reads the
        # clock only when all locks are held: the count must see the last of them first.
        self.with_holds = (
            "WITH free_holds AS MATERIALIZED ("
            " SELECT id AS hold_id, hold_epoch"
            " FROM unnest(:hold_ids::text[], :hold_epochs::bigint[]) AS asked (hold_id, hold_epoch)"
            f" JOIN {self.table('jobs')} AS job ON job.id = asked.hold_id"
            f" ORDER BY id {self.for_renewal} OF job {self.skip_locked}"
            f"), stamp AS MATERIALIZED ("
            f" SELECT count(*) AS free, {self.now} AS stamped_at FROM free_holds)"
        )

    def table(self, name: str) -> str:
        """The table's name within the schema."""
        return f"{self.schema}.{name}"

    def text(self, sql: str) -> str:
        """Psycopg's style is `%(name)s`; a `::` is a cast."""
        return re.sub(r"(?<!:):([a-z_]+)", r"%(\1)s", sql)

    def bind_holds(self, epochs: Mapping[str, int]) -> dict[str, Any]:
        """Two arrays."""
        return {"hold_ids": list(epochs), "hold_epochs": list(epochs.values())}

    def bind_ids(self, ids: Iterable[str]) -> dict[str, Any]:
        """An array."""
        return {"ids": list(ids)}

    def lock_key(self, keys: str) -> str:
        """The row is made where there is none, so that there is something to lock."""
        return (
            f"INSERT INTO {keys} AS known (principal, request_key, admitted_at)"
            f" VALUES (:principal, :request_key, 0)"
            f" ON CONFLICT (principal, request_key) DO UPDATE SET job_id = known.job_id"
            f" RETURNING job_id"
        )

    def free_key(self, keys: str) -> str | None:
        """Only a row that names no job was made by `lock_key`."""
        return (
            f"DELETE FROM {keys} WHERE principal = :principal AND request_key = :request_key"
            f" AND job_id IS NULL"
        )

    def find_locked(self, jobs: str) -> str | None:
        """Whom SKIP LOCKED passes over although it is there."""
        return (
            f"WITH free AS MATERIALIZED (SELECT id AS free_id FROM {jobs}"
            f" WHERE id IN ({self.ids}) ORDER BY id {self.for_renewal} {self.skip_locked})"
            f" SELECT id FROM {jobs} WHERE id IN ({self.ids})"
            f" AND id NOT IN (SELECT free_id FROM free) ORDER BY id"
        )
