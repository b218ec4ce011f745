"""`unswept db` as an operator calls it: init, check, sql."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from typer.testing import CliRunner, Result

from tests.adapters.postgres.places import changed, database, least, role, run
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.main import app, main
from unswept.adapters.postgres import PostgresStore
from unswept.adapters.postgres import schema as postgres_schema_module
from unswept.adapters.sql.migrations import Migration
from unswept.adapters.sqlite import SqliteStore
from unswept.core import commands as c
from unswept.core.job import Terms
from unswept.core.lease import Status
from unswept.core.replies import Accepted, Found
from unswept.core.units import Ms

TERMS = Terms(Ms(100), Ms(160), Ms(80), Ms(60))


class Place:
    """A database of either kind in which nothing is yet."""

    def __init__(self, url: str, schema: str | None) -> None:
        self.url = url
        self.words = ("--store", url) if schema is None else ("--store", url, "--schema", schema)
        self.schema = schema

    def db(self, verb: str, *more: str) -> Result:
        return db(verb, *self.words, *more)

    def apply(self, text: str) -> None:
        """As an administrator applies what `sql` prints."""
        if self.schema is None:
            with closing(sqlite3.connect(self.path)) as connection:
                connection.executescript(text)
        else:
            with psycopg.connect(self.url, autocommit=True) as connection:
                connection.execute(text.encode())

    def do(self, sql: str) -> None:
        """A statement on a table: `{}` is what its name begins with."""
        if self.schema is None:
            with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
                connection.execute(sql.format("unswept_"))
        else:
            run(self.url, sql.format(f"{self.schema}."))

    def state(self) -> object:
        """All that could be seen to change."""
        if self.schema is None:
            return self.path.read_bytes() if self.path.exists() else None
        return run(
            self.url,
            "SELECT oid, relname, relfilenode, xmin::text FROM pg_class"
            f" WHERE relnamespace = to_regnamespace('{self.schema}') ORDER BY oid",
        )

    def use(self) -> bool:
        """Can a store be opened that may make nothing?"""
        if self.schema is None:
            with SqliteStore(self.path, migrate=False) as store:
                return works(store)
        with PostgresStore(self.url, schema=self.schema, migrate=False) as opened:
            return works(opened)

    @property
    def path(self) -> Path:
        return Path(self.url.removeprefix("sqlite:"))


def db(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["db", *words])


def works(store: c.Store) -> bool:
    """The whole life of a job."""
    steps = (
        store.execute(c.Admit("j", "a", TERMS)),
        store.execute(c.Start("j", "a", 1, TERMS)),
        store.execute(c.Complete("j", "a", 1, Status.COMPLETED)),
    )
    found = store.execute(c.Find("j"))
    return all(isinstance(step, Accepted) for step in steps) and isinstance(found, Found)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "sqlite":
        yield Place(f"sqlite:{tmp_path / 'jobs.db'}", None)
    else:
        url = request.getfixturevalue("postgres_url")
        yield Place(url, request.getfixturevalue("postgres_schema"))


# Both kinds -------------------------------------------------------------------------------------


def test_init_makes_and_check_verifies(place: Place) -> None:
    """Each says what it found, and a second init has nothing to do."""
    before = place.state()
    missing = place.db("check")
    assert missing.exit_code == ExitCode.REFUTED
    assert "unswept db init" in missing.stderr
    assert place.state() == before
    made = place.db("init")
    assert made.exit_code == ExitCode.HELD, made.output
    assert "created at schema version 1" in made.stdout
    once = place.state()
    again = place.db("init")
    assert again.exit_code == ExitCode.HELD
    assert "is at schema version 1 already" in again.stdout
    checked = place.db("check")
    assert checked.exit_code == ExitCode.HELD
    assert "has schema version 1" in checked.stdout
    assert place.state() == once
    assert place.use()


def test_the_printed_sql_makes_the_same_store(place: Place) -> None:
    """Applied by hand it is one that `check` and a store that may make nothing accept."""
    printed = place.db("sql")
    assert printed.exit_code == ExitCode.HELD
    assert place.db("check").exit_code == ExitCode.REFUTED, "sql has connected"
    place.apply(printed.stdout)
    by_hand = place.state()
    checked = place.db("check")
    assert checked.exit_code == ExitCode.HELD, checked.output
    assert place.state() == by_hand
    assert place.use()
    assert "already" in place.db("init").stdout


def test_json_is_one_object_for_machines(place: Place) -> None:
    """Verdict, exit code, store and versions, or why not."""
    refused = place.db("check", "--json")
    assert refused.exit_code == ExitCode.REFUTED
    found = json.loads(refused.stdout)
    assert (found["verdict"], found["exit_code"]) == ("refuted", 1)
    assert "db init" in found["why"]
    for before in (0, 1):
        found = json.loads(place.db("init", "--json").stdout)
        assert (found["version_before"], found["version"]) == (before, 1)
    found = json.loads(place.db("check", "--json").stdout)
    assert (found["verdict"], found["exit_code"], found["version"]) == ("held", 0, 1)
    found = json.loads(place.db("sql", "--json").stdout)
    assert found["sql"] == place.db("sql").stdout


def test_a_newer_schema_is_refuted(place: Place) -> None:
    """Also by init, which leaves it as it was."""
    place.db("init")
    place.do("INSERT INTO {}migrations VALUES (99, 'from_the_future')")
    before = place.state()
    for verb in ("check", "init"):
        refused = place.db(verb)
        assert refused.exit_code == ExitCode.REFUTED
        assert "found 99" in refused.stderr
    assert place.state() == before


def test_a_missing_table_is_refuted(place: Place) -> None:
    """By its name."""
    place.db("init")
    place.do("DROP TABLE {}results")
    for verb in ("check", "init"):
        refused = place.db(verb)
        assert refused.exit_code == ExitCode.REFUTED
        assert "results" in refused.stderr


def test_tables_of_somebody_else_are_refuted(place: Place) -> None:
    """Nothing is made beside them."""
    if place.schema is not None:
        run(place.url, f"CREATE SCHEMA {place.schema}")
    place.do("CREATE TABLE {}jobs (id int)")
    before = place.state()
    for verb in ("check", "init"):
        refused = place.db(verb)
        assert refused.exit_code == ExitCode.REFUTED
        assert "jobs" in refused.stderr
    assert place.state() == before


def test_the_environment_names_the_store(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """UNSWEPT_STORE is the default, and the option is stronger."""
    monkeypatch.setenv("UNSWEPT_STORE", place.url)
    words = () if place.schema is None else ("--schema", place.schema)
    assert db("init", *words).exit_code == ExitCode.HELD
    assert place.db("check").exit_code == ExitCode.HELD
    monkeypatch.setenv("UNSWEPT_STORE", "sqlite:/nowhere/at/all.db")
    assert place.db("check").exit_code == ExitCode.HELD
    assert db("check").exit_code != ExitCode.HELD


# Postgres ---------------------------------------------------------------------------------------


def test_an_older_schema_is_migrated(
    postgres_url: str, postgres_schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """init says from which version to which; check only that it is older."""
    place = Place(postgres_url, postgres_schema)
    place.db("init")
    second = Migration(2, "notes", "ALTER TABLE {schema}.jobs ADD COLUMN note text;\n")
    migrations = (*postgres_schema_module.MIGRATIONS, second)
    monkeypatch.setattr(postgres_schema_module, "MIGRATIONS", migrations)
    monkeypatch.setattr(postgres_schema_module, "VERSION", 2)
    assert place.db("check").exit_code == ExitCode.REFUTED
    migrated = place.db("init")
    assert "migrated from schema version 1 to schema version 2" in migrated.stdout
    assert place.db("check").exit_code == ExitCode.HELD


def test_a_role_without_ddl_rights_works_on_what_was_applied(
    postgres_url: str, postgres_schema: str
) -> None:
    """It checks and uses the store that an administrator has made, and can make none."""
    place = Place(postgres_url, postgres_schema)
    place.apply(place.db("sql").stdout)
    with role(postgres_url, *least(postgres_schema)) as url:
        theirs = Place(url, postgres_schema)
        checked = theirs.db("check")
        assert checked.exit_code == ExitCode.HELD, checked.output
        assert theirs.db("init").exit_code == ExitCode.HELD  # nothing to do
        assert theirs.use()
        other = Place(url, f"{postgres_schema}_other")
        refused = other.db("init")
        assert refused.exit_code == ExitCode.REFUTED
        assert "lacks a privilege" in refused.stderr


def test_a_database_that_is_not_as_it_must_be_is_refuted(postgres_url: str) -> None:
    """It was reached, so this was found out."""
    with database(postgres_url, "ENCODING 'SQL_ASCII' LOCALE 'C'") as url:
        for verb in ("check", "init"):
            refused = db(verb, "--store", url)
            assert refused.exit_code == ExitCode.REFUTED
            assert "expected a database whose encoding is UTF8, found SQL_ASCII" in refused.stderr


# Out of reach, and wrong words ------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["check", "init"])
def test_out_of_reach_is_undetermined(
    verb: str, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No server, no database, no folder, a file that somebody else has locked."""
    monkeypatch.setattr("unswept.adapters.cli.db._PATIENCE_MS", 50)
    path = tmp_path / "locked.db"
    SqliteStore(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        urls = [
            "postgresql://nobody@127.0.0.1:1/nothing",
            changed(postgres_url, dbname="unswept_no_such_database"),
            f"sqlite:{path}",
        ]
        if verb == "init":
            urls.append(f"sqlite:{tmp_path / 'nowhere' / 'jobs.db'}")
        for url in urls:
            found = db(verb, "--store", url, "--json")
            assert found.exit_code == ExitCode.UNDETERMINED, found.output
            assert json.loads(found.stdout)["verdict"] == "undetermined"


@pytest.mark.parametrize("verb", ["check", "init", "sql"])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--store"),
        (("--store", "mysql://user:hidden@host/db"), "got mysql://user@host/db"),
        (("--store", "memory:"), "sqlite:PATH or postgresql://"),
        (("--store", "sqlite::memory:"), "in memory"),
        (("--store", "sqlite:"), "expected sqlite:PATH"),
        (("--store", "jobs.db"), "sqlite:PATH or postgresql://"),
        (("--store", "sqlite:jobs.db", "--schema", "mine"), "--schema is for Postgres"),
        (("--store", "postgresql://h/d", "--schema", "Bad Name"), "schema must be"),
        (("--store", "postgresql://user:hidden@with/more@host/db"), "percent-encoded"),
        (("--store", "sqlite:x", "postgres://u:hidden@host/db"), "postgres://u@host/db"),
    ],
)
def test_wrong_words_are_usage_errors(
    verb: str,
    words: tuple[str, ...],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit 2, whatever is wrong is named, and no password is quoted."""
    monkeypatch.delenv("UNSWEPT_STORE", raising=False)
    monkeypatch.setattr("sys.argv", ["unswept", "db", verb, *words])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == ExitCode.USAGE
    told = capsys.readouterr()
    assert said in told.err
    assert "hidden" not in told.out + told.err


def test_without_the_driver_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """psycopg is an extra: SQLite needs none."""
    monkeypatch.setitem(sys.modules, "psycopg_pool", None)
    monkeypatch.setattr("sys.argv", ["unswept", "db", "sql", "--store", "postgresql://h/d"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == ExitCode.USAGE
    assert "pip install 'unswept[postgres]'" in capsys.readouterr().err
    assert db("sql", "--store", "sqlite:jobs.db").exit_code == ExitCode.HELD
