"""The schema: malformed rows are refused, first opens may meet, and no query walks what is over."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.sqlite.helpers import environment
from unswept.adapters.sql.migrations import Migration, load
from unswept.adapters.sql.queries import Queries
from unswept.adapters.sql.rows import JOB_COLUMNS
from unswept.adapters.sqlite import SqliteStore, schema_sql
from unswept.adapters.sqlite import schema as schema_module
from unswept.adapters.sqlite.dialect import SqliteDialect
from unswept.core.errors import StoreError, StoreVersionError
from unswept.core.lease import Kind, Status
from unswept.core.world import Table

Q = Queries(SqliteDialect())


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    made = sqlite3.connect(":memory:", isolation_level=None)
    made.executescript(schema_sql())
    yield made
    made.close()


# Malformed rows ---------------------------------------------------------------------------------

QUEUED = {
    "id": "j",
    "status": "queued",
    "epoch": 0,
    "beats": 0,
    "requeue": "never",
    "transport": "process",
    "admitted_at": 1,
}
OWNED = {
    **QUEUED,
    "status": "running",
    "owner": "a",
    "epoch": 1,
    "deadline": 9,
    "ttl_ms": 5,
    "confirm_ms": 5,
}
ORPHANED = {**OWNED, "status": "orphaned", "deadline": None, "orphaned_at": 8}
ENDED = {**OWNED, "status": "completed", "deadline": None, "finished_at": 8}


def insert(database: sqlite3.Connection, row: dict[str, Any]) -> None:
    names, marks = ", ".join(row), ", ".join(f":{name}" for name in row)
    database.execute(f"INSERT INTO unswept_jobs ({names}) VALUES ({marks})", row)


@pytest.mark.parametrize("row", [QUEUED, OWNED, ORPHANED, ENDED])
def test_a_well_formed_row_is_taken(database: sqlite3.Connection, row: dict[str, Any]) -> None:
    """One of each kind, so that the refusals below are for the one thing that is wrong."""
    insert(database, row)


@pytest.mark.parametrize(
    ("row", "wrong"),
    [
        (QUEUED, {"id": ""}),
        (QUEUED, {"id": None}),
        (QUEUED, {"id": "x" * 201}),
        (QUEUED, {"status": "paused"}),
        (QUEUED, {"status": None}),
        (QUEUED, {"requeue": "maybe"}),
        (QUEUED, {"transport": "pigeon"}),
        (QUEUED, {"on_orphan": "ignore"}),
        (QUEUED, {"epoch": -1}),
        (QUEUED, {"beats": -1}),
        (QUEUED, {"attempts": -1}),
        (QUEUED, {"max_attempts": 0}),
        (QUEUED, {"deadline": 9}),
        (QUEUED, {"owner": "a", "deadline": 9, "ttl_ms": 5, "confirm_ms": 5}),
        (QUEUED, {"ttl_ms": 5}),
        (QUEUED, {"confirm_ms": 5}),
        (QUEUED, {"delayed_at": 5}),
        (QUEUED, {"status": "running"}),
        (QUEUED, {"status": "orphaned", "orphaned_at": 8}),
        (QUEUED, {"status": "expired"}),
        (QUEUED, {"finished_at": 8}),
        (QUEUED, {"epoch": "one"}),
        (QUEUED, {"epoch": 1.5}),
        (OWNED, {"deadline": None}),
        (OWNED, {"deadline": "5 minutes"}),
        (OWNED, {"ttl_ms": None}),
        (OWNED, {"confirm_ms": None}),
        (OWNED, {"owner": None}),
        (OWNED, {"epoch": 0}),
        (OWNED, {"pid": 5}),
        (OWNED, {"pid": 5, "process_start": 6}),
        (OWNED, {"boot_id": "b"}),
        (ORPHANED, {"deadline": 9}),
        (ORPHANED, {"orphaned_at": None}),
        (ORPHANED, {"finished_at": 9}),
        (ENDED, {"deadline": 9}),
        (ENDED, {"finished_at": None}),
    ],
)
def test_a_malformed_row_is_refused(
    database: sqlite3.Connection, row: dict[str, Any], wrong: dict[str, Any]
) -> None:
    """The database keeps the shape of a lease, whoever writes."""
    with pytest.raises(sqlite3.IntegrityError):
        insert(database, {**row, **wrong})


def test_an_event_comes_once(database: sqlite3.Connection) -> None:
    """(job, epoch, kind) is unique; its number leaves no gap where a transaction was undone."""
    event = (
        "INSERT INTO unswept_events (job_id, epoch, kind, at, status, beats, forced)"
        " VALUES (?, 1, 'start', 5, 'running', 1, 0)"
    )
    database.execute(event, ("j1",))
    with pytest.raises(sqlite3.IntegrityError):
        database.execute(event, ("j1",))
    database.execute("BEGIN")
    database.execute(event, ("j2",))
    database.execute("ROLLBACK")
    database.execute(event, ("j3",))
    numbers = database.execute("SELECT seq FROM unswept_events ORDER BY seq").fetchall()
    assert numbers == [(1,), (2,)]


def test_every_kind_of_event_is_taken_and_no_other(database: sqlite3.Connection) -> None:
    """The database knows the core's kinds; a renewal and a chunk of output leave no event."""
    event = (
        "INSERT INTO unswept_events (job_id, epoch, kind, at, status, beats, forced)"
        " VALUES ('j1', 1, ?, 5, 'running', 1, 0)"
    )
    for kind in Kind:
        if kind in (Kind.RENEW, Kind.OUTPUT):
            with pytest.raises(sqlite3.IntegrityError):
                database.execute(event, (kind.value,))
        else:
            database.execute(event, (kind.value,))


