"""One batch in one round trip: all its statements leave together, before any answer is awaited.

psycopg's own pipelines send each statement for itself and look at the socket around each, which
costs a client with many threads more than the server's work. What is used here is the layer below
them, documented as `psycopg.pq`.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from functools import lru_cache
from typing import Any, Final, TypeAlias

import psycopg
from psycopg import abc
from psycopg.adapt import AdaptersMap, PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult
from psycopg.types.numeric import Int8Dumper
from psycopg.waiting import Ready, Wait

from unswept.adapters.postgres.session import Batch, Rows

_AnyConnection: TypeAlias = psycopg.Connection[Any] | psycopg.AsyncConnection[Any]

Exchange: TypeAlias = Generator[Wait, Ready | int, list[Rows]]
"""What `wait` of a connection carries out, blocking or not."""


class _Adapting:
    """How values go out and come back, whatever a caller's connection was taught: psycopg's own
    way, but for whole numbers. They go out as the columns' bigint, whatever their size: psycopg
    would choose the smallest type, and the sum of two small ones can overflow it."""

    adapters: Final = AdaptersMap(psycopg.adapters)

    def __init__(self, connection: _AnyConnection) -> None:
        self.connection = connection


_Adapting.adapters.register_dumper(int, Int8Dumper)


def exchange(connection: _AnyConnection, batch: Batch) -> Exchange:
    """The rows of each statement of the batch.

    Raises the server's error for the first that failed, behind which it carried out no other; the
    connection can go on. Where the generator is left in between, it cannot: it is in pipeline mode.
    """
    pgconn = connection.pgconn
    transformer = Transformer(_Adapting(connection))
    prepared = [_prepared(transformer, sql, params) for sql, params in batch.requests]
    pgconn.enter_pipeline_mode()
    for statement, values, types, formats in prepared:
        pgconn.send_query_params(statement, values, types, formats)
    pgconn.pipeline_sync()
    results = yield from _results(pgconn)
    pgconn.exit_pipeline_mode()
    for result in results:
        if result.status == ExecStatus.FATAL_ERROR:
            raise error_from_result(result)
    return [_rows(transformer, result) for result in results]


def _results(pgconn: PGconn) -> Generator[Wait, Ready | int, list[PGresult]]:
    """One for each statement. What is sent and what has come are looked at in turn: a server that
    cannot get rid of its answers reads no more."""
    results: list[PGresult] = []
    unsent = pgconn.flush()
    while True:
        yield Wait.RW if unsent else Wait.R
        if unsent:
            unsent = pgconn.flush()
        pgconn.consume_input()
        while not pgconn.is_busy():
            result = pgconn.get_result()
            if result is None:  # the end of one statement's results
                continue
            if result.status == ExecStatus.PIPELINE_SYNC:
                return results
            results.append(result)


_Prepared: TypeAlias = tuple[bytes, Any, Any, Any]


def _prepared(transformer: abc.Transformer, sql: str, params: Any) -> _Prepared:
    if params is None:
        return sql.encode(), None, None, None
    statement, names = _positional(sql)
    values = transformer.dump_sequence(
        [params[name] for name in names], [PyFormat.AUTO] * len(names)
    )
    return statement, values, transformer.types, transformer.formats


_NAMED: Final = re.compile(r"%\((\w+)\)s|%%")


@lru_cache(maxsize=1024)
def _positional(sql: str) -> tuple[bytes, tuple[str, ...]]:
    """The statement as the server knows it, and the names of its $1, $2 and so on."""
    names: dict[str, int] = {}

    def numbered(found: re.Match[str]) -> str:
        name = found[1]
        return "%" if name is None else f"${names.setdefault(name, len(names) + 1)}"

    return _NAMED.sub(numbered, sql).encode(), tuple(names)


def _rows(transformer: abc.Transformer, result: PGresult) -> Rows:
    if not result.nfields:
        return []
    transformer.set_pgresult(result)
    return transformer.load_rows(0, result.ntuples, tuple)
