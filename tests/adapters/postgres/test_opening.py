"""What a store's schema is, and that a wrong one is refused with nothing changed in it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.adapters.postgres.conftest import Connect
from tests.adapters.postgres.helpers import TERMS, Meanwhile, Observer
from tests.adapters.postgres.places import KINDS, database, open_once, opened, run
from tests.adapters.sqlite.helpers import environment
from unswept.adapters.postgres import AsyncPostgresStore, PostgresStore, schema
from unswept.adapters.sql.migrations import Migration
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


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Both kinds of store prepare the schema alike."""
    assert isinstance(request.param, str)
    return request.param


def contents(url: str, name: str) -> list[tuple[Any, ...]]:
    """Whatever is in a schema; what was changed or made anew differs."""
    return run(
        url,
        f"SELECT oid, relname, relfilenode, xmin::text FROM pg_class"
        f" WHERE relnamespace = to_regnamespace('{name}') ORDER BY oid",
    )


@contextmanager
def unchanged(url: str, name: str) -> Iterator[None]:
    before = contents(url, name)
    yield
    assert contents(url, name) == before


def make(url: str, name: str, *statements: str) -> None:
    """A newest store, and what was done to it by hand; `{}` is its schema."""
    PostgresStore(url, schema=name).close()
    run(url, *(statement.format(name) for statement in statements))


# Making and verifying ---------------------------------------------------------------------------


def test_a_store_is_made_and_is_there_again(
    kind: str, postgres_url: str, postgres_schema: str
) -> None:
    """Opened anew, also by one that may make nothing, it has what was acknowledged."""
    with opened(kind, postgres_url, schema=postgres_schema) as store:
        assert isinstance(store.execute(ADMIT), Accepted)
    with (
        unchanged(postgres_url, postgres_schema),
        opened(kind, postgres_url, schema=postgres_schema) as again,
        opened(kind, postgres_url, schema=postgres_schema, migrate=False) as verified,
    ):
        assert isinstance(again.execute(c.Find("j1")), Found)
        assert isinstance(verified.execute(c.Find("j1")), Found)


def test_verify_only_makes_nothing(kind: str, postgres_url: str, postgres_schema: str) -> None:
    """No schema, and one in which nothing of ours is."""
    with pytest.raises(StoreVersionError, match=r"found no unswept tables.*unswept db init"):
        open_once(kind, postgres_url, schema=postgres_schema, migrate=False)
    assert run(postgres_url, f"SELECT to_regnamespace('{postgres_schema}')") == [(None,)]
    run(postgres_url, f"CREATE SCHEMA {postgres_schema}")
    run(postgres_url, f"CREATE TABLE {postgres_schema}.orders (id int)")
    with unchanged(postgres_url, postgres_schema), pytest.raises(StoreVersionError):
        open_once(kind, postgres_url, schema=postgres_schema, migrate=False)


def test_a_schema_that_is_there_is_used(kind: str, postgres_url: str, postgres_schema: str) -> None:
    """An administrator may make it, for a role that may not; what else is in it is let be."""
    run(postgres_url, f"CREATE SCHEMA {postgres_schema}")
    run(postgres_url, f"CREATE TABLE {postgres_schema}.orders (id int)")
    with opened(kind, postgres_url, schema=postgres_schema) as store:
        assert isinstance(store.execute(ADMIT), Accepted)
    assert run(postgres_url, f"SELECT * FROM {postgres_schema}.orders") == []


def test_what_is_checked_is_what_the_migrations_make(
    postgres_url: str, postgres_schema: str
) -> None:
    """Read out of their text, all tables, columns and functions, and nothing else."""
    make(postgres_url, postgres_schema)
    there = run(
        postgres_url,
        f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{postgres_schema}'"
        f" UNION ALL SELECT table_name || '.' || column_name FROM information_schema.columns"
        f" WHERE table_schema = '{postgres_schema}'"
        f" UNION ALL SELECT routine_name || '()' FROM information_schema.routines"
        f" WHERE routine_schema = '{postgres_schema}'",
    )
    expected = {"migrations", "migrations.number", "migrations.name"}
    assert {name for (name,) in there} == schema._made_by(schema.MIGRATIONS) | expected


