"""A command in the caller's own transaction stands or falls with the caller's own writes."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.adapters.sqlite.helpers import TERMS, Clock, environment, tables_of
from unswept.adapters.sql.queries import Queries
from unswept.adapters.sqlite import SqliteStore
from unswept.adapters.sqlite import store as store_module
from unswept.adapters.sqlite.dialect import SqliteDialect
from unswept.core import commands as c
from unswept.core.errors import (
    MisuseError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)
from unswept.core.lease import Kind, Status
from unswept.core.memory import MemoryStore
from unswept.core.refusal import Refusal
from unswept.core.replies import Accepted, Found, Refused
from unswept.core.values import Request, Result

ROOT = Path(__file__).resolve().parents[3]
ENQUEUE = c.Enqueue("j1", request=Request(b"payload", "me", "key"))
COMPLETE = c.Complete("mine", "a", 1, Status.COMPLETED, Result(0, body=b"done"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(path: Path, clock: Clock) -> Iterator[SqliteStore]:
    """It has a running job `mine` of the owner `a`."""
    with SqliteStore(path, clock=clock, busy_timeout_ms=20_000) as store:
        store.execute(c.Admit("mine", "a", TERMS))
        store.execute(c.Start("mine", "a", 1, TERMS))
        yield store


@pytest.fixture
def own(path: Path, store: SqliteStore) -> Iterator[sqlite3.Connection]:
    """The application's connection, with a table of its own in the same file."""
    with closing(connect(path)) as own:
        own.execute("CREATE TABLE orders (id TEXT)")
        yield own


def connect(path: Path | str, **options: Any) -> sqlite3.Connection:
    chosen: dict[str, Any] = {"isolation_level": None, "timeout": 0, **options}
    connection: sqlite3.Connection = sqlite3.connect(path, **chosen)
    return connection


def begin(own: sqlite3.Connection, how: str = "IMMEDIATE") -> None:
    """The caller's transaction, with a write of its own in it."""
    own.execute(f"BEGIN {how}")
    own.execute("INSERT INTO orders VALUES ('before')")


def end(own: sqlite3.Connection) -> list[str]:
    """Writes once more, commits, and gives what is committed."""
    own.execute("INSERT INTO orders VALUES ('after')")
    own.execute("COMMIT")
    return orders(own)


def orders(own: sqlite3.Connection) -> list[str]:
    return [order for (order,) in own.execute("SELECT id FROM orders")]


# Together or not at all ---------------------------------------------------------------------------


def test_it_takes_effect_with_the_callers_commit(
    store: SqliteStore, own: sqlite3.Connection, path: Path
) -> None:
    """Until then nobody sees it."""
    begin(own)
    enqueued = store.execute_within(own, ENQUEUE)
    completed = store.execute_within(own, COMPLETE)
    assert isinstance(enqueued, Accepted)
    assert enqueued.transition is Kind.ENQUEUE
    assert isinstance(completed, Accepted)
    assert completed.transition is Kind.COMPLETE
    assert store.execute(c.Find("j1")) == Refused(enqueued.at, Refusal.ABSENT, None)
    stands = store.execute(c.Find("mine"))
    assert isinstance(stands, Found)
    assert stands.job.lease.status is Status.RUNNING
    assert end(own) == ["before", "after"]
    tables = tables_of(path)
    assert tables["jobs"]["j1"].lease.status is Status.QUEUED
    assert tables["requests"]["j1"] == ENQUEUE.request
    assert tables["jobs"]["mine"].lease.status is Status.COMPLETED
    assert tables["results"] == {"mine": COMPLETE.result}
    kinds = [event.kind for event in tables["events"]]
    assert kinds == [Kind.ADMIT, Kind.START, Kind.ENQUEUE, Kind.COMPLETE]


@pytest.mark.parametrize("command", [ENQUEUE, COMPLETE], ids=["enqueue", "complete"])
def test_it_is_rolled_back_with_the_callers_writes(
    store: SqliteStore, own: sqlite3.Connection, path: Path, command: c.Enqueue | c.Complete
) -> None:
    """Then it was never there, and can be carried out anew."""
    before = tables_of(path)
    begin(own)
    store.execute_within(own, command)
    own.execute("ROLLBACK")
    assert tables_of(path) == before
    assert orders(own) == []
    anew = store.execute(command)
    assert isinstance(anew, Accepted)
    assert not anew.repeated