@pytest.mark.parametrize("status", Status)
def test_every_status_is_taken(database: sqlite3.Connection, status: Status) -> None:
    """Each in a row that is well-formed."""
    row = {Status.QUEUED: QUEUED, Status.RUNNING: OWNED, Status.ORPHANED: ORPHANED}
    insert(database, {**row.get(status, ENDED), "status": status.value})


def test_all_tables_are_strict_and_bear_the_prefix(database: sqlite3.Connection) -> None:
    """And each table of the core's world is there under its name."""
    found = database.execute(
        "SELECT name, strict FROM pragma_table_list"
        " WHERE schema = 'main' AND name NOT LIKE 'sqlite_%'"
    ).fetchall()
    names = {name for name, _ in found}
    assert all(strict for _, strict in found)
    assert all(name.startswith("unswept_") for name in names)
    assert {f"unswept_{table.value}" for table in Table} <= names
    assert {"unswept_events", "unswept_label_sets", "unswept_migrations"} <= names


def test_the_lease_row_has_every_column_and_no_more(database: sqlite3.Connection) -> None:
    """Later commands find their columns in the first migration."""
    columns = database.execute("SELECT name FROM pragma_table_info('unswept_jobs')").fetchall()
    assert tuple(name for (name,) in columns) == JOB_COLUMNS


# Plans ------------------------------------------------------------------------------------------


def test_no_index_knows_the_deadline(database: sqlite3.Connection) -> None:
    """A renewal touches no index: neither a column nor a condition of any names what it stamps."""
    stamped = {"beats", "deadline", "ttl_ms", "confirm_ms", "beat_at"}
    indexes = database.execute(
        "SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'unswept_jobs'"
    ).fetchall()
    named = [set(re.findall(r"\w+", sql)) & stamped for (sql,) in indexes if sql is not None]
    assert len(named) == 6
    assert not any(named)


BY_ID = "sqlite_autoindex_unswept_jobs_1 (id=?)"


@pytest.mark.parametrize(
    ("name", "indexes"),
    [
        ("lock_job", [BY_ID]),
        ("suspects", ["unswept_jobs_owned (id>?)"]),
        ("candidates", ["unswept_jobs_waiting (partition=? AND label_set=?)"]),
        (
            "claimed_before",
            [
                "unswept_jobs_claimed (owner=? AND claim_no=?)",
                "sqlite_autoindex_unswept_requests_1 (job_id=?)",
            ],
        ),
        ("evictable", ["unswept_jobs_ended (finished_at<?)"]),
        ("expirable", ["unswept_jobs_expirable (queue_deadline<?)"]),
        (
            "past_events",
            [
                "unswept_events_evicted (at<?)",
                "sqlite_autoindex_unswept_events_1 (job_id=?)",
                "unswept_dead_letters_number (number=?)",
            ],
        ),
        (
            "forget_events",
            [
                "sqlite_autoindex_unswept_events_1 (job_id=?)",
                "sqlite_autoindex_unswept_events_1 (job_id=?)",
                "sqlite_autoindex_unswept_events_1 (job_id=?)",
                "unswept_dead_letters_number (number=?)",
            ],
        ),
        ("renew_holds", [BY_ID]),
        ("find_event", ["sqlite_autoindex_unswept_events_1 (job_id=? AND epoch=? AND kind=?)"]),
        ("read_events", ["PRIMARY KEY (rowid>?)"]),
    ],
)
def test_a_query_goes_by_its_index(
    database: sqlite3.Connection, name: str, indexes: list[str]
) -> None:
    """And sorts nothing: the index has the order that is asked for."""
    goes_by(database, getattr(Q, name), indexes)