# Versions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("migrate", [True, False])
def test_a_newer_version_is_refused(
    kind: str, migrate: bool, postgres_url: str, postgres_schema: str
) -> None:
    """Whatever is asked: an older library must not write what it does not understand."""
    make(postgres_url, postgres_schema, "INSERT INTO {}.migrations VALUES (99, 'future')")
    with (
        unchanged(postgres_url, postgres_schema),
        pytest.raises(StoreVersionError, match=r"found 99.*Upgrade unswept"),
    ):
        open_once(kind, postgres_url, schema=postgres_schema, migrate=migrate)


@pytest.fixture
def second(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A library that is one version ahead, once its migration's text is given."""
    text: list[str] = []

    class Later(Migration):
        @property
        def statements(self) -> tuple[str, ...]:
            return tuple(text)

    migrations = (*schema.MIGRATIONS, Later(2, "later", ""))
    monkeypatch.setattr(schema, "MIGRATIONS", migrations)
    monkeypatch.setattr(schema, "VERSION", 2)
    return text


def test_an_older_version_is_migrated(
    kind: str, postgres_url: str, postgres_schema: str, second: list[str]
) -> None:
    """If that may be done, with all that is in it; else it is refused as it is."""
    with pytest.MonkeyPatch.context() as before:
        before.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:1])
        before.setattr(schema, "VERSION", 1)
        with PostgresStore(postgres_url, schema=postgres_schema) as store:
            store.execute(ADMIT)
    second.append("ALTER TABLE {schema}.jobs ADD COLUMN note text")
    with (
        unchanged(postgres_url, postgres_schema),
        pytest.raises(StoreVersionError, match="expected schema version 2, found schema version 1"),
    ):
        open_once(kind, postgres_url, schema=postgres_schema, migrate=False)
    with opened(kind, postgres_url, schema=postgres_schema) as store:
        assert isinstance(store.execute(c.Find("j1")), Found)
    rows = run(postgres_url, f"SELECT number, name FROM {postgres_schema}.migrations ORDER BY 1")
    assert rows[1] == (2, "later")
    assert run(postgres_url, f"SELECT note FROM {postgres_schema}.jobs") == [(None,)]


def test_a_migration_that_fails_leaves_nothing(
    kind: str, postgres_url: str, postgres_schema: str, second: list[str]
) -> None:
    """The first steps are taken back with the last, the schema itself too."""
    second += ["CREATE TABLE {schema}.more (id int)", "SELECT 1 / 0"]
    with pytest.raises(StoreError, match="division by zero"):
        open_once(kind, postgres_url, schema=postgres_schema)
    assert run(postgres_url, f"SELECT to_regnamespace('{postgres_schema}')") == [(None,)]


# Whoever made it --------------------------------------------------------------------------------


@pytest.mark.parametrize("migrate", [True, False])
@pytest.mark.parametrize(
    ("made", "said"),
    [
        (("CREATE TABLE {}.jobs (id int)",), "found jobs"),
        (("CREATE VIEW {}.events AS SELECT 1 AS seq", "CREATE TABLE {}.jobs ()"), "events, jobs"),
        (("CREATE FUNCTION {}.now_ms() RETURNS int RETURN 1",), r"now_ms\(\)"),
        (("CREATE TABLE {}.migrations (number text)",), "no unswept made that table"),
        (
            (
                "CREATE TABLE {}.migrations (number text)",
                "INSERT INTO {}.migrations VALUES ('20240101'), ('one'), (NULL)",
            ),
            "no unswept made that table",
        ),
        (
            (
                "CREATE TABLE {}.migrations (id int, migration text)",
                "INSERT INTO {}.migrations VALUES (1, 'create_users')",
            ),
            "no unswept made that table",
        ),
        (
            (
                "CREATE TABLE {}.migrations (number int)",
                "INSERT INTO {}.migrations VALUES (1)",
                "CREATE TABLE {}.jobs (id int)",
            ),
            r"found no consumers, .*jobs\.epoch.*now_ms\(\)",
        ),
    ],
)
def test_strangers_tables_of_the_same_names_are_refused(
    made: tuple[str, ...], said: str, migrate: bool, postgres_url: str, postgres_schema: str
) -> None:
    """They are left as they were, and nothing is made beside them."""
    run(postgres_url, *(s.format(postgres_schema) for s in ("CREATE SCHEMA {}", *made)))
    with (
        unchanged(postgres_url, postgres_schema),
        pytest.raises(NotAStoreError, match=said),
    ):
        PostgresStore(postgres_url, schema=postgres_schema, migrate=migrate)


