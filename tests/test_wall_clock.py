"""L16 is a law about the source, and this test is its judge: it reads every file of the library."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
WALL = {
    "time": {"time", "time_ns", "localtime", "gmtime", "ctime", "strftime", "CLOCK_REALTIME"},
    "datetime": {"now", "utcnow", "today", "fromtimestamp"},
    "date": {"today", "fromtimestamp"},
}
WALL_IN_SQL = re.compile(
    r"\b(clock_timestamp|statement_timestamp|transaction_timestamp|now|julianday|unixepoch|datetime"
    r"|strftime)\s*\(|\bCURRENT_(TIME|DATE|TIMESTAMP)\b|\bLOCALTIME",
    re.IGNORECASE,
)
ALLOWED = {
    "adapters/sqlite/store.py: time.time_ns",  # the store clock of SQLite
    "adapters/postgres/migrations/0001_first.sql: clock_timestamp",  # and that of Postgres
    "adapters/cli/keep_record.py: datetime.now",  # the date of a record, which decides nothing
}


def reads(tree: ast.Module) -> Iterator[str]:
    """What reads a wall clock, by attribute or by an import of the name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, (ast.Name, ast.Attribute)):
            of = node.value.id if isinstance(node.value, ast.Name) else node.value.attr
            if node.attr in WALL.get(of, ()):
                yield f"{of}.{node.attr}"
        elif isinstance(node, ast.ImportFrom) and node.module == "time":
            yield from (f"time.{each.name}" for each in node.names if each.name in WALL["time"])


def reads_in_sql(text: str) -> Iterator[str]:
    """The same in SQL, whose comments and own `now_ms` do not count."""
    code = re.sub(r"--[^\n]*", "", text)
    for found in WALL_IN_SQL.finditer(code):
        yield (found[1] or found[0]).lower()


def all_reads() -> set[str]:
    """Every read in the library, as `file: what`."""
    found = set()
    for folder in ("core", "spec", "simulations", "adapters"):
        for file in (ROOT / folder).rglob("*"):
            name = file.relative_to(ROOT).as_posix()
            if file.suffix == ".py":
                found |= {f"{name}: {what}" for what in reads(ast.parse(file.read_text("utf-8")))}
            elif file.suffix == ".sql":
                found |= {f"{name}: {what}" for what in reads_in_sql(file.read_text("utf-8"))}
    for name in ("statements", "queries", "scripts", "rows", "births", "sweeps", "holds"):
        path = f"adapters/sql/{name}.py"
        strings = (
            node.value
            for node in ast.walk(ast.parse((ROOT / path).read_text("utf-8")))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        )
        in_sql = (text for text in strings if re.search(r"\b(SELECT|UPDATE|INSERT|SET)\b", text))
        found |= {f"{path}: {what}" for text in in_sql for what in reads_in_sql(text)}
    return found


def test_no_decision_reads_a_wall_clock() -> None:
    """But for each store's one function; a new reader is noticed, and so is one that is gone.
    (L16)"""
    assert all_reads() == ALLOWED


@pytest.mark.parametrize(
    "planted",
    [
        "import time\nnow = time.time()",
        "import time\nnow = time.clock_gettime(time.CLOCK_REALTIME)",
        "from time import time_ns",
        "from datetime import datetime\nnow = datetime.now()",
        "import datetime\nnow = datetime.datetime.now()",
        "from datetime import date\ntoday = date.today()",
    ],
)
def test_a_wall_clock_is_found(planted: str) -> None:
    """However it is read. (L16)"""
    assert len([*reads(ast.parse(planted))]) == 1


@pytest.mark.parametrize(
    "planted", ["deadline < now()", "SET at = CURRENT_TIMESTAMP", "x = unixepoch ('now')"]
)
def test_a_wall_clock_in_sql_is_found(planted: str) -> None:
    """Also that of a transaction's start, which is an old one. (L16)"""
    assert [*reads_in_sql(planted)]
    assert not [*reads_in_sql(f"-- {planted}\nSELECT unswept.now_ms()")]
