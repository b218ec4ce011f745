"""Exported events: written as Parquet, CSV or JSON Lines, and read again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import duckdb

from unswept.adapters.audit.tables import EVENTS
from unswept.core.errors import MisuseError, NotAStoreError, StoreUnavailableError

_READ: Final[Mapping[str, str]] = MappingProxyType(
    {
        ".parquet": "read_parquet(?)",
        ".csv": "read_csv(?, header = true, all_varchar = true)",
        ".jsonl": "read_json(?, format = 'newline_delimited')",
    }
)
_WRITE: Final[Mapping[str, str]] = MappingProxyType(
    {".parquet": "FORMAT parquet", ".csv": "FORMAT csv, HEADER", ".jsonl": "FORMAT json"}
)


def is_file_of_events(place: str) -> bool:
    """Does the name end as that of an export?"""
    return Path(place).suffix in _READ


def load(connection: duckdb.DuckDBPyConnection, place: str) -> None:
    """The file as `events`; raises `StoreError` where it cannot be read as such."""
    if not Path(place).is_file():
        raise StoreUnavailableError(f"{place}: expected a file of events, found no file")
    kinds = EVENTS.types
    columns = ", ".join(f'CAST("{name}" AS {kind}) AS "{name}"' for name, kind in kinds.items())
    # A Parquet file is read where it lies; the others are slow to read twice.
    thing = "VIEW" if Path(place).suffix == ".parquet" else "TABLE"
    quoted = "'" + place.replace("'", "''") + "'"
    source = _READ[Path(place).suffix].replace("?", quoted)
    try:
        connection.execute(f"CREATE {thing} events AS SELECT {columns} FROM {source}")
    except duckdb.Error as error:
        raise NotAStoreError(
            f"{place}: expected exported events with the columns {', '.join(kinds)}; "
            f"{str(error).splitlines()[0]}"
        ) from None


def check_target(target: str) -> None:
    """Refuse a name that says no format, or that is taken."""
    if Path(target).suffix not in _WRITE:
        raise MisuseError(f"--export must end in {', '.join(_WRITE)}, got {target}")
    if Path(target).exists():
        raise MisuseError(f"--export must name a file that is not there yet, got {target}")


def export(connection: duckdb.DuckDBPyConnection, target: str) -> None:
    """Write `events` to this file, in the order of their numbers."""
    quoted = "'" + target.replace("'", "''") + "'"
    try:
        connection.execute(
            f"COPY (FROM events ORDER BY seq) TO {quoted} ({_WRITE[Path(target).suffix]})"
        )
    except duckdb.Error as error:
        raise StoreUnavailableError(
            f"{target}: the events could not be written; {str(error).splitlines()[0]}"
        ) from None
