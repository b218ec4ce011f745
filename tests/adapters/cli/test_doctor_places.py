"""`unswept doctor` on a file and on a server: each fault of theirs that is planted is found."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tests.adapters.cli.doctors import TEST_SERVER, Doctor
from tests.adapters.cli.places import Place
from tests.adapters.postgres.places import changed, role
from tests.postgres_server import PostgresServer, running
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.doctor import file_checks
from unswept.core import commands as c

SOUND = {
    "fsync": "on",
    "synchronous_commit": "on",
    "autovacuum": "on",
    "idle_in_transaction_session_timeout": "60s",
}


# A file -------------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Place:
    folder = tmp_path / "file"
    folder.mkdir()
    place = Place(f"sqlite:{folder / 'jobs.db'}", None)
    with place.opened() as store:
        store.execute(c.Register("i1", host="h1", role="gateway"))
    return place


def test_another_journal_mode_is_bad(file: Place, doctors_config: str) -> None:
    """And is left as it is, which a store that is opened would not do."""
    file.do("PRAGMA journal_mode = DELETE")
    before = file.state()
    doctor = Doctor(file, doctors_config)
    assert doctor.look() == {"journal mode": "bad"}
    assert doctor.found("journal mode") == "delete"
    assert file.state() == before


def test_a_log_that_a_crash_has_left_stays(
    file: Place, doctors_config: str, tmp_path: Path
) -> None:
    """What is in it is seen, and neither the file nor the log is changed by it."""
    copy = tmp_path / "crashed"
    copy.mkdir()
    with file.opened() as store:
        store.execute(c.Enqueue("waits"))
        for name in ("jobs.db", "jobs.db-wal"):
            (copy / name).write_bytes((file.path.parent / name).read_bytes())
    place = Place(f"sqlite:{copy / 'jobs.db'}", None, made=True)
    crashed = Doctor(place, doctors_config)
    before = place.state()
    assert crashed.look() == {}
    assert crashed.found("jobs").startswith("1 waiting")
    after = place.state()
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    assert {name: after[name] for name in before} == before
    assert after["jobs.db-wal"]


def test_a_file_that_somebody_holds_is_bad(file: Place, doctors_config: str) -> None:
    """Whoever has the write lock for longer than an operation may take keeps all from renewing."""
    doctor = Doctor(file, doctors_config)
    with closing(sqlite3.connect(file.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert doctor.look() == {"write lock": "bad"}
        assert "another writer held the database" in doctor.found("write lock")
        other.execute("ROLLBACK")
    assert doctor.look() == {}


def test_a_network_file_system_is_bad(
    file: Place, doctors_config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the mount under which the file lies, the last one on that place; FUSE may be anything."""
    mounts = tmp_path / "mountinfo"
    monkeypatch.setattr(file_checks, "MOUNTS", mounts)
    folder = file.path.parent.resolve()
    lines = [
        "22 1 0:20 / / rw,relatime - ext4 /dev/vda rw",
        f"30 22 0:30 / {folder}-other rw - ext4 /dev/vdb rw",
        f"31 22 0:31 / {folder} rw,relatime shared:1 - ext4 /dev/vdb rw",
    ]
    doctor = Doctor(file, doctors_config)
    for kind, verdict in (("nfs4", "bad"), ("fuse.sshfs", "warn"), ("xfs", "ok")):
        over = f"32 22 0:32 / {folder} rw,relatime shared:1 - {kind} server:/jobs rw"
        mounts.write_text("\n".join([*lines, over]) + "\n")
        assert doctor.look().get("file system", "ok") == verdict
        assert doctor.found("file system").startswith(kind)
    mounts.unlink()
    assert doctor.look() == {"file system": "warn"}


def test_a_mount_with_a_blank_in_its_name_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table writes it in octal."""
    folder = (tmp_path / "my jobs").resolve()
    mounts = tmp_path / "mountinfo"
    escaped = str(folder).replace(" ", "\\040")
    mounts.write_text(f"1 1 0:1 / / rw - ext4 x rw\n2 1 0:2 / {escaped} rw - cifs x rw\n")
    monkeypatch.setattr(file_checks, "MOUNTS", mounts)
    assert file_checks.kind_of_file_system(str(folder / "jobs.db")) == "cifs"
    assert file_checks.kind_of_file_system("/jobs.db") == "ext4"


READ_ONLY = """
import os, sys
from unswept.adapters.doctor.examining import examine_file
from unswept.core.policy import LeasePolicy
if os.geteuid() == 0:  # once all is imported that only root may read
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
for each in examine_file(sys.argv[1], LeasePolicy()):
    print(each.check, each.verdict, each.found, sep="|")
