"""`unswept doctor` finds each fault that is planted, changes nothing, and says what to do."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.adapters.cli.places import Place
from tests.adapters.postgres.places import changed, role
from tests.postgres_server import PostgresServer, running
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.main import main
from unswept.adapters.cli.stores import looking
from unswept.adapters.doctor import file_checks, server_checks, store_checks
from unswept.core import commands as c
from unswept.core.errors import MisuseError
from unswept.core.job import OnOrphan, Terms
from unswept.core.policy import LeasePolicy
from unswept.core.replies import Acknowledged, EventsLeased
from unswept.core.units import Ms

POLICY = """
[policy]
heartbeat_interval_ms = 8000
operation_timeout_ms = 1000
lease_ttl_ms = 60000
"""
TERMS = Terms(Ms(60_000), Ms(60_000), Ms(60_000), Ms(800))
LONG = "100000"
"""Longer ago than any bound of the policy."""
SOUND = {
    "fsync": "on",
    "synchronous_commit": "on",
    "autovacuum": "on",
    "idle_in_transaction_session_timeout": "60s",
}
TEST_SERVER = {"durability", "idle transactions", "autovacuum"}
"""What is amiss with the server of the tests, to make them fast."""


@pytest.fixture
def config(tmp_path: Path) -> str:
    file = tmp_path / "short.toml"
    file.write_text(POLICY)
    return str(file)


@pytest.fixture
def place(store_place: Place) -> Place:
    """A store with an instance that was just seen, and a job that it holds."""
    with store_place.opened() as store:
        store.execute(c.Register("i1", host="h1", role="gateway"))
        store.execute(c.Admit("j1", "i1", TERMS))
    return store_place


class Doctor:
    """What it finds amiss, each row by its check's name."""

    def __init__(self, place: Place, config: str) -> None:
        self.place = place
        self.config = config
        self.rows: dict[str, dict[str, str]] = {}

    def look(self, *words: str) -> dict[str, str]:
        """Verdicts that are not ok, but for those of the server of the tests."""
        result = self.place.run("doctor", "--config", self.config, "--json", *words)
        told = json.loads(result.stdout)
        self.rows = {each["check"]: each for each in told["findings"]}
        verdicts = {name: each["verdict"] for name, each in self.rows.items()}
        assert result.exit_code == told["exit_code"] == int("bad" in verdicts.values())
        assert all(each["advice"] for each in told["findings"] if each["verdict"] == "warn")
        return {
            name: verdict
            for name, verdict in verdicts.items()
            if verdict != "ok" and name not in TEST_SERVER
        }

    def found(self, check: str) -> str:
        return self.rows[check]["found"]


@pytest.fixture
def doctor(place: Place, config: str) -> Doctor:
    return Doctor(place, config)


# Both kinds of store ------------------------------------------------------------------------------


def test_a_sound_store_is_left_as_it_is(doctor: Doctor) -> None:
    """Nothing amiss is found, and nothing changes by the look."""
    before = doctor.place.state()
    assert doctor.look() == {}
    assert doctor.found("jobs") == "0 waiting, 1 queued, 0 running, 0 orphaned"
    assert doctor.found("instances") == "1 registered, 0 silent"
    shown = doctor.place.run("doctor", "--config", doctor.config)
    assert "oldest suspect" in shown.output
    assert f" ok, {0 if doctor.place.schema is None else 2} warn" in shown.output
    assert doctor.place.state() == before


def test_a_suspect_that_nobody_sweeps_is_bad(doctor: Doctor) -> None:
    """A young one is no more than a warning."""
    doctor.place.do("UPDATE {}jobs SET deadline = deadline - 60001")
    assert doctor.look() == {"suspects": "warn"}
    assert doctor.found("oldest suspect").startswith("j1, lapsed for ")
    doctor.place.do(f"UPDATE {{}}jobs SET deadline = deadline - {LONG}")
    assert doctor.look() == {"suspects": "warn", "oldest suspect": "bad"}
    assert "Nobody sweeps" in doctor.rows["oldest suspect"]["advice"]


