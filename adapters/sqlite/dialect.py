"""SQLite's dialect: a writer has the whole file, so no row is ever locked; arrays are JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

PREFIX = "unswept_"
"""Before each table's name, since an application may keep tables of its own in the same file."""


class SqliteDialect:
    """See `unswept.adapters.sql.dialect.Dialect`."""

    for_update = ""
    for_key_share = ""
    for_renewal = ""
    skip_locked = ""

    # One JSON object from ids to epochs: its keys and values come out of `json_each` as they are,
    # which takes half the time of an array of pairs, whose members are parsed once more.
    holds = "(SELECT key AS hold_id, value AS hold_epoch FROM json_each(:holds))"
    with_holds = ""
    holds_now = ":now"
    ids = "SELECT value FROM json_each(:ids)"
    offered = (
        "NOT EXISTS (SELECT 1 FROM json_each(labels) AS required"
        " WHERE required.value NOT IN (SELECT value FROM json_each(:offered)))"
    )
    probe: str | None = None
    settled = "1"

    def table(self, name: str) -> str:
        """The table's name with the prefix."""
        return PREFIX + name

    def text(self, sql: str) -> str:
        """`:name` is SQLite's own style."""
        return sql

    def bind_holds(self, epochs: Mapping[str, int]) -> dict[str, Any]:
        """A JSON object. Commands have refused what JSON would blur: a NUL in an id, at which
        SQLite cuts the text, and epochs like 1.0, true or "1"."""
        return {"holds": json.dumps(epochs, ensure_ascii=False)}

    def bind_ids(self, ids: Iterable[str]) -> dict[str, Any]:
        """A JSON array."""
        return {"ids": json.dumps(list(ids), ensure_ascii=False)}

    def lock_key(self, keys: str) -> str:
        """The write lock serialises admits; the row need only be read."""
        return (
            f"SELECT job_id FROM {keys} WHERE principal = :principal AND request_key = :request_key"
        )

    def free_key(self, keys: str) -> str | None:
        """Reading a key makes no row."""
        return None

    def find_locked(self, jobs: str) -> str | None:
        """No row has a lock of its own."""
        return None