@pytest.mark.parametrize(
    ("done", "said"),
    [
        ("DROP TABLE {}.results", "found no results. It"),
        ("ALTER TABLE {}.jobs DROP COLUMN partition", r"found no jobs\.partition. It"),
        ("ALTER TABLE {}.jobs RENAME COLUMN beats TO b", r"found no jobs\.beats. It"),
        ("DROP FUNCTION {}.now_ms", r"found no now_ms\(\)"),
        ("DELETE FROM {}.migrations", r"expected the numbers of migrations.*found \[\]"),
    ],
)
def test_what_is_missing_is_named(
    done: str, said: str, postgres_url: str, postgres_schema: str
) -> None:
    """A store whose tables were changed by hand is refused when it is opened."""
    make(postgres_url, postgres_schema, done)
    for migrate in (True, False):
        with (
            unchanged(postgres_url, postgres_schema),
            pytest.raises(NotAStoreError, match=said),
        ):
            PostgresStore(postgres_url, schema=postgres_schema, migrate=migrate)


# Several at once --------------------------------------------------------------------------------


def test_threads_that_open_at_once_make_one_schema(postgres_url: str, postgres_schema: str) -> None:
    """One makes it, the others find it made."""

    def work() -> None:
        PostgresStore(postgres_url, schema=postgres_schema).close()

    for done in [Meanwhile(work) for _ in range(6)]:
        done.result()
    assert run(postgres_url, f"SELECT count(*) FROM {postgres_schema}.migrations") == [(1,)]


OPEN = """
import sys
from unswept.adapters.postgres import PostgresStore
input()
PostgresStore(sys.argv[1], schema=sys.argv[2]).close()
"""


def test_processes_that_open_at_once_make_one_schema(
    postgres_url: str, postgres_schema: str
) -> None:
    """The same across processes, begun at the same word."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN, postgres_url, postgres_schema],
            env=environment(),
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    assert [process.communicate()[1] for process in processes] == ["", ""]
    assert run(postgres_url, f"SELECT count(*) FROM {postgres_schema}.migrations") == [(1,)]


def test_a_migration_under_way_is_waited_for(
    kind: str, postgres_url: str, postgres_schema: str, connect: Connect, observer: Observer
) -> None:
    """Whoever comes second takes what stands then, and migrates nothing."""
    first = connect()
    first.begin()
    sql, params = schema._turn(postgres_schema)
    first.run(sql, **params)
    for statement in schema.schema_sql(postgres_schema).split(";\n")[1:-2]:
        first.run(statement)

    second = Meanwhile(lambda: open_once(kind, postgres_url, schema=postgres_schema))
    assert observer.sees_wait(second, first)
    first.commit()
    second.result()


def test_a_locked_schema_is_not_waited_for_without_end(
    kind: str,
    postgres_url: str,
    postgres_schema: str,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither is its making, where somebody else has the turn."""
    monkeypatch.setattr(schema, "PATIENCE_MS", 50)
    sql, params = schema._turn(postgres_schema)
    stranger = connect()
    stranger.begin()
    stranger.run(sql, **params)
    with pytest.raises(StoreUnavailableError, match="55P03"):
        open_once(kind, postgres_url, schema=postgres_schema)
    stranger.rollback()
    make(postgres_url, postgres_schema)
    stranger.begin()
    stranger.run(f"LOCK TABLE {postgres_schema}.migrations")
    with pytest.raises(StoreUnavailableError, match="55P03"):
        open_once(kind, postgres_url, schema=postgres_schema, migrate=False)
    stranger.rollback()


# Names and servers ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["", "Jobs", "1a", "a-b", "a b", 'a"b', "a.b", "ä", "a" * 64, "pg_own", None, 5, "a\n"]
)
def test_what_is_no_schemas_name_is_misuse(name: Any) -> None:
    """It would stand in statements without quotes."""
    for store in (PostgresStore, AsyncPostgresStore):
        with pytest.raises(MisuseError, match="schema must"):
            store("postgresql://nobody@127.0.0.1:1/nothing", schema=name)


@pytest.mark.parametrize("name", ["order", "user", "between"])
def test_a_word_of_sql_is_no_schemas_name(kind: str, name: str, postgres_url: str) -> None:
    """The server knows which words those are."""
    with pytest.raises(MisuseError, match="schema must be no word of SQL"):
        open_once(kind, postgres_url, schema=name)


