"""Opens recorded runs in a DuckDB of their own, which reads nothing else and writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import duckdb
from attrs import frozen

from unswept.adapters.duck import in_memory
from unswept.adapters.traces.relations import Relation
from unswept.adapters.traces.tables import FIRST_LINES, INCOMPLETE_LINES, READ_LINES, TABLES
from unswept.adapters.traces.views import VIEWS
from unswept.core.errors import MisuseError
from unswept.simulations.trace import FORMAT

_READS: Final = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)


@frozen
class Rows:
    """What a query answered."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


class TraceStore:
    """One recorded run, or a folder of them, to be asked in SQL."""

    def __init__(self, run: Path) -> None:
        """Opens a trace (.jsonl), or a folder of traces: their Parquet, where that was made."""
        self._connection = in_memory()
        _load(self._connection, run)
        for view in VIEWS:
            self._connection.execute(f"CREATE VIEW {view.name} AS {view.sql}")
        for setting in ("enable_external_access = false", "lock_configuration = true"):
            self._connection.execute(f"SET {setting}")

    def close(self) -> None:
        """Let go of the database."""
        self._connection.close()

    def __enter__(self) -> TraceStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def query(self, sql: str) -> Rows:
        """The answer to one SELECT; anything else is refused."""
        try:
            statements = self._connection.extract_statements(sql)
            if len(statements) != 1 or statements[0].type not in _READS:
                raise MisuseError("a query is one SELECT: traces are only read")
            answer = self._connection.execute(statements[0])
            columns = tuple(column[0] for column in answer.description or ())
            return Rows(columns, tuple(answer.fetchall()))
        except duckdb.Error as error:
            raise MisuseError(f"{error}\n{_names(VIEWS)}") from None

    def prepare(self, statements: Iterable[str]) -> None:
        """Make what queries of one's own build on, beside the traces and in memory only."""
        for statement in statements:
            self._connection.execute(statement)

    def relations(self) -> tuple[Relation, ...]:
        """All that a query may name."""
        return VIEWS


def load_files(connection: duckdb.DuckDBPyConnection, files: Iterable[Path]) -> None:
    """Sort the lines of traces into the tables of schema `trace`."""
    names = sorted(str(file) for file in files)
    try:
        connection.execute(READ_LINES, {"files": names})
    except duckdb.Error as error:
        raise MisuseError(f"this is no trace: {error}") from None
    _check(connection, names)
    connection.execute("CREATE SCHEMA trace")
    for table in TABLES:
        connection.execute(f"CREATE TABLE trace.{table.name} AS {table.sql}")
    connection.execute("DROP TABLE lines")


def parquet_files(folder: Path) -> dict[str, Path]:
    """Where each table of a folder's traces is kept."""
    return {table.name: folder / f"{table.name}.parquet" for table in TABLES}


def _load(connection: duckdb.DuckDBPyConnection, run: Path) -> None:
    if run.is_file():
        load_files(connection, [run])
        return
    if not run.is_dir():
        raise MisuseError(f"{run} is not there: expected a trace (.jsonl), or a folder of traces")
    tables = parquet_files(run)
    if all(file.exists() for file in tables.values()):
        connection.execute("SET allowed_directories = [$folder]", {"folder": str(run.resolve())})
        connection.execute("CREATE SCHEMA trace")
        for name, file in tables.items():
            quoted = str(file.resolve()).replace("'", "''")
            connection.execute(
                f"CREATE VIEW trace.{name} AS SELECT * FROM read_parquet('{quoted}')"
            )
        return
    files = [file for file in run.glob("*.jsonl") if file.is_file()]
    if not files:
        raise MisuseError(f"{run} has no trace: expected files that end in .jsonl")
    load_files(connection, files)


def _check(connection: duckdb.DuckDBPyConnection, files: Iterable[str]) -> None:
    first_lines = connection.execute(FIRST_LINES).fetchall()
    found: dict[str, Sequence[Any]] = {file: told for file, *told in first_lines}
    seeds: dict[int, str] = {}
    for file in files:
        # A file without a line is none of those that were found.
        type_, format_, seed, version = found.get(file, (None, None, None, None))
        if type_ != "run":
            raise MisuseError(f"{file} is no trace: its first line is not of type run")
        if format_ != FORMAT:
            raise MisuseError(
                f"{file} has format {format_}, and this version reads {FORMAT}: "
                f"it was written by unswept {version}"
            )
        if seed in seeds:
            raise MisuseError(f"{seeds[seed]} and {file} are both of seed {seed}: ask one of them")
        seeds[seed] = file
    for file, line, type_, missing in connection.execute(INCOMPLETE_LINES).fetchall():
        of_type = "" if type_ is None else f" of type {type_}"
        raise MisuseError(f"{file} is no whole trace: line {line}{of_type} has no {missing!r}")


def _names(views: Iterable[Relation]) -> str:
    return f"There are: {', '.join(view.name for view in views)}"
