"""What a store's file is, and that a wrong one is refused with nothing changed in it."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.adapters.sqlite.helpers import TERMS, Clock, environment
from unswept.adapters.sqlite import Durability, SqliteStore, schema_sql
from unswept.adapters.sqlite.errors import translated
from unswept.adapters.sqlite.opening import check_library
from unswept.core import commands as c
from unswept.core.errors import (
    MisuseError,
    NotAStoreError,
    OutcomeUnknownError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
    StoreVersionError,
)
from unswept.core.lease import Status
from unswept.core.replies import Accepted, Found, Refused
from unswept.core.values import Request

ADMIT = c.Admit("j1", "a", TERMS)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def query(path: Path, sql: str) -> list[tuple[object, ...]]:
    database = sqlite3.connect(path)
    try:
        return database.execute(sql).fetchall()
    finally:
        database.close()


def make(path: Path, *statements: str) -> None:
    database = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        database.execute(statement)
    database.close()


@contextmanager
def unchanged(*paths: Path) -> Iterator[None]:
    """The bytes and the folder are afterwards what they were before."""
    before = [path.read_bytes() for path in paths]
    beside = sorted(paths[0].parent.iterdir())
    yield
    assert [path.read_bytes() for path in paths] == before
    assert sorted(paths[0].parent.iterdir()) == beside


# Names ------------------------------------------------------------------------------------------


def test_a_url_a_path_and_a_text_name_the_same_file(tmp_path: Path) -> None:
    """`sqlite:PATH` and PATH, also where the path has what a URI would read as its own."""
    path = tmp_path / "a file? with #100% ü.db"
    with SqliteStore(path) as store:
        store.execute(ADMIT)
    for name in (path, str(path), f"sqlite:{path}"):
        with SqliteStore(name, migrate=False) as store:
            assert isinstance(store.execute(c.Find("j1")), Found)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_relative_path_is_fixed_when_the_store_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later change of directory moves no store."""
    monkeypatch.chdir(tmp_path)
    with SqliteStore("sqlite:jobs.db") as store:
        monkeypatch.chdir("/")
        store.execute(c.Heartbeat("a", TERMS))  # connects only now
        assert store.path == str(tmp_path / "jobs.db")


def test_stores_in_memory_are_apart() -> None:
    """`sqlite::memory:` and `:memory:` each make a store of their own, which ends with them."""
    with SqliteStore("sqlite::memory:") as one, SqliteStore(":memory:") as other:
        one.execute(ADMIT)
        assert isinstance(one.execute(c.Heartbeat("a", TERMS, (c.Hold("j1", 1),))), object)
        assert isinstance(other.execute(c.Find("j1")), Refused)


@pytest.mark.parametrize("name", ["", "sqlite:", "a\0b", b"jobs.db"])
def test_what_names_no_file_is_misuse(name: str) -> None:
    """Nothing is made."""
    with pytest.raises(MisuseError):
        SqliteStore(name)


def test_wrong_arguments_are_misuse(tmp_path: Path) -> None:
    """Each is named, and no file is made."""
    path = tmp_path / "jobs.db"
    with pytest.raises(MisuseError, match="durability must be one of full, normal, got 'off'"):
        SqliteStore(path, durability="off")
    with pytest.raises(MisuseError, match="busy_timeout_ms must be 0 to"):
        SqliteStore(path, busy_timeout_ms=-1)
    with pytest.raises(MisuseError, match="migrate must be True or False"):
        SqliteStore(path, migrate=1)  # type: ignore[arg-type]
    assert not path.exists()


# The file ---------------------------------------------------------------------------------------


def test_a_new_file_is_its_owners_alone(tmp_path: Path) -> None:
    """Mode 0600 whatever the umask, and the log beside it too."""
    before = os.umask(0)
    try:
        with SqliteStore(tmp_path / "jobs.db") as store:
            store.execute(ADMIT)
            files = sorted(tmp_path.iterdir())
            assert [file.name for file in files] == ["jobs.db", "jobs.db-shm", "jobs.db-wal"]
            assert {mode_of(file) for file in files} == {0o600}
    finally:
        os.umask(before)


def test_an_existing_files_mode_is_left(tmp_path: Path) -> None:
    """Whoever made it open to a group meant it."""
    path = tmp_path / "jobs.db"
    path.touch()
    path.chmod(0o660)
    with SqliteStore(path) as store:
        store.execute(ADMIT)
    assert mode_of(path) == 0o660