def test_schemas_are_apart(kind: str, postgres_url: str, postgres_schema: str) -> None:
    """Two stores of one database share nothing; the longest name is one."""
    other = f"{postgres_schema}_{'x' * 63}"[:63]
    try:
        with (
            opened(kind, postgres_url, schema=postgres_schema) as one,
            opened(kind, postgres_url, schema=other) as two,
        ):
            one.execute(ADMIT)
            admitted = two.execute(ADMIT)
            assert isinstance(admitted, Accepted)
            assert not admitted.repeated
    finally:
        run(postgres_url, f"DROP SCHEMA IF EXISTS {other} CASCADE")


def test_a_database_in_another_encoding_is_refused(postgres_url: str) -> None:
    """Not every id could be stored in it; nothing is made."""
    with database(postgres_url, "ENCODING 'LATIN1' LOCALE 'C'") as url:
        for kind in KINDS:
            with pytest.raises(StoreError, match=r"encoding is UTF8, found LATIN1.*ENCODING"):
                open_once(kind, url)
        assert run(url, "SELECT to_regnamespace('unswept')") == [(None,)]


def test_a_server_that_is_too_old_is_refused(
    kind: str, postgres_url: str, postgres_schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is made on it."""
    monkeypatch.setattr(schema, "OLDEST_SERVER", 990_000)
    with pytest.raises(StoreError, match="expected Postgres 99 or newer, found"):
        open_once(kind, postgres_url, schema=postgres_schema)
    assert run(postgres_url, f"SELECT to_regnamespace('{postgres_schema}')") == [(None,)]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "jobs.db",
        "sqlite:jobs.db",
        "host=here dbname=there",
        "postgresql:/host/db",
        "postgresql://host/db?bogus=1",
        "postgresql://host:port/db",
        "postgresql://user:a@b@host/db",
        "postgresql://user:a/b@host/db",
        "postgresql://user:a b@host/db",
        "postgresql://user:%zz@host/db",
        "postgresql://host\0/db",
        "postgresql://user:\ud800@host/db",
        b"postgresql://host/db",
        None,
    ],
)
def test_what_names_no_server_is_misuse(url: Any) -> None:
    """Nothing is connected."""
    for store in (PostgresStore, AsyncPostgresStore):
        with pytest.raises(MisuseError, match="url must"):
            store(url)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"operation_timeout_ms": 0}, "operation_timeout_ms must be 1 to"),
        ({"max_connections": 0}, "max_connections must be 1 to"),
        ({"migrate": 1}, "migrate must be True or False"),
    ],
)
def test_wrong_arguments_are_misuse(options: dict[str, Any], said: str) -> None:
    """Each is named."""
    for store in (PostgresStore, AsyncPostgresStore):
        with pytest.raises(MisuseError, match=said):
            store("postgresql://nobody@127.0.0.1:1/nothing", **options)


# The asynchronous one ---------------------------------------------------------------------------


def test_the_first_command_opens(postgres_url: str, postgres_schema: str) -> None:
    """Several at once wait for one opening."""

    async def work() -> list[Any]:
        store = AsyncPostgresStore(postgres_url, schema=postgres_schema)
        try:
            admits = [c.Admit(f"j{number}", "a", TERMS) for number in range(8)]
            return await asyncio.gather(*map(store.execute, admits))
        finally:
            await store.close()

    assert all(isinstance(reply, Accepted) for reply in asyncio.run(work()))


def test_an_opening_that_was_cancelled_can_be_repeated(
    postgres_url: str, postgres_schema: str, connect: Connect, observer: Observer
) -> None:
    """Also in the middle of a migration."""
    stranger = connect()
    stranger.begin()
    sql, params = schema._turn(postgres_schema)
    stranger.run(sql, **params)

    async def work() -> Any:
        async with asyncio.timeout(30):
            store = AsyncPostgresStore(postgres_url, schema=postgres_schema)
            opening = asyncio.create_task(store.open())
            while not await asyncio.to_thread(observer.waiting_for, stranger):
                await asyncio.sleep(0.01)
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening
            await asyncio.to_thread(stranger.rollback)
            async with store:
                return await store.execute(ADMIT)

    assert isinstance(asyncio.run(work()), Accepted)


def test_it_cannot_be_used_once_it_is_closed(postgres_url: str, postgres_schema: str) -> None:
    """Nor be opened again; a second close is no fault, nor is one of what was never opened."""

    async def work() -> None:
        store = AsyncPostgresStore(postgres_url, schema=postgres_schema)
        await store.close()
        for again in (store.open, lambda: store.execute(ADMIT)):
            with pytest.raises(MisuseError, match="is closed; make a new one"):
                await again()
        await store.close()

    asyncio.run(work())