@pytest.mark.parametrize("command", [ENQUEUE, COMPLETE], ids=["enqueue", "complete"])
def test_it_is_rolled_back_to_the_callers_savepoint(
    store: SqliteStore, own: sqlite3.Connection, path: Path, command: c.Enqueue | c.Complete
) -> None:
    """A savepoint of the caller's takes it back like any of the caller's statements."""
    before = tables_of(path)
    begin(own)
    own.execute("SAVEPOINT theirs")
    store.execute_within(own, command)
    own.execute("ROLLBACK TO theirs")
    assert end(own) == ["before", "after"]
    assert tables_of(path) == before


@pytest.mark.parametrize("command", [ENQUEUE, COMPLETE], ids=["enqueue", "complete"])
def test_it_can_be_repeated(
    store: SqliteStore, own: sqlite3.Connection, path: Path, command: c.Enqueue | c.Complete
) -> None:
    """In the same transaction, in another one, and without one."""
    begin(own)
    first = store.execute_within(own, command)
    assert isinstance(first, Accepted)
    again = [store.execute_within(own, command)]
    own.execute("COMMIT")
    once = tables_of(path)
    own.execute("BEGIN IMMEDIATE")
    again.append(store.execute_within(own, command))
    own.execute("COMMIT")
    again.append(store.execute(command))
    assert again == [Accepted(first.at, first.standing, None)] * 3
    assert tables_of(path) == once


SEQUENCE: tuple[c.Command[Any], ...] = (
    c.Enqueue("j1"),
    c.Enqueue("j1"),
    c.Enqueue("mine"),
    c.Withdraw("j2", "a"),
    c.Enqueue("j2"),
    c.Complete("j0", "a", 1, Status.COMPLETED),
    c.Complete("j2", "a", 1, Status.COMPLETED),
    c.Complete("mine", "b", 1, Status.COMPLETED),
    c.Complete("mine", "a", 2, Status.COMPLETED),
    c.Sweep("b", (c.Target("mine", 1, 2, Clock()()),)),
    c.Complete("mine", "a", 1, Status.FAILED, Result(error="late")),
    c.Complete("mine", "a", 1, Status.FAILED),
    c.Complete("mine", "a", 1, Status.COMPLETED),
    c.Register("a"),
    c.Claim("a", 1, TERMS),
    c.RequestCancel("j1"),
    c.Sweep("b", (c.Target("j1", 1, 1, Clock()()),)),
    c.RequestCancel("j1"),
    c.Complete("j1", "a", 1, Status.COMPLETED),
    c.Complete("j1", "a", 1, Status.COMPLETED),
)


def test_the_replies_are_those_of_execute(
    store: SqliteStore, own: sqlite3.Connection, path: Path, clock: Clock
) -> None:
    """Whatever stands in the store, and so are the rows."""
    pure = MemoryStore(clock)
    pure.execute(c.Admit("mine", "a", TERMS))
    pure.execute(c.Start("mine", "a", 1, TERMS))
    for command in SEQUENCE:
        clock.now += TERMS.lease_ttl_ms // 2 + 1 if isinstance(command, c.Complete) else 1
        if isinstance(command, (c.Enqueue, c.Complete)):
            own.execute("BEGIN IMMEDIATE")
            assert store.execute_within(own, command) == pure.execute(command), command
            own.execute("COMMIT")
        else:
            clock.now += TERMS.lease_ttl_ms
            assert store.execute(command) == pure.execute(command), command
    tables = tables_of(path)
    assert tables["jobs"] == pure.world.jobs
    assert tables["results"] == pure.world.results
    assert tables["events"] == list(pure.world.events.values())
    assert {Kind.HEAL, Kind.STALE_RESULT} <= {event.kind for event in tables["events"]}


def test_the_time_is_read_with_the_lock_held(
    store: SqliteStore, own: sqlite3.Connection, clock: Clock
) -> None:
    """It is the time of the command, however long its transaction had waited or stood before."""
    begin(own)
    clock.now += 700
    assert store.execute_within(own, ENQUEUE).at == clock.now