@pytest.mark.parametrize(("durability", "synchronous"), [("full", 2), (Durability.NORMAL, 1)])
def test_durability_is_what_was_chosen(
    tmp_path: Path, durability: Durability | str, synchronous: int
) -> None:
    """`full` syncs each commit, `normal` does not; both keep a write-ahead log."""
    with SqliteStore(tmp_path / "jobs.db", durability=durability) as store:
        store.execute(c.Heartbeat("a", TERMS))
        for connection in store._connections:
            database = connection.open()
            assert database.execute("PRAGMA synchronous").fetchall() == [(synchronous,)]
            assert database.execute("PRAGMA journal_mode").fetchall() == [("wal",)]


def test_full_is_the_default(tmp_path: Path) -> None:
    """An acknowledged write survives a power cut unless somebody chose otherwise."""
    with SqliteStore(tmp_path / "jobs.db") as store:
        assert store._main.open().execute("PRAGMA synchronous").fetchall() == [(2,)]


def test_an_applications_own_tables_are_let_be(tmp_path: Path) -> None:
    """The file may be shared: all that is ours begins with unswept_."""
    path = tmp_path / "app.db"
    make(path, "CREATE TABLE jobs (id)", "INSERT INTO jobs VALUES ('theirs')")
    with SqliteStore(path) as store:
        assert isinstance(store.execute(ADMIT), Accepted)
    assert query(path, "SELECT id FROM jobs") == [("theirs",)]
    names = query(path, "SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
    assert [name for (name,) in names if not str(name).startswith("unswept_")] == ["jobs"]


def test_a_store_is_there_again_when_it_is_reopened(tmp_path: Path) -> None:
    """What was acknowledged is kept."""
    path = tmp_path / "jobs.db"
    with SqliteStore(path, clock=Clock(5)) as store:
        admitted = store.execute(ADMIT)
    with SqliteStore(path, clock=Clock(5)) as store:
        again = store.execute(ADMIT)
    assert isinstance(admitted, Accepted)
    assert isinstance(again, Accepted)
    assert again.repeated
    assert again.standing == admitted.standing


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    """Closing twice is no fault; asking it anything is."""
    store = SqliteStore(tmp_path / "jobs.db")
    store.close()
    store.close()
    for command in (c.Find("j1"), c.Heartbeat("a", TERMS)):
        with pytest.raises(MisuseError, match="is closed; open the store anew"):
            store.execute(command)


# Wrong files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content", [b"not a database, " * 100, b"x", b"xy", b"SQLite format 2\0" * 64]
)
def test_another_kind_of_file_is_refused(tmp_path: Path, content: bytes) -> None:
    """It is left as it was, byte for byte."""
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with (
        unchanged(path),
        pytest.raises(NotAStoreError, match="expected a SQLite database") as found,
    ):
        SqliteStore(path)
    assert str(path) in str(found.value)


def test_a_damaged_database_is_refused(tmp_path: Path) -> None:
    """One whose pages are no pages."""
    path = tmp_path / "jobs.db"
    SqliteStore(path).close()
    damaged = bytearray(path.read_bytes())
    damaged[100:4096] = os.urandom(3996)
    path.write_bytes(damaged)
    with unchanged(path), pytest.raises(NotAStoreError, match="is damaged"):
        SqliteStore(path)


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    """Whatever is asked: an older library must not write what it does not understand."""
    path = tmp_path / "jobs.db"
    SqliteStore(path).close()
    make(path, "INSERT INTO unswept_migrations VALUES (99, 'from_the_future')")
    for migrate in (True, False):
        with unchanged(path), pytest.raises(StoreVersionError, match=r"found 99.*Upgrade unswept"):
            SqliteStore(path, migrate=migrate)


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (("DROP TABLE unswept_results",), "found no unswept_results. It"),
        (
            (
                "DROP INDEX unswept_instances_here",
                "ALTER TABLE unswept_instances DROP COLUMN gone_at",
            ),
            r"found no unswept_instances\.gone_at. It",
        ),
    ],
    ids=["a table", "a column"],
)
def test_what_is_missing_is_named(tmp_path: Path, statements: tuple[str, ...], said: str) -> None:
    """Else each command that needs it would fail, and all others would not."""
    path = tmp_path / "jobs.db"
    SqliteStore(path).close()
    make(path, *statements)
    for migrate in (True, False):
        with unchanged(path), pytest.raises(NotAStoreError, match=said):
            SqliteStore(path, migrate=migrate)