def test_silent_instances_are_told(doctor: Doctor) -> None:
    """By name; where all are silent, nobody beats."""
    doctor.place.do(f"UPDATE {{}}instances SET seen_at = seen_at - {LONG}")
    assert doctor.look() == {"instances": "warn"}
    assert doctor.found("instances") == "1 registered, 1 silent: i1 (gateway on h1)"
    assert "Nobody beats" in doctor.rows["instances"]["advice"]
    with doctor.place.opened() as store:
        store.execute(c.Register("i2", host="h1", role="gateway"))
    assert doctor.look() == {"instances": "warn"}
    assert "Nobody beats" not in doctor.rows["instances"]["advice"]
    doctor.place.do("DELETE FROM {}instances")
    assert doctor.look() == {"instances": "warn"}


def test_orphans_wait_for_somebody(doctor: Doctor) -> None:
    """The one that waits longest is named."""
    with doctor.place.opened() as store:
        store.execute(c.Admit("held", "i1", TERMS, on_orphan=OnOrphan.HOLD))
        doctor.place.do("UPDATE {}jobs SET deadline = deadline - 60001 WHERE id = 'held'")
        [seen] = store.execute(c.Suspects()).suspects
        store.execute(c.Sweep("i2", (c.Target("held", 1, 1, seen.deadline),)))
    assert doctor.look() == {"orphans": "warn"}
    assert doctor.found("orphans").startswith("1, held for 0 s")
    assert "unswept orphans" in doctor.rows["orphans"]["advice"]


def test_a_consumer_that_lags_is_told(doctor: Doctor) -> None:
    """Bad where nobody reads; a warning where somebody does; events of this moment are no lag."""
    with doctor.place.opened() as store:
        leased = store.execute(c.LeaseEvents("mailer", "reader", Ms(3_600_000)))
        assert isinstance(leased, EventsLeased)
        assert doctor.look() == {}
        doctor.place.do(f"UPDATE {{}}events SET at = at - {LONG}")
        assert doctor.look() == {"consumers of events": "warn"}
        doctor.place.do("UPDATE {}consumers SET expires_at = 1")
        assert doctor.look() == {"consumers of events": "bad"}
        assert "mailer 1 events behind" in doctor.found("consumers of events")
        assert "read by nobody" in doctor.found("consumers of events")
        done = store.execute(c.Acknowledge("mailer", leased.token, 1, last=True))
        assert isinstance(done, Acknowledged)
    assert doctor.look() == {}


def test_dead_letters_are_told(doctor: Doctor) -> None:
    """With the last of them, and why it was given up."""
    with doctor.place.opened() as store:
        leased = store.execute(c.LeaseEvents("mailer", "reader", Ms(3_600_000)))
        assert isinstance(leased, EventsLeased)
        store.execute(c.Acknowledge("mailer", leased.token, 1, error="no such [address]"))
    assert doctor.look() == {"dead letters": "warn"}
    assert doctor.found("dead letters") == "mailer: 1, event 1: no such [address]"
    assert "no such [address]" in doctor.place.run("doctor").output


def test_a_schema_that_is_not_the_newest_is_bad(doctor: Doctor) -> None:
    """Then its rows are not asked, for nobody knows what they mean."""
    doctor.place.do("INSERT INTO {}migrations VALUES (99, 'from_the_future')")
    assert doctor.look() == {"schema": "bad"}
    assert "found 99" in doctor.found("schema")
    assert "jobs" not in doctor.rows


def test_a_tight_policy_is_told(doctor: Doctor) -> None:
    """The warnings of `check-config`."""
    Path(doctor.config).write_text(POLICY.replace("60000", "20000"))
    found = doctor.look()
    assert found["policy"] == "warn"
    assert "lease_ttl_ms (20000) is under 3 x" in doctor.found("policy")


def test_a_look_takes_no_command_that_writes(place: Place) -> None:
    """Not by mistake either."""
    with looking(place.url, place.schema) as look, pytest.raises(MisuseError, match="that reads"):
        look.execute(c.Enqueue("waits"))


