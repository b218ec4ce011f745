"""Traces of simulated runs: written as JSON Lines, kept as Parquet, asked and judged in SQL."""

from unswept.adapters.extras import need


def need_traces() -> None:
    """Refuse to write or read traces where what that takes is not installed."""
    need("traces need cattrs and duckdb", "simulate", "cattrs", "duckdb")
