"""A DuckDB in memory that leaves the terminal to the command it works for."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb


def in_memory(config: Mapping[str, str] | None = None) -> duckdb.DuckDBPyConnection:
    """A database of one's own. By default DuckDB draws a bar on standard output whenever it works
    for two seconds, also where that is no terminal and somebody reads JSON from it."""
    connection = duckdb.connect(config=dict(config or {}))
    connection.execute("SET enable_progress_bar_print = false")
    return connection