@pytest.mark.parametrize(("trip_ms", "verdict"), [(0, "ok"), (30, "warn"), (60, "bad")])
def test_a_store_that_answers_slowly_is_told(trip_ms: int, verdict: str) -> None:
    """A heartbeat's three round trips must fit into the operation timeout, with room."""
    answer = store_checks.latency(Slow(trip_ms), LeasePolicy(operation_timeout_ms=Ms(150)))
    assert answer.verdict == verdict
    assert answer.expected.startswith("at most 50 ms")


class Slow:
    """A store far away."""

    where = "far away"

    def __init__(self, trip_ms: int) -> None:
        self._trip_ms = trip_ms

    def version(self) -> int:
        raise NotImplementedError

    def execute(self, command: c.Command[Any]) -> Any:
        raise NotImplementedError

    def write_lock_ms(self, most_ms: int) -> float:
        raise NotImplementedError

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        time.sleep(self._trip_ms / 1000)
        return [(1,)]


# A file -------------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Place:
    folder = tmp_path / "file"
    folder.mkdir()
    place = Place(f"sqlite:{folder / 'jobs.db'}", None)
    with place.opened() as store:
        store.execute(c.Register("i1", host="h1", role="gateway"))
    return place


def test_another_journal_mode_is_bad(file: Place, config: str) -> None:
    """And is left as it is, which a store that is opened would not do."""
    file.do("PRAGMA journal_mode = DELETE")
    before = file.state()
    doctor = Doctor(file, config)
    assert doctor.look() == {"journal mode": "bad"}
    assert doctor.found("journal mode") == "delete"
    assert file.state() == before


def test_a_log_that_a_crash_has_left_stays(file: Place, config: str, tmp_path: Path) -> None:
    """What is in it is seen, and neither the file nor the log is changed by it."""
    copy = tmp_path / "crashed"
    copy.mkdir()
    with file.opened() as store:
        store.execute(c.Enqueue("waits"))
        for name in ("jobs.db", "jobs.db-wal"):
            (copy / name).write_bytes((file.path.parent / name).read_bytes())
    place = Place(f"sqlite:{copy / 'jobs.db'}", None, made=True)
    crashed = Doctor(place, config)
    before = place.state()
    assert crashed.look() == {}
    assert crashed.found("jobs").startswith("1 waiting")
    after = place.state()
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    assert {name: after[name] for name in before} == before
    assert after["jobs.db-wal"]


