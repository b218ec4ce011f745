"""What was once found wrong: files that vanish, waits without end, re-entry, files of strangers."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.sqlite.helpers import TERMS, environment, tables_of
from unswept.adapters.sqlite import SqliteStore
from unswept.core import commands as c
from unswept.core.errors import (
    MisuseError,
    NotAStoreError,
    StoreError,
    StoreUnavailableError,
    StoreVersionError,
)
from unswept.core.replies import Accepted, Found

ADMIT = c.Admit("j1", "a", TERMS)
EACH_CONNECTION = (c.Register("b"), c.Heartbeat("a", TERMS), c.Find("j1"))
"""One command for each of the connections of a store."""

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
forks_threads = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


def make(path: Path, *statements: str) -> None:
    database = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        database.execute(statement)
    database.close()


def in_child(work: Any) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@contextmanager
def held(lock: Any) -> Iterator[None]:
    """Another thread holds it."""
    taken, over = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            taken.set()
            over.wait(30)

    holding = threading.Thread(target=hold)
    holding.start()
    taken.wait(30)
    try:
        yield
    finally:
        over.set()
        holding.join()


# Files that vanish ------------------------------------------------------------------------------


def remove_all(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()


@pytest.mark.parametrize("connected", [False, True])
def test_a_file_that_vanished_is_not_made_anew(tmp_path: Path, connected: bool) -> None:
    """Neither a connection that is made only now nor one that is open goes on without it."""
    with SqliteStore(tmp_path / "jobs.db") as store:
        store.execute(c.Register("a"))
        store.execute(ADMIT)
        if connected:
            for command in EACH_CONNECTION:
                store.execute(command)
        remove_all(tmp_path)
        for command in EACH_CONNECTION:
            with pytest.raises(StoreUnavailableError, match=r"is gone now.*Put it back"):
                store.execute(command)
        assert list(tmp_path.iterdir()) == []
    assert list(tmp_path.iterdir()) == []


@needs_fork
def test_a_file_that_vanished_is_not_made_anew_over_a_fork(tmp_path: Path) -> None:
    """Parent and child connect anew, and find that there is nothing to connect to."""
    with SqliteStore(tmp_path / "jobs.db") as store:
        store.execute(ADMIT)
        remove_all(tmp_path)

        def ask() -> None:
            for command in EACH_CONNECTION:
                with pytest.raises(StoreUnavailableError, match="is gone now"):
                    store.execute(command)
            assert list(tmp_path.iterdir()) == []

        assert in_child(ask) == 0
        ask()


def test_a_file_that_was_put_back_is_gone_on_with(tmp_path: Path) -> None:
    """It is the same one, so nothing was lost."""
    path, away = tmp_path / "jobs.db", tmp_path / "away.db"
    with SqliteStore(path) as store:
        store.execute(ADMIT)
        path.rename(away)
        with pytest.raises(StoreError):
            store.execute(c.Heartbeat("a", TERMS))
        away.rename(path)
        assert isinstance(store.execute(c.Find("j1")), Found)


def test_another_file_in_its_place_is_refused(tmp_path: Path) -> None:
    """Also where it is a store: nobody asked for that one."""
    path, other = tmp_path / "jobs.db", tmp_path / "other.db"
    SqliteStore(other).close()
    with SqliteStore(path) as store:
        store.execute(ADMIT)
        before = other.read_bytes()
        remove_others = [file for file in tmp_path.iterdir() if file != other]
        for file in remove_others:
            file.unlink()
        other.rename(path)
        for command in EACH_CONNECTION:
            with pytest.raises(NotAStoreError, match="another file is there"):
                store.execute(command)
        assert path.read_bytes() == before
    assert path.read_bytes() == before


def test_a_file_that_was_emptied_is_not_filled_anew(tmp_path: Path) -> None:
    """Its tables are made at the first opening or never."""
    path = tmp_path / "jobs.db"
    with SqliteStore(path) as store:
        with store._main.lock:
            store._main.close()
        path.write_bytes(b"")
        for command in EACH_CONNECTION:
            with pytest.raises(StoreVersionError, match="found no unswept tables"):
                store.execute(command)
    assert path.read_bytes() == b""


# Waits ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("timeout_ms", [0, 100])
def test_the_busy_timeout_bounds_the_wait_for_other_threads(
    tmp_path: Path, timeout_ms: int
) -> None:
    """Not only the wait for the file."""
    with SqliteStore(tmp_path / "jobs.db", busy_timeout_ms=timeout_ms) as store:
        with held(store._main.lock):
            begin = time.monotonic()
            with pytest.raises(StoreUnavailableError, match="another thread's command"):
                store.execute(ADMIT)
            assert timeout_ms / 1000 <= time.monotonic() - begin < 5
        assert isinstance(store.execute(ADMIT), Accepted)


def test_many_threads_that_wait_wait_no_longer_than_one(tmp_path: Path) -> None:
    """Their waits for each other and for the file do not add up."""
    path = tmp_path / "jobs.db"
    waits: list[float] = []
    with SqliteStore(path, busy_timeout_ms=500) as store:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")

        def write(number: int) -> None:
            begin = time.monotonic()
            with pytest.raises(StoreUnavailableError):
                store.execute(c.Register(f"i{number}"))
            waits.append(time.monotonic() - begin)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        other.close()
    assert len(waits) == 8
    assert max(waits) < 2  # one after the other they took 4 s


def test_a_read_does_not_queue_behind_a_writer(tmp_path: Path) -> None:
    """While one waits for the file, what is committed can be read."""
    path = tmp_path / "jobs.db"
    with SqliteStore(path, busy_timeout_ms=20_000) as store:
        store.execute(ADMIT)
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        writing = threading.Thread(target=lambda: store.execute(c.Register("b")))
        writing.start()
        while not store._main.lock._holder:
            time.sleep(0.001)
        assert isinstance(store.execute(c.Find("j1")), Found)
        assert writing.is_alive()
        other.execute("ROLLBACK")
        other.close()
        writing.join()


@needs_fork
@forks_threads
def test_a_fork_waits_no_longer_than_a_command(tmp_path: Path) -> None:
    """Then it goes on without; the child is kept away from what it cannot use safely."""
    path = tmp_path / "jobs.db"
    with SqliteStore(path, busy_timeout_ms=100) as store:
        store.execute(ADMIT)

        def ask() -> None:
            for command in EACH_CONNECTION:
                with pytest.raises(StoreUnavailableError, match="was forked in the middle"):
                    store.execute(command)
            with pytest.raises(StoreUnavailableError, match="was forked in the middle"):
                SqliteStore(path)
            with SqliteStore(tmp_path / "other.db") as other:
                other.execute(ADMIT)
            store.close()

        with held(store._main.lock):
            begin = time.monotonic()
            assert in_child(ask) == 0
            assert time.monotonic() - begin < 5
        for command in EACH_CONNECTION:
            store.execute(command)
        assert in_child(lambda: store.execute(c.Register("child"))) == 0
        assert set(tables_of(path)["instances"]) == {"b", "child"}


# Re-entry ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["file", "memory"])
@pytest.mark.parametrize("command", EACH_CONNECTION)
def test_a_command_in_the_middle_of_one_is_misuse(
    tmp_path: Path, name: str, command: c.Command[Any]
) -> None:
    """Told at once, since its wait for itself would have no end; the first one is undisturbed."""
    told: list[MisuseError] = []

    def clock() -> Any:
        try:
            store.execute(command)
        except MisuseError as error:
            told.append(error)
        return 5

    path = ":memory:" if name == "memory" else tmp_path / "jobs.db"
    with SqliteStore(path, clock=clock) as store:
        assert isinstance(store.execute(ADMIT), Accepted)
        assert len(told) == 1
        assert "already in the middle of a command" in str(told[0])


SIGNALLED = """
import signal, sys
from unswept.adapters.sqlite import SqliteStore
from unswept.core.commands import Heartbeat, Register
from unswept.core.errors import MisuseError
from unswept.core.job import Terms
told = ran = 0
def beat(*_):
    global told, ran
    try:
        store.execute(Heartbeat("a", Terms(1, 1, 1, 1)))
        ran += 1
    except MisuseError:
        told += 1