def test_everybody_else_waits_meanwhile(
    store: SqliteStore, own: sqlite3.Connection, path: Path
) -> None:
    """A heartbeat of the same process and a write of another one go on after the commit."""
    begin(own)
    store.execute_within(own, COMPLETE)
    beats: list[Any] = []
    hold = (c.Hold("mine", 1),)
    beat = c.Heartbeat("a", TERMS, hold)
    beating = threading.Thread(target=lambda: beats.append(store.execute(beat)))
    beating.start()
    other = subprocess.Popen(
        [sys.executable, "-c", REGISTER, str(path)],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "ready\n"
    beating.join(0.2)
    assert (beats, other.poll()) == ([], None)
    own.execute("COMMIT")
    assert other.communicate(timeout=30)[0] == "done\n"
    beating.join(30)
    (beaten,) = beats
    assert beaten.answers[0].answer == "terminal"


REGISTER = """
import sys
from unswept.adapters.sqlite import SqliteStore
from unswept.core.commands import Register
with SqliteStore(sys.argv[1], migrate=False, busy_timeout_ms=20_000) as store:
    print("ready", flush=True)
    store.execute(Register("other"))
    print("done")
"""


# What the connection may be like ------------------------------------------------------------------


@pytest.mark.parametrize("how", ["IMMEDIATE", "EXCLUSIVE"])
def test_nothing_need_have_been_written(
    store: SqliteStore, own: sqlite3.Connection, path: Path, how: str
) -> None:
    """The transaction holds the write lock from its beginning."""
    own.execute(f"BEGIN {how}")
    store.execute_within(own, ENQUEUE)
    own.execute("COMMIT")
    assert "j1" in tables_of(path)["jobs"]


@pytest.mark.parametrize("level", ["", "DEFERRED", "IMMEDIATE", "EXCLUSIVE"])
def test_a_transaction_that_has_written_first_holds_the_lock_too(
    store: SqliteStore, own: sqlite3.Connection, path: Path, level: str
) -> None:
    """So the driver's own way to begin, before the first write, will do; it is not disturbed."""
    with closing(connect(path, isolation_level=level)) as theirs, theirs:
        theirs.execute("INSERT INTO orders VALUES ('before')")
        store.execute_within(theirs, ENQUEUE)
        store.execute_within(theirs, COMPLETE)
        assert theirs.isolation_level == level
        assert theirs.in_transaction
    assert orders(own) == ["before"]
    assert "j1" in tables_of(path)["jobs"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="there is no autocommit attribute")
@pytest.mark.parametrize("autocommit", [True, False])
def test_the_autocommit_attribute_does_not_matter(
    store: SqliteStore, own: sqlite3.Connection, path: Path, autocommit: bool
) -> None:
    """Without it the driver begins a deferred transaction, which has to write first."""
    before = tables_of(path)
    with closing(connect(path, autocommit=autocommit)) as theirs:
        for undo in (True, False):
            if autocommit:
                theirs.execute("BEGIN IMMEDIATE")
            theirs.execute("INSERT INTO orders VALUES ('before')")
            store.execute_within(theirs, ENQUEUE)
            theirs.execute("ROLLBACK" if undo else "COMMIT")
            assert (tables_of(path) == before) is undo
            if not autocommit:
                theirs.execute("BEGIN")
        assert theirs.autocommit is autocommit  # type: ignore[attr-defined, unused-ignore]
    assert orders(own) == ["before"]


def refuse_rows(*_: Any) -> Any:
    raise AssertionError("the caller's factory was asked")


FACTORIES: Mapping[str, Any] = {
    "rows": sqlite3.Row,
    "dicts": lambda cursor, row: dict(zip(cursor.description, row, strict=False)),
    "errors": refuse_rows,
}


@pytest.mark.parametrize("text", [bytes, bytearray, refuse_rows], ids=lambda text: text.__name__)
@pytest.mark.parametrize("rows", FACTORIES.values(), ids=FACTORIES)
def test_the_callers_factories_do_not_matter(
    store: SqliteStore, own: sqlite3.Connection, rows: Any, text: Any
) -> None:
    """And are what they were, also after a command that fails."""
    own.row_factory, own.text_factory = rows, text
    own.execute("BEGIN IMMEDIATE")
    for command in (ENQUEUE, ENQUEUE, COMPLETE, COMPLETE):
        assert isinstance(store.execute_within(own, command), Accepted)
    with own_trigger(own, "RAISE(ABORT, 'no')"), pytest.raises(StoreError):
        store.execute_within(own, c.Enqueue("j2"))
    assert (own.row_factory, own.text_factory) == (rows, text)


class Scribe(sqlite3.Connection):
    """A connection with ways of its own, as libraries for tracing make them."""

    def cursor(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("the caller's cursor was asked for")

    execute = commit = rollback = cursor


def test_a_connection_of_a_class_of_its_own_will_do(
    store: SqliteStore, own: sqlite3.Connection, path: Path
) -> None:
    """None of the methods that it may have changed is used."""
    with closing(connect(path, factory=Scribe)) as theirs:
        sqlite3.Cursor(theirs).execute("BEGIN IMMEDIATE")
        store.execute_within(theirs, ENQUEUE)
        sqlite3.Cursor(theirs).execute("COMMIT")
    assert "j1" in tables_of(path)["jobs"]


def test_a_symbolic_link_leads_to_the_same_file(
    store: SqliteStore, own: sqlite3.Connection, path: Path, tmp_path: Path
) -> None:
    """SQLite follows it, and so finds the same log and locks."""
    link = tmp_path / "link.db"
    link.symlink_to(path)
    with closing(connect(link)) as theirs:
        begin(theirs)
        store.execute_within(theirs, ENQUEUE)
        assert end(theirs) == ["before", "after"]
    assert "j1" in tables_of(path)["jobs"]


def test_other_databases_may_be_attached(
    store: SqliteStore, own: sqlite3.Connection, path: Path, tmp_path: Path
) -> None:
    """Even a copy of the store, which stays as it is: the main one counts."""
    copy = tmp_path / "copy.db"
    SqliteStore(copy).close()
    own.execute("ATTACH ? AS unswept", (str(copy),))
    begin(own)
    store.execute_within(own, ENQUEUE)
    own.execute("COMMIT")
    assert "j1" in tables_of(path)["jobs"]
    assert not any(tables_of(copy).values())


@pytest.mark.skipif(sys.platform == "darwin", reason="names there are text")
def test_a_name_that_is_no_text_will_do(tmp_path: Path) -> None:
    """Names of files are bytes, and need not be UTF-8."""
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.db")
    with SqliteStore(path) as store, closing(connect(path)) as own:
        own.execute("BEGIN IMMEDIATE")
        store.execute_within(own, ENQUEUE)
        own.execute("COMMIT")
        assert isinstance(store.execute(c.Find("j1")), Found)


# What is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [c.Admit("j1", "a", TERMS), c.Heartbeat("a", TERMS), c.Find("j1"), c.Withdraw("j1", "a"), None],
    ids=lambda command: type(command).__name__,
)
def test_any_other_command_is_refused(
    store: SqliteStore, own: sqlite3.Connection, command: Any
) -> None:
    """An admit there would be invisible to its own heartbeat."""
    begin(own)
    with pytest.raises(MisuseError, match=r"expected an Enqueue or a Complete.*heartbeat"):
        store.execute_within(own, command)
    assert end(own) == ["before", "after"]


@pytest.mark.parametrize("wrapped", [None, "jobs.db", mock.Mock()], ids=["None", "path", "wrapper"])
def test_what_is_no_connection_is_refused(store: SqliteStore, wrapped: Any) -> None:
    """A wrapper around one is none."""
    with pytest.raises(MisuseError, match=r"expected a sqlite3\.Connection, got"):
        store.execute_within(wrapped, ENQUEUE)


def test_a_connection_that_is_not_open_is_refused(store: SqliteStore, path: Path) -> None:
    """Closed, or never opened."""
    closed = connect(path)
    closed.close()
    for connection in (closed, sqlite3.Connection.__new__(sqlite3.Connection)):
        with pytest.raises(MisuseError, match="expected an open connection"):
            store.execute_within(connection, ENQUEUE)


def test_another_threads_connection_is_refused(store: SqliteStore, own: sqlite3.Connection) -> None:
    """Unless it was made to be shared; its transaction is not touched."""
    begin(own)
    told: list[Exception] = []

    def use() -> None:
        try:
            store.execute_within(own, ENQUEUE)
        except MisuseError as error:
            told.append(error)

    using = threading.Thread(target=use)
    using.start()
    using.join()
    assert len(told) == 1
    assert re.search(r"this thread may use.*created in a thread", str(told[0]))
    assert isinstance(told[0].__cause__, sqlite3.ProgrammingError)
    assert end(own) == ["before", "after"]


def test_a_shared_connection_may_be_used_by_another_thread(store: SqliteStore, path: Path) -> None:
    """One that was made with check_same_thread=False."""
    replies: list[Any] = []
    with closing(connect(path, check_same_thread=False)) as own:
        own.execute("BEGIN IMMEDIATE")
        using = threading.Thread(target=lambda: replies.append(store.execute_within(own, ENQUEUE)))
        using.start()
        using.join()
        own.execute("COMMIT")
    assert isinstance(replies[0], Accepted)


Named = Callable[[Path, Path], sqlite3.Connection]


def _other_store(path: Path, folder: Path) -> sqlite3.Connection:
    SqliteStore(folder / "other.db").close()
    return connect(folder / "other.db")


def _attached(path: Path, folder: Path) -> sqlite3.Connection:
    own = _other_store(path, folder)
    own.execute("ATTACH ? AS jobs", (str(path),))
    return own


OTHER_FILES: Mapping[str, Named] = {
    "another file": _other_store,
    "only attached": _attached,
    "in memory": lambda path, folder: connect(":memory:"),
    "temporary": lambda path, folder: connect(""),
}


@pytest.mark.parametrize("name", OTHER_FILES)
def test_another_file_is_refused(store: SqliteStore, path: Path, tmp_path: Path, name: str) -> None:
    """An attached database does not count: the names of our tables mean those of the main one."""
    with closing(OTHER_FILES[name](path, tmp_path)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(MisuseError, match=r"main database is this file.*Connect to .*jobs\.db"):
            store.execute_within(other, ENQUEUE)
        other.execute("CREATE TABLE usable (id)")
        other.execute("COMMIT")
    assert "j1" not in tables_of(path)["jobs"]


def test_another_hard_link_is_refused(store: SqliteStore, path: Path, tmp_path: Path) -> None:
    """Under it SQLite keeps another log, and so other locks. Where both are open in one process it
    notices that by itself, but the store need not be connected at that time."""
    with store._main.lock:
        store._main.close()
    os.link(path, tmp_path / "link.db")
    with closing(connect(tmp_path / "link.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(MisuseError, match="nor does another hard link"):
            store.execute_within(other, ENQUEUE)
        other.execute("ROLLBACK")


def test_a_store_in_memory_is_refused(own: sqlite3.Connection) -> None:
    """No other connection reaches it."""
    begin(own)
    with (
        SqliteStore(":memory:") as store,
        pytest.raises(MisuseError, match="expected a store on a file, found one in memory"),
    ):
        store.execute_within(own, ENQUEUE)
    assert end(own) == ["before", "after"]


def test_a_closed_store_is_refused(store: SqliteStore, own: sqlite3.Connection) -> None:
    """Although it needs no connection of its own."""
    store.close()
    begin(own)
    with pytest.raises(MisuseError, match="is closed; open the store anew"):
        store.execute_within(own, ENQUEUE)


def test_a_file_that_vanished_is_refused(
    store: SqliteStore, own: sqlite3.Connection, path: Path
) -> None:
    """What is written to it is lost."""
    begin(own)
    path.rename(path.with_name("away.db"))
    with pytest.raises(StoreUnavailableError, match="is gone now"):
        store.execute_within(own, ENQUEUE)


def test_without_a_transaction_it_is_refused(
    store: SqliteStore, own: sqlite3.Connection, path: Path
) -> None:
    """Also where the driver would begin one before the caller's next write."""
    with closing(connect(path, isolation_level="IMMEDIATE")) as theirs:
        for connection in (own, theirs):
            with pytest.raises(MisuseError, match=r"open transaction, found none.*BEGIN IMMEDIATE"):
                store.execute_within(connection, ENQUEUE)
            assert not connection.in_transaction


@pytest.mark.parametrize("reads", [False, True])
@pytest.mark.parametrize("others", [None, "store", "process"])
def test_a_deferred_transaction_is_refused(
    store: SqliteStore, own: sqlite3.Connection, path: Path, reads: bool, others: str | None
) -> None:
    """Whether or not it has read, and whoever else holds the lock; it does not become a writer."""
    own.execute("BEGIN")
    if reads:
        assert orders(own) == []
    if others == "store":
        store.execute(c.Register("b"))
    with closing(connect(path)) as other:
        if others == "process":
            other.execute("BEGIN IMMEDIATE")
        with pytest.raises(MisuseError, match=r"holds the file's write lock.*BEGIN IMMEDIATE"):
            store.execute_within(own, ENQUEUE)
    store.execute(c.Register("c"))  # nobody is kept waiting
    assert orders(own) == []
    own.execute("COMMIT")


def test_a_read_only_connection_is_refused(store: SqliteStore, path: Path) -> None:
    """BEGIN IMMEDIATE takes no lock on it."""
    with closing(connect(f"{path.as_uri()}?mode=ro", uri=True)) as own:
        own.execute("BEGIN IMMEDIATE")
        with pytest.raises(MisuseError, match="on a connection that may write"):
            store.execute_within(own, ENQUEUE)


def test_a_connection_set_to_read_is_refused(store: SqliteStore, own: sqlite3.Connection) -> None:
    """The error says which setting it may be."""
    begin(own)
    own.execute("PRAGMA query_only = ON")
    for command in (ENQUEUE, COMPLETE):
        with pytest.raises(StoreReadOnlyError, match=r"query_only.*as it was before the command"):
            store.execute_within(own, command)
    own.execute("PRAGMA query_only = OFF")
    assert isinstance(store.execute_within(own, ENQUEUE), Accepted)
    assert end(own) == ["before", "after"]


@pytest.mark.parametrize("what", ["TABLE unswept_jobs (id)", "VIEW UNSWEPT_ids AS SELECT 1"])
def test_temporary_tables_that_hide_ours_are_refused(
    store: SqliteStore, own: sqlite3.Connection, what: str
) -> None:
    """SQLite would read and write those instead."""
    own.execute(f"CREATE TEMP {what}")
    begin(own)
    with pytest.raises(MisuseError, match=r"no temporary table or view.*Drop or rename it"):
        store.execute_within(own, ENQUEUE)
    assert end(own) == ["before", "after"]


@pytest.mark.parametrize("kind", ["INTEGER", "TEXT"])
def test_a_connection_that_converts_is_refused(
    store: SqliteStore, own: sqlite3.Connection, path: Path, kind: str
) -> None:
    """What it reads is not what is stored."""
    with (
        mock.patch.dict(sqlite3.converters, {kind: lambda stored: ("converted", stored)}),
        closing(connect(path, detect_types=sqlite3.PARSE_DECLTYPES)) as theirs,
    ):
        begin(theirs)
        with pytest.raises(MisuseError, match=r"numbers as int and text as str.*converted"):
            store.execute_within(theirs, ENQUEUE)
        theirs.execute("COMMIT")
    assert orders(own) == ["before"]


def test_a_statement_under_way_is_refused(store: SqliteStore, own: sqlite3.Connection) -> None:
    """SQLite sets no savepoint before a statement that writes has given all its rows."""
    own.execute("BEGIN IMMEDIATE")
    under_way = own.execute("INSERT INTO orders VALUES ('before'), ('too') RETURNING id")
    assert under_way.fetchone() == ("before",)
    with pytest.raises(MisuseError, match=r"no statement under way.*Fetch its rows to the end"):
        store.execute_within(own, ENQUEUE)
    assert under_way.fetchall() == [("too",)]
    assert isinstance(store.execute_within(own, ENQUEUE), Accepted)
    assert end(own) == ["before", "too", "after"]


def test_rows_that_are_being_read_are_read_on(store: SqliteStore, own: sqlite3.Connection) -> None:
    """A query under way is no obstacle, also for a command that fails."""
    begin(own)
    own.execute("INSERT INTO orders VALUES ('too')")
    reading = own.execute("SELECT id FROM orders")
    assert reading.fetchone() == ("before",)
    assert isinstance(store.execute_within(own, ENQUEUE), Accepted)
    with mock.patch.object(store_module, "QUERIES", broken()), pytest.raises(StoreError):
        store.execute_within(own, COMPLETE)
    assert reading.fetchall() == [("too",)]
    own.execute("COMMIT")


# What fails on its way ----------------------------------------------------------------------------


def broken() -> Queries:
    """Statements of which the last one, the event's, is none."""
    queries = Queries(SqliteDialect())
    queries.put_event = "INSERT INTO nowhere VALUES (1)"
    return queries


@contextmanager
def own_trigger(own: sqlite3.Connection, action: str) -> Iterator[None]:
    """A trigger of the application's on our events, for a while."""
    own.execute(
        "CREATE TEMP TRIGGER theirs BEFORE INSERT ON main.unswept_events"
        f" BEGIN SELECT {action}; END"
    )
    try:
        yield
    finally:
        own.execute("DROP TRIGGER theirs")


@pytest.mark.parametrize("command", [ENQUEUE, COMPLETE], ids=["enqueue", "complete"])
def test_a_command_that_fails_leaves_the_callers_writes(
    store: SqliteStore, own: sqlite3.Connection, path: Path, command: c.Enqueue | c.Complete
) -> None:
    """And nothing of its own, although its last statement was the one that failed."""
    before = tables_of(path)
    begin(own)
    with (
        mock.patch.object(store_module, "QUERIES", broken()),
        pytest.raises(StoreError, match=r"as it was before the command\. .*no such table: nowhere"),
    ):
        store.execute_within(own, command)
    with (
        own_trigger(own, "RAISE(ABORT, 'not today')"),
        pytest.raises(StoreError, match=r"a trigger on a table of unswept.*not today"),
    ):
        store.execute_within(own, command)
    assert end(own) == ["before", "after"]
    assert tables_of(path) == before
    again = store.execute(command)
    assert isinstance(again, Accepted)
    assert not again.repeated


@pytest.mark.parametrize("fails", [KeyboardInterrupt, "no time"])
def test_a_clock_that_fails_leaves_the_callers_writes(path: Path, fails: Any) -> None:
    """What it raises is raised, and what it says is checked."""

    def clock() -> Any:
        if fails is KeyboardInterrupt:
            raise KeyboardInterrupt
        return fails

    with SqliteStore(path, clock=clock) as store, closing(connect(path)) as own:
        own.execute("CREATE TABLE orders (id TEXT)")
        begin(own)
        with pytest.raises((KeyboardInterrupt, MisuseError)):
            store.execute_within(own, ENQUEUE)
        assert end(own) == ["before", "after"]
    assert not any(tables_of(path).values())


def test_an_authorizer_in_the_way_is_told(store: SqliteStore, own: sqlite3.Connection) -> None:
    """It may refuse one statement, or the savepoint itself."""
    begin(own)
    for denied in (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_SAVEPOINT, sqlite3.SQLITE_READ):

        def decide(action: int, *_: Any, denied: int = denied) -> int:
            return sqlite3.SQLITE_DENY if action == denied else sqlite3.SQLITE_OK

        own.set_authorizer(decide)
        with pytest.raises(StoreError, match=r"such as an authorizer.*transaction is as it was"):
            store.execute_within(own, ENQUEUE)
    own.set_authorizer(None)
    assert end(own) == ["before", "after"]


@pytest.mark.parametrize("commits", [False, True])
def test_half_a_command_is_never_committed(
    store: SqliteStore, own: sqlite3.Connection, path: Path, commits: bool
) -> None:
    """Where it cannot be taken back alone the whole transaction is, or the caller is warned."""
    before = tables_of(path)
    begin(own)

    def decide(action: int, what: str | None, *_: Any) -> int:
        undoes = action == sqlite3.SQLITE_SAVEPOINT or (
            commits and action == sqlite3.SQLITE_TRANSACTION
        )
        return sqlite3.SQLITE_DENY if undoes and what == "ROLLBACK" else sqlite3.SQLITE_OK

    own.set_authorizer(decide)
    said = "do not commit it" if commits else "whole transaction was rolled back"
    with (
        mock.patch.object(store_module, "QUERIES", broken()),
        pytest.raises(StoreError, match=said),
    ):
        store.execute_within(own, ENQUEUE)
    assert own.in_transaction is commits
    own.close()
    assert tables_of(path) == before


def _interrupted(own: sqlite3.Connection) -> None:
    own.execute("CREATE TEMP TABLE told (id)")
    own.create_function("stop", 0, own.interrupt)
    own.execute(
        "CREATE TEMP TRIGGER theirs AFTER INSERT ON main.unswept_events"
        " BEGIN SELECT stop(); INSERT INTO told SELECT 1 FROM sqlite_master; END"
    )


def _full(own: sqlite3.Connection) -> None:
    (pages,) = own.execute("PRAGMA page_count").fetchone()
    own.execute(f"PRAGMA max_page_count = {pages}")


def _rolls_back(own: sqlite3.Connection) -> None:
    own.execute(
        "CREATE TEMP TRIGGER theirs AFTER INSERT ON main.unswept_events"
        " BEGIN SELECT RAISE(ROLLBACK, 'by a trigger'); END"
    )


@pytest.mark.parametrize(
    ("spoil", "kind", "said"),
    [
        (_interrupted, StoreError, "was interrupted"),
        (_full, StoreFullError, "Free some space"),
        (_rolls_back, StoreError, "a trigger on a table of unswept"),
    ],
)
def test_where_sqlite_rolls_everything_back_the_error_says_so(
    store: SqliteStore,
    own: sqlite3.Connection,
    path: Path,
    spoil: Callable[[sqlite3.Connection], None],
    kind: type[StoreError],
    said: str,
) -> None:
    """Then the caller's writes are gone too, by SQLite's own rule; none of ours are left."""
    before = tables_of(path)
    spoil(own)
    begin(own)
    large = c.Enqueue("j1", request=Request(b"x" * 200_000))
    with pytest.raises(kind, match=f"{said}.*Your whole transaction was rolled back"):
        store.execute_within(own, large)
    assert not own.in_transaction
    assert orders(own) == []
    assert tables_of(path) == before


# In the middle of a command -----------------------------------------------------------------------


def test_a_command_in_the_middle_of_one_is_misuse(path: Path) -> None:
    """As a clock or a signal handler would ask it; the first one is undisturbed."""
    told: list[str] = []

    def within() -> Any:
        return asked.execute_within(theirs, ENQUEUE)

    def beside() -> Any:
        return asked.execute(COMPLETE)

    def clock() -> Any:
        for ask in (within, beside):
            try:
                ask()
            except MisuseError as error:
                told.append(str(error))
        return 5

    with SqliteStore(path, clock=clock) as asked, closing(connect(path)) as theirs:
        theirs.execute("BEGIN IMMEDIATE")
        assert isinstance(within(), Accepted)
        theirs.execute("COMMIT")
    assert len(told) == 2
    assert all("already in the middle of a command" in said for said in told)
    assert set(tables_of(path)["jobs"]) == {"j1"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_in_the_middle_of_a_command_is_the_parents(path: Path) -> None:
    """The parent's command goes on, and the child's copy of it touches nothing."""
    child: list[int] = []

    def clock() -> Any:
        child.append(os.fork())
        return 5

    with SqliteStore(path, clock=clock) as store, closing(connect(path)) as own:
        own.execute("BEGIN IMMEDIATE")
        try:
            enqueued = store.execute_within(own, ENQUEUE)
        except MisuseError as error:
            os._exit(0 if child == [0] and "was forked by the very thread" in str(error) else 2)
        except BaseException:
            os._exit(3)
        if child == [0]:
            os._exit(4)
        assert os.waitstatus_to_exitcode(os.waitpid(child[0], 0)[1]) == 0
        assert isinstance(enqueued, Accepted)
        own.execute("COMMIT")
    assert set(tables_of(path)["jobs"]) == {"j1"}


def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    """It prints what its comments say, on a file of its own."""
    page = (ROOT / "docs/sqlite.md").read_text(encoding="utf-8")
    [example] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    expected = re.findall(r"print\(.*\)  # (.*)", example)
    ran = subprocess.run(
        [sys.executable, "-c", example],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.splitlines() == expected
    assert expected
