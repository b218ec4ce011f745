"""The history in DuckDB: each job's events in their order, each beside the one before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import duckdb

from unswept.adapters.audit.tables import SOURCES, TEXT, Source
from unswept.adapters.duck import in_memory
from unswept.core.lease import MOVES, TERMINAL, Kind, Status

_LET_GO: Final = tuple(
    kind for kind, move in MOVES.items() if move.epoch_step == 1 and kind is not Kind.CLAIM
)
"""After these a job is nobody's."""


def connect(folder: Path) -> duckdb.DuckDBPyConnection:
    """A DuckDB of the audit's own: what does not fit into memory goes to the folder, and nothing is
    fetched from anywhere."""
    return in_memory(
        {
            "temp_directory": str(folder),
            "autoinstall_known_extensions": "false",
            "preserve_insertion_order": "false",
        }
    )


def load(connection: duckdb.DuckDBPyConnection, copied: Mapping[str, Path]) -> None:
    """Tables of CSV files without headers, as the places write them."""
    for name, file in copied.items():
        source = SOURCES[name]
        connection.execute(
            f"CREATE TABLE {name} AS SELECT {_listed(source)} FROM read_csv(?, columns = ?,"
            " header = false, delim = ',', quote = '\"', escape = '\"', auto_detect = false)",
            [str(file), source.types],
        )


def _listed(source: Source) -> str:
    return ", ".join(
        f"nullif({column}, '') AS {column}" if kind == TEXT else f'"{column}"'
        for column, kind in source.types.items()
    )


def arrange(connection: duckdb.DuckDBPyConnection) -> None:
    """Make what the checks read, of the table or view `events`:

    * `moves`: every event but stale results, with the one before it of the same job (`p_...`), the
      number of the next, and who held the job before (`holder`);
    * `asked`: the first cancel request of each job that has one;
    * `table_of_moves`: the core's status table;
    * `terminal(status)`.
    """
    for name, members in (("kinds", [*Kind]), ("statuses", [*Status])):
        connection.execute(f"CREATE TYPE {name} AS ENUM ({_words(members)})")
    connection.execute(f"CREATE MACRO terminal(status) AS status IN ({_words(TERMINAL)})")
    _put_table_of_moves(connection)
    connection.execute(_MOVES)
    connection.execute(_ASKED)


def _put_table_of_moves(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "CREATE TABLE table_of_moves"
        " (kind kinds, leaves statuses[], reaches statuses[], epoch_step BIGINT)"
    )
    connection.executemany(
        "INSERT INTO table_of_moves VALUES (?, ?, ?, ?)",
        [
            (
                kind.value,
                [status.value for status in move.leaves],
                [status.value for status in move.reaches],
                move.epoch_step,
            )
            for kind, move in MOVES.items()
        ],
    )


def _words(members: Iterable[str]) -> str:
    return ", ".join(f"'{member}'" for member in sorted(members))


_MOVES: Final = f"""
CREATE TABLE moves AS
SELECT
    *,
    lag(seq) OVER job AS p_seq,
    lag(kind) OVER job AS p_kind,
    lag(status) OVER job AS p_status,
    lag(epoch) OVER job AS p_epoch,
    lag(beats) OVER job AS p_beats,
    lag(CASE WHEN kind NOT IN ({_words(_LET_GO)}) THEN owner END) OVER job AS holder,
    lead(seq) OVER job AS n_seq
FROM (
    SELECT
        seq, job_id, epoch, try_cast(kind AS kinds) AS kind, "at" AS at_ms,
        try_cast(status AS statuses) AS status, owner, actor, beats, deadline, first_seen_at, cause
    FROM events
    WHERE kind <> '{Kind.STALE_RESULT}'
)
WINDOW job AS (PARTITION BY job_id ORDER BY seq)
"""

_ASKED: Final = f"""
CREATE TABLE asked AS
SELECT job_id, min(seq) AS seq, arg_min(at_ms, seq) AS at_ms
FROM moves WHERE kind = '{Kind.REQUEST_CANCEL}' GROUP BY job_id
"""