store = SqliteStore(sys.argv[1], durability="normal")
signal.signal(signal.SIGALRM, beat)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
number = 0
while told < 20:
    store.execute(Register(f"i{number % 10}"))
    number += 1
signal.setitimer(signal.ITIMER_REAL, 0)
store.close()
print("told")
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timer signals")
def test_a_signal_handler_that_beats_does_not_hang(tmp_path: Path) -> None:
    """Wherever in a command the signal comes."""
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLED, str(tmp_path / "jobs.db")],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("told\n", "")


@needs_fork
def test_a_fork_in_the_middle_of_a_command_is_the_parents(tmp_path: Path) -> None:
    """The parent's command goes on, and the child's copy of it touches nothing."""
    path = tmp_path / "jobs.db"
    child: list[int] = []

    def clock() -> Any:
        child.append(os.fork())
        return 5

    with SqliteStore(path, clock=clock, busy_timeout_ms=20_000) as store:
        try:
            admitted = store.execute(ADMIT)
        except MisuseError as error:
            os._exit(0 if child == [0] and "was forked by the very thread" in str(error) else 2)
        except BaseException:
            os._exit(3)
        if child == [0]:
            os._exit(4)
        assert os.waitstatus_to_exitcode(os.waitpid(child[0], 0)[1]) == 0
        assert isinstance(admitted, Accepted)
    assert set(tables_of(path)["jobs"]) == {"j1"}