def test_strangers_tables_with_our_names_are_refused(tmp_path: Path) -> None:
    """They were made by no migration, so nothing is known of them."""
    path = tmp_path / "jobs.db"
    make(path, "PRAGMA journal_mode = WAL", "CREATE TABLE unswept_jobs (id)")
    with unchanged(path), pytest.raises(NotAStoreError, match="found unswept_jobs"):
        SqliteStore(path)


def test_verify_only_makes_and_migrates_nothing(tmp_path: Path) -> None:
    """No file, an empty one, somebody else's: all are refused as they are."""
    missing, empty, theirs = (tmp_path / name for name in ("missing", "empty", "theirs"))
    empty.touch()
    make(theirs, "CREATE TABLE jobs (id)")
    with unchanged(empty, theirs):
        with pytest.raises(StoreVersionError, match=r"found no file.*db init"):
            SqliteStore(missing, migrate=False)
        for path in (empty, theirs):
            with pytest.raises(StoreVersionError, match="found no unswept tables"):
                SqliteStore(path, migrate=False)
    with pytest.raises(StoreVersionError):
        SqliteStore(":memory:", migrate=False)


def test_verify_only_opens_what_is_current(tmp_path: Path) -> None:
    """Then it is a store like any other."""
    path = tmp_path / "jobs.db"
    SqliteStore(path).close()
    with SqliteStore(path, migrate=False) as store:
        assert isinstance(store.execute(ADMIT), Accepted)


def test_no_directory_and_a_directory_as_file(tmp_path: Path) -> None:
    """The message says where to look."""
    with pytest.raises(StoreUnavailableError, match="does its directory exist"):
        SqliteStore(tmp_path / "nowhere" / "jobs.db")
    with pytest.raises(StoreUnavailableError, match="Is the path a file"):
        SqliteStore(tmp_path)


def test_an_old_sqlite_library_is_refused() -> None:
    """STRICT tables came with 3.37."""
    with pytest.raises(StoreError, match=r"expected the SQLite library 3\.37\.0.*found 3\.36\.0"):
        check_library((3, 36, 0))
    check_library((3, 37, 0))


READ_ONLY = """
import os, sys
from unswept.adapters.sqlite import SqliteStore
from unswept.core.errors import StoreReadOnlyError
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    SqliteStore(sys.argv[1])
except StoreReadOnlyError as error:
    print("refused:", error)
"""


@pytest.mark.parametrize("what", ["file", "directory", "new file"])
def test_what_cannot_be_written_is_refused(tmp_path: Path, what: str) -> None:
    """A read-only file, a directory that takes no log, and one that takes no file."""
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "jobs.db"
    if what != "new file":
        SqliteStore(path).close()
        path.chmod(0o444 if what == "file" else 0o666)
    folder.chmod(0o777 if what == "file" else 0o555)
    before = path.read_bytes() if path.exists() else None
    try:
        # Another process, since the super-user may write anything.
        got = _run_elsewhere(READ_ONLY, tmp_path, str(path))
        assert got.startswith("refused:"), got
        assert str(path) in got
        assert (path.read_bytes() if path.exists() else None) == before
        assert sorted(folder.iterdir()) == ([path] if before is not None else [])
    finally:
        folder.chmod(0o755)


def _run_elsewhere(code: str, tmp_path: Path, *args: str) -> str:
    for parent in (tmp_path, *tmp_path.parents):  # pytest's folders are their owner's alone
        if parent.stat().st_uid == os.geteuid() and parent.name.startswith(("pytest", "test_")):
            parent.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *args],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout.strip() or done.stderr


# While it is open -------------------------------------------------------------------------------


def test_a_full_disk_undoes_the_whole_command(tmp_path: Path) -> None:
    """The command before it stands, nothing of it is left, and the store goes on once there is
    room again."""
    path = tmp_path / "jobs.db"
    with SqliteStore(path) as store:
        store.execute(ADMIT)
        pages = query(path, "PRAGMA page_count")[0][0]
        database = store._main.open()
        database.execute(f"PRAGMA max_page_count = {pages}")
        big = c.Admit("j2", "a", TERMS, request=Request(b"x" * 100_000, "p", "k"))
        with pytest.raises(StoreFullError, match="Free some space and repeat"):
            store.execute(big)
        assert query(path, "SELECT id FROM unswept_job_ids") == [("j1",)]
        assert query(path, "SELECT count(*) FROM unswept_dedup_keys") == [(0,)]
        assert query(path, "SELECT count(*) FROM unswept_events") == [(1,)]
        database.execute("PRAGMA max_page_count = 1000000")
        assert isinstance(store.execute(big), Accepted)