def test_a_file_that_somebody_holds_is_bad(file: Place, config: str) -> None:
    """Whoever has the write lock for longer than an operation may take keeps all from renewing."""
    doctor = Doctor(file, config)
    with closing(sqlite3.connect(file.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert doctor.look() == {"write lock": "bad"}
        assert "another writer held the database" in doctor.found("write lock")
        other.execute("ROLLBACK")
    assert doctor.look() == {}


def test_a_network_file_system_is_bad(
    file: Place, config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    doctor = Doctor(file, config)
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


def test_another_kind_of_file_is_bad(file: Place, config: str) -> None:
    """Whatever it is, it was left as it was."""
    file.path.write_text("no database at all, but long enough to be looked at " * 20)
    before = file.state()
    doctor = Doctor(file, config)
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


def test_the_server_of_the_tests_is_not_for_work(server_place: Place, config: str) -> None:
    """It is fast because it forgets: each setting that makes it so is told."""
    doctor = Doctor(server_place, config)
    assert doctor.look() == {}
    rows = {name: doctor.rows[name]["verdict"] for name in TEST_SERVER}
    assert rows == {"durability": "bad", "idle transactions": "warn", "autovacuum": "warn"}
    assert doctor.found("durability") == "fsync off, synchronous_commit off"


def test_a_sound_server_has_nothing_amiss_until_it_is_a_standby(
    sound_server: PostgresServer, config: str
) -> None:
    """Exit 0; as a standby it is bad, and suspects cannot be asked for."""
    place = Place(sound_server.url, "unswept")
    with place.opened() as store:
        store.execute(c.Register("i1", host="h1", role="gateway"))
    doctor = Doctor(place, config)
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
    result = place.run("doctor", "--config", config)
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
    server_place: Place, config: str, lock: str, verdicts: dict[str, str]
) -> None:
    """As by a CREATE INDEX, past which readers still read; or so that nothing can be asked."""
    doctor = Doctor(server_place, config)
    with psycopg.connect(server_place.url) as other:
        other.execute(f"LOCK TABLE {server_place.schema}.jobs IN {lock} MODE".encode())
        assert doctor.look() == verdicts
    assert "locked for the whole operation timeout" in doctor.found("write lock")
    assert doctor.look() == {}


def test_a_role_that_may_only_read_is_told(server_place: Place, config: str) -> None:
    """By the privileges that it lacks, and by what the server makes of it."""
    schema = server_place.schema
    reads = (
        f"GRANT USAGE ON SCHEMA {schema} TO {{role}}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {{role}}",
        "ALTER ROLE {role} SET default_transaction_read_only = on",
    )
    with role(server_place.url, *reads) as url:
        server_place.words[1] = url
        doctor = Doctor(server_place, config)
        found = doctor.look()
        assert (found["privileges"], found["writes"]) == ("warn", "bad")
        assert doctor.found("writes") == "read-only"
        assert "DELETE on consumers" in doctor.found("privileges")
        assert found["suspects"] == "bad"
        assert "jobs" not in found


def test_nothing_is_made_where_no_store_is(
    postgres_url: str, postgres_schema: str, config: str
) -> None:
    """It says what makes one; the server itself is judged all the same."""
    place = Place(postgres_url, postgres_schema, made=True)
    doctor = Doctor(place, config)
    found = doctor.look()
    assert (found["schema"], found.get("server", "ok")) == ("bad", "ok")
    assert "unswept db init" in doctor.found("schema")
    assert "jobs" not in doctor.rows
    made = f"SELECT 1 FROM pg_namespace WHERE nspname = '{postgres_schema}'"
    assert place.do(made) == []


def test_a_clock_that_is_far_off_is_told(server_place: Place, config: str) -> None:
    """Either way; no lease depends on it."""
    body = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint + 7000"
    server_place.do(
        f"CREATE OR REPLACE FUNCTION {{}}now_ms() RETURNS bigint LANGUAGE sql AS '{body}'"
    )
    doctor = Doctor(server_place, config)
    assert doctor.look() == {"clock": "warn"}
    assert doctor.found("clock").startswith(("+6", "+7"))


def test_every_check_is_on_the_page() -> None:
    """And the page names none that is not there."""
    page = (Path(__file__).parents[3] / "docs" / "operating.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `([a-z ]+)` \| (?:SQLite|Postgres|both) \|", page, re.MULTILINE)
    tables = (
        *(file_checks.OF_THE_FILE, file_checks.OF_THE_DATABASE),
        *(server_checks.CHECKS, store_checks.CHECKS),
    )
    assert sorted(named) == sorted({check.name for table in tables for check in table})


# Out of reach -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite:none.db", "none.db: expected a SQLite database, found no file"),
        ("postgresql://ann:hush@/jobs?host=/nowhere", "cannot connect"),
    ],
)
@pytest.mark.usefixtures("elsewhere")
def test_a_store_out_of_reach_is_undetermined(
    url: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """Exit 3: it says which store, and no password; no file is made."""
    monkeypatch.setattr("sys.argv", ["unswept", "doctor", "--store", url])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == ExitCode.UNDETERMINED
    err = capsys.readouterr().err
    assert said in err
    assert "hush" not in err
    assert not list(tmp_path.iterdir())


def test_no_password_is_told(server_place: Place, config: str) -> None:
    """Neither in the table nor in JSON."""
    server_place.words[1] = changed(server_place.url, password="hush")
    for words in ((), ("--json",)):
        result = server_place.run("doctor", "--config", config, *words)
        assert "postgresql://postgres@" in result.output
        assert "hush" not in result.output