def goes_by(database: sqlite3.Connection, sql: str, indexes: list[str]) -> None:
    params = dict.fromkeys(re.findall(r":(\w+)", sql), 1)
    steps = database.execute(f"EXPLAIN QUERY PLAN {sql}", params).fetchall()
    aside = ("json_each", "SUBQUERY")
    ours = [step[3] for step in steps if not any(word in step[3] for word in aside)]
    assert len(ours) == len(indexes), ours
    for step, index in zip(ours, indexes, strict=True):
        assert step.startswith("SEARCH"), ours
        assert step.endswith(index), ours


@pytest.mark.parametrize("name", list(Q.update))
def test_an_update_goes_by_the_id(database: sqlite3.Connection, name: str) -> None:
    """One row is looked up, whatever the guard says."""
    goes_by(database, Q.update[name], [BY_ID])


# Migrations -------------------------------------------------------------------------------------


def test_migrations_are_numbered_and_complete() -> None:
    """Each file is a list of whole statements, and the splitter finds just those."""
    migrations = load("unswept.adapters.sqlite")
    assert [migration.number for migration in migrations] == list(range(1, len(migrations) + 1))
    for migration in migrations:
        assert all(sqlite3.complete_statement(statement) for statement in migration.statements)
        assert "\n".join(migration.statements).split() == migration.sql.split()


def test_threads_may_open_the_same_new_file_at_once(tmp_path: Path) -> None:
    """One of them makes the tables, and all of them find a store."""
    for attempt in range(5):
        path = tmp_path / f"{attempt}.db"
        together = threading.Barrier(8)
        failed: list[Exception] = []

        def first_open(path: Path = path, together: Any = together, failed: Any = failed) -> None:
            together.wait()
            try:
                SqliteStore(path).close()
            except Exception as error:
                failed.append(error)

        threads = [threading.Thread(target=first_open) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []


OPEN = """
import sys, time
from unswept.adapters.sqlite import SqliteStore
from unswept.core.commands import Heartbeat
from unswept.core.job import Terms
time.sleep(max(0, float(sys.argv[2]) - time.time()))
with SqliteStore(sys.argv[1]) as store:
    store.execute(Heartbeat("a", Terms(1, 1, 1, 1)))
"""


def test_processes_may_open_the_same_new_file_at_once(tmp_path: Path) -> None:
    """The same for processes, whose first opens meet as nearly as they can."""
    at = str(time.time() + 1.5)
    opening = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN, str(tmp_path / "jobs.db"), at],
            env=environment(),
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]
    said = [process.communicate(timeout=60)[1] for process in opening]
    assert said == [""] * 6
    with SqliteStore(tmp_path / "jobs.db", migrate=False):
        pass


def test_an_older_store_is_migrated_or_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is missing is applied and recorded; verify-only says what it found."""
    path = tmp_path / "jobs.db"
    SqliteStore(path).close()
    second = Migration(2, "second", "CREATE TABLE unswept_more (id INTEGER) STRICT;\n")
    monkeypatch.setattr(schema_module, "MIGRATIONS", (*schema_module.MIGRATIONS, second))
    monkeypatch.setattr(schema_module, "VERSION", 2)
    with pytest.raises(
        StoreVersionError, match="expected schema version 2, found schema version 1"
    ):
        SqliteStore(path, migrate=False)
    SqliteStore(path).close()
    database = sqlite3.connect(path)
    rows = database.execute("SELECT number, name FROM unswept_migrations ORDER BY 1").fetchall()
    assert rows == [(1, "first"), (2, "second")]
    assert database.execute("SELECT count(*) FROM unswept_more").fetchall() == [(0,)]
    database.close()


def test_a_migration_that_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is applied as a whole, with all those before it, or not at all."""
    path = tmp_path / "jobs.db"
    broken = Migration(2, "broken", "CREATE TABLE unswept_more (id);\nCREATE TABLE (;\n")
    monkeypatch.setattr(schema_module, "MIGRATIONS", (*schema_module.MIGRATIONS, broken))
    monkeypatch.setattr(schema_module, "VERSION", 2)
    with pytest.raises(StoreError):
        SqliteStore(path)
    database = sqlite3.connect(path)
    assert database.execute("SELECT count(*) FROM sqlite_master").fetchall() == [(0,)]
    database.close()