LIMITED = """
import resource, signal, sys
from unswept.adapters.sqlite import SqliteStore
from unswept.core import commands as c
from unswept.core.errors import StoreError
from unswept.core.job import Terms
from unswept.core.values import Request
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = SqliteStore(sys.argv[1])
terms = Terms(100, 100, 100, 100)
store.execute(c.Admit("j1", "a", terms))
unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, unlimited[1]))
big = c.Admit("j2", "a", terms, request=Request(b"x" * 1_000_000))
try:
    store.execute(big)
except StoreError as error:
    print(type(error).__name__)
resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
print(type(store.execute(c.Find("j1"))).__name__, type(store.execute(c.Find("j2"))).__name__)
print(type(store.execute(big)).__name__)
"""


def test_a_write_that_the_system_refuses_undoes_the_whole_command(tmp_path: Path) -> None:
    """The same for a write that fails for another reason than a full disk."""
    got = _run_elsewhere(LIMITED, tmp_path, str(tmp_path / "jobs.db")).split()
    assert got[0] in {"StoreUnavailableError", "OutcomeUnknownError", "StoreFullError"}, got
    assert got[1:] == ["Found", "Refused", "Accepted"], got


def test_a_failed_write_is_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """SQLite says only that a write failed: whether the disk is full is asked of the system, and a
    commit that failed may have taken effect."""
    failed = sqlite3.OperationalError("disk I/O error")
    failed.sqlite_errorcode = sqlite3.SQLITE_IOERR | 3 << 8
    path = str(tmp_path / "jobs.db")
    assert isinstance(translated(failed, path), StoreUnavailableError)
    assert isinstance(translated(failed, path, committing=True), OutcomeUnknownError)
    monkeypatch.setattr("os.statvfs", lambda _: SimpleNamespace(f_bavail=0))
    assert isinstance(translated(failed, path), StoreFullError)
    assert isinstance(translated(failed, path, committing=True), OutcomeUnknownError)


def test_another_writer_is_waited_for_and_then_reported(tmp_path: Path) -> None:
    """A lock that outlasts the busy timeout costs the command, and nothing else."""
    path = tmp_path / "jobs.db"
    with SqliteStore(path, busy_timeout_ms=50) as store:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailableError, match="for the whole busy timeout"):
            store.execute(ADMIT)
        with pytest.raises(StoreUnavailableError):
            store.execute(c.Heartbeat("a", TERMS))
        assert isinstance(store.execute(c.Find("j1")), Refused)  # readers do not wait
        other.execute("ROLLBACK")
        other.close()
        assert isinstance(store.execute(ADMIT), Accepted)


def test_a_table_that_was_dropped_is_reported(tmp_path: Path) -> None:
    """As the outside world's doing, not as a fault of the caller's."""
    path = tmp_path / "jobs.db"
    with SqliteStore(path) as store:
        make(path, "DROP TABLE unswept_results")
        store.execute(ADMIT)
        with pytest.raises(StoreError, match="Were its tables changed by hand"):
            store.execute(c.Complete("j1", "a", 1, Status.COMPLETED))
        found = store.execute(c.ReadRequest("j1"))
        assert not isinstance(found, Refused)
        assert query(path, "SELECT status FROM unswept_jobs") == [("queued",)]


def test_an_error_of_the_clock_undoes_the_command(tmp_path: Path) -> None:
    """Whatever goes wrong in a transaction, it is rolled back and the store goes on."""
    path = tmp_path / "jobs.db"
    broken = True

    def clock() -> int:
        if broken:
            raise KeyboardInterrupt
        return 5

    with SqliteStore(path, clock=clock) as store:  # type: ignore[arg-type]
        with pytest.raises(KeyboardInterrupt):
            store.execute(ADMIT)
        broken = False
        assert isinstance(store.execute(ADMIT), Accepted)


def test_the_schema_can_be_printed_and_run_by_hand(tmp_path: Path) -> None:
    """The printed SQL makes the same store as opening does."""
    by_hand, opened = tmp_path / "by_hand.db", tmp_path / "opened.db"
    database = sqlite3.connect(by_hand)
    database.executescript(schema_sql())
    database.close()
    SqliteStore(opened).close()
    schema = "SELECT type, name, sql FROM sqlite_master ORDER BY name"
    assert query(by_hand, schema) == query(opened, schema)
    with SqliteStore(by_hand, migrate=False) as store:
        assert isinstance(store.execute(ADMIT), Accepted)
