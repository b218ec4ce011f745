"""Traces of simulated runs: written as JSON Lines, kept as Parquet, asked and judged in SQL."""

from unswept.core.errors import MisuseError


def need_traces() -> None:
    """Refuse to write or read traces where what that takes is not installed."""
    try:
        import cattrs  # noqa: F401
        import duckdb  # noqa: F401
    except ImportError as error:
        raise MisuseError(
            f"traces need cattrs and duckdb: pip install 'unswept[simulate]' ({error})"
        ) from None