"""


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_cannot_be_written_is_bad(file: Place, what: str) -> None:
    """Asked as a user who may only read, since the super-user may write anything."""
    folder = file.path.parent
    for parent in (folder, *folder.parents):  # pytest's folders are their owner's alone
        if parent.stat().st_uid == os.geteuid() and "pytest" in str(parent):
            parent.chmod(0o755)
    file.path.chmod(0o444 if what == "file" else 0o666)
    folder.chmod(0o777 if what == "file" else 0o555)
    try:
        done = subprocess.run(
            [sys.executable, "-c", READ_ONLY, str(file.path)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        folder.chmod(0o755)
    assert done.returncode == 0, done.stderr
    rows = [line.split("|") for line in done.stdout.splitlines()]
    bad = {check: found for check, verdict, found in rows if verdict == "bad"}
    closed = file.path if what == "file" else folder
    assert bad["access"] == f"not writable: {closed}"
    assert "not writable" in bad["write lock"] or "accepts no writes" in bad["write lock"]
    assert ("schema" in bad) is (what == "folder"), "a folder that takes no log cannot be read in"


def test_another_kind_of_file_is_bad(file: Place, doctors_config: str) -> None:
    """Whatever it is, it was left as it was."""
    file.path.write_text("no database at all, but long enough to be looked at " * 20)
    before = file.state()
    doctor = Doctor(file, doctors_config)
    assert doctor.look()["schema"] == "bad"
    assert "expected a SQLite database" in doctor.found("schema")
    assert file.state() == before


# A server -----------------------------------------------------------------------------------------


@pytest.fixture
def server_place(postgres_url: str, postgres_schema: str) -> Place:
    place = Place(postgres_url, postgres_schema)
    with place.opened() as store:
        store.execute(c.Register("i1", host="h1", role="gateway"))
    return place


@pytest.fixture
def sound_server() -> Iterator[PostgresServer]:
    with running(SOUND) as server:
        yield server


def test_the_server_of_the_tests_is_not_for_work(server_place: Place, doctors_config: str) -> None:
    """It is fast because it forgets: each setting that makes it so is told."""
    doctor = Doctor(server_place, doctors_config)
    assert doctor.look() == {}
    rows = {name: doctor.rows[name]["verdict"] for name in TEST_SERVER}
    assert rows == {"durability": "bad", "idle transactions": "warn", "autovacuum": "warn"}
    assert doctor.found("durability") == "fsync off, synchronous_commit off"


def test_a_sound_server_has_nothing_amiss_until_it_is_a_standby(
    sound_server: PostgresServer, doctors_config: str
) -> None:
    """Exit 0; as a standby it is bad, and suspects cannot be asked for."""
    place = Place(sound_server.url, "unswept")
    with place.opened() as store:
        store.execute(c.Register("i1", host="h1", role="gateway"))
    doctor = Doctor(place, doctors_config)
    doctor.look()
    assert {name for name, row in doctor.rows.items() if row["verdict"] != "ok"} == set()
    assert doctor.found("writes") == "the primary, takes writes"
    sound_server.stop()
    sound_server.start(standby=True)
    unasked = {"write lock": "bad", "suspects": "bad", "oldest suspect": "bad"}
    assert doctor.look() == {"writes": "bad", **unasked}
    assert doctor.found("writes") == "a standby"
    assert doctor.found("instances") == "1 registered, 0 silent"
    sound_server.stop()
    result = place.run("doctor", "--config", doctors_config)
    assert result.exit_code != ExitCode.HELD
    assert "cannot connect" in str(result.exception)


@pytest.mark.parametrize(
    ("lock", "verdicts"),
    [
        ("SHARE", {"write lock": "bad"}),
        ("ACCESS EXCLUSIVE", {"write lock": "bad", "the rest": "bad"}),
    ],
)
def test_a_lease_table_that_is_locked_is_bad(
    server_place: Place, doctors_config: str, lock: str, verdicts: dict[str, str]
) -> None:
    """As by a CREATE INDEX, past which readers still read; or so that nothing can be asked."""
    doctor = Doctor(server_place, doctors_config)
    with psycopg.connect(server_place.url) as other:
        other.execute(f"LOCK TABLE {server_place.schema}.jobs IN {lock} MODE".encode())
        assert doctor.look() == verdicts
    assert "locked for the whole operation timeout" in doctor.found("write lock")
    assert doctor.look() == {}


def test_a_role_that_may_only_read_is_told(server_place: Place, doctors_config: str) -> None:
    """By the privileges that it lacks, and by what the server makes of it."""
    schema = server_place.schema
    reads = (
        f"GRANT USAGE ON SCHEMA {schema} TO {{role}}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {{role}}",
        "ALTER ROLE {role} SET default_transaction_read_only = on",
    )
    with role(server_place.url, *reads) as url:
        server_place.words[1] = url
        doctor = Doctor(server_place, doctors_config)
        found = doctor.look()
        assert (found["privileges"], found["writes"]) == ("warn", "bad")
        assert doctor.found("writes") == "read-only"
        assert "DELETE on consumers" in doctor.found("privileges")
        assert found["suspects"] == "bad"
        assert "suspects" in doctor.rows["privileges"]["advice"]
        assert found["write lock"] == "bad"
        assert "transaction" not in doctor.rows["write lock"]["advice"]  # nobody holds anything
        assert "jobs" not in found


def test_nothing_is_made_where_no_store_is(
    postgres_url: str, postgres_schema: str, doctors_config: str
) -> None:
    """It says what makes one; the server itself is judged all the same."""
    place = Place(postgres_url, postgres_schema, made=True)
    doctor = Doctor(place, doctors_config)
    found = doctor.look()
    assert (found["schema"], found.get("server", "ok")) == ("bad", "ok")
    assert "unswept db init" in doctor.found("schema")
    assert "jobs" not in doctor.rows
    made = f"SELECT 1 FROM pg_namespace WHERE nspname = '{postgres_schema}'"
    assert place.do(made) == []


def test_a_clock_that_is_far_off_is_told(server_place: Place, doctors_config: str) -> None:
    """Either way; no lease depends on it."""
    body = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint + 7000"
    server_place.do(
        f"CREATE OR REPLACE FUNCTION {{}}now_ms() RETURNS bigint LANGUAGE sql AS '{body}'"
    )
    doctor = Doctor(server_place, doctors_config)
    assert doctor.look() == {"clock": "warn"}
    assert doctor.found("clock").startswith(("+6", "+7"))


def test_no_password_is_told(server_place: Place, doctors_config: str) -> None:
    """Neither in the table nor in JSON."""
    server_place.words[1] = changed(server_place.url, password="hush")
    for words in ((), ("--json",)):
        result = server_place.run("doctor", "--config", doctors_config, *words)
        assert "postgresql://postgres@" in result.output
        assert "hush" not in result.output