# Files of strangers -----------------------------------------------------------------------------

THEIRS = {
    "a table": ["CREATE TABLE unswept_x (id)"],
    "a table in capitals": ["CREATE TABLE UNSWEPT_JOBS (id)"],
    "a view": ["CREATE TABLE t (id)", "CREATE VIEW unswept_migrations AS SELECT 1 AS number"],
    "a text as number": [
        "CREATE TABLE unswept_migrations (number)",
        "INSERT INTO unswept_migrations VALUES ('x')",
    ],
    "no number": ["CREATE TABLE unswept_migrations (number)"],
    "no column": ["CREATE TABLE unswept_migrations (id)"],
    "number 0": [
        "CREATE TABLE unswept_migrations (number)",
        "INSERT INTO unswept_migrations VALUES (0)",
    ],
    "no other tables": [
        "CREATE TABLE unswept_migrations (number, name)",
        "INSERT INTO unswept_migrations VALUES (1, 'first')",
    ],
}


@pytest.mark.parametrize("migrate", [True, False])
@pytest.mark.parametrize("what", list(THEIRS))
def test_a_strangers_file_is_refused_as_it_is(tmp_path: Path, what: str, migrate: bool) -> None:
    """Byte for byte: it is not even turned to write-ahead logging."""
    path = tmp_path / "theirs.db"
    make(path, *THEIRS[what])
    before = path.read_bytes()
    with pytest.raises(NotAStoreError) as found:
        SqliteStore(path, migrate=migrate)
    assert str(path) in str(found.value)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_newer_file_is_refused_as_it_is(tmp_path: Path) -> None:
    """Whatever its journal: the setting is part of the file."""
    path = tmp_path / "jobs.db"
    SqliteStore(path).close()
    make(path, "PRAGMA journal_mode = DELETE", "INSERT INTO unswept_migrations VALUES (99, 'new')")
    before = path.read_bytes()
    with pytest.raises(StoreVersionError, match="found 99"):
        SqliteStore(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


# Arguments --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (None, "must be text, got None"),
        (5, "must be text, got 5"),
        ("x\ud800.db", r"got 'x\\ud800.db'"),
        ("memory:", "sqlite::memory: for a store in memory"),
        ("sqlite:memory:", "sqlite::memory: for a store in memory"),
    ],
)
def test_what_names_no_file_is_misuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: Any, said: str
) -> None:
    """The message names it, and nothing is made."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MisuseError, match=said):
        SqliteStore(name)
    assert list(tmp_path.iterdir()) == []


def test_a_clock_that_is_none_is_misuse(tmp_path: Path) -> None:
    """Nothing is made."""
    clock: Any = 5
    with pytest.raises(MisuseError, match="clock must be a callable or None, got 5"):
        SqliteStore(tmp_path / "jobs.db", clock=clock)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("now", [None, "5", 5.0, True, -1, 2**53 + 1])
def test_a_clock_that_tells_no_time_is_misuse(tmp_path: Path, now: Any) -> None:
    """Writes and reads refuse it, and write nothing."""
    path = tmp_path / "jobs.db"
    times: list[Any] = [now]
    with SqliteStore(path, clock=lambda: times[0]) as store:
        for command in (ADMIT, *EACH_CONNECTION):
            with pytest.raises(MisuseError, match=r"clock returns must be .*, got "):
                store.execute(command)
        assert not any(tables_of(path).values())
        for times[0] in (0, 2**53):
            assert isinstance(store.execute(ADMIT), Accepted)


@pytest.mark.parametrize("command", ["x", None, c.Find, []])
def test_what_is_no_command_is_misuse(command: Any) -> None:
    """The message names it."""
    with SqliteStore(":memory:") as store, pytest.raises(MisuseError, match="expected a command"):
        store.execute(command)


def test_a_copy_of_a_store_is_a_store(tmp_path: Path) -> None:
    """Which file it is matters only while it is open."""
    path, copy = tmp_path / "jobs.db", tmp_path / "copy.db"
    with SqliteStore(path) as store:
        store.execute(ADMIT)
    shutil.copy(path, copy)
    with SqliteStore(copy) as store:
        assert isinstance(store.execute(c.Find("j1")), Found)
