"""A password stands in a URL and nowhere else: in no message, log, repr, traceback or report."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
import shlex
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any
from unittest import mock

import psycopg
import pytest
from typer.testing import CliRunner

from tests.adapters.postgres.helpers import TERMS, eventually
from tests.adapters.postgres.places import KINDS, changed, open_once, opened
from tests.postgres_server import PostgresServer
from unswept.adapters.cli import simulate as simulate_module
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.main import app, main
from unswept.adapters.postgres import AsyncPostgresStore, PostgresStore
from unswept.adapters.postgres import schema as schema_module
from unswept.adapters.postgres.settings import settings
from unswept.adapters.postgres.simulated import open_simulated
from unswept.adapters.urls import SimulatedStore, without_password
from unswept.core import commands as c
from unswept.core.errors import UnsweptError
from unswept.core.units import StoreMs

SECRET = "tr0ub4dor"
ADMIT = c.Admit("j1", "a", TERMS)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    assert isinstance(request.param, str)
    return request.param


@pytest.fixture
def url(postgres_url: str) -> str:
    """It is let in with any password."""
    return changed(postgres_url, password=SECRET)


@pytest.fixture(autouse=True)
def silence(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No test here may log the secret, at whatever level."""
    for name in (None, "psycopg", "psycopg.pool", "asyncio"):
        caplog.set_level(logging.DEBUG, name)
    yield
    for record in caplog.records:
        assert SECRET not in record.getMessage()
        assert SECRET not in str(record.args)
        if record.exc_info:
            assert SECRET not in "".join(traceback.format_exception(*record.exc_info))


def told(work: Callable[[], object]) -> str:
    """An error's whole traceback, with all its causes and notes, suppressed ones too."""
    with pytest.raises((UnsweptError, psycopg.Error)) as caught:
        work()
    texts = []
    error: BaseException | None = caught.value
    while error is not None:
        texts += [*traceback.format_exception(error), repr(error), str(error.args)]
        error = error.__cause__ or error.__context__
    return "\n".join(texts)


@pytest.mark.parametrize(
    "written",
    [
        f"postgresql://user:{SECRET}@127.0.0.1:1/db",
        f"postgresql://user:{SECRET}@/db?host=/nowhere/at/all",
        f"postgresql://127.0.0.1:1/db?user=user&password={SECRET}",
        f"postgresql://127.0.0.1:1/db?sslpassword={SECRET}&password=p",
        f"postgresql://user:{SECRET}@host.invalid/db",
        # libpq takes what stands behind a bare @ or / for a host, a port or a database ...
        f"postgresql://user:p@{SECRET}@127.0.0.1:1/db",
        f"postgresql://user:p/{SECRET}@127.0.0.1:1/db",
        f"postgresql://user:{SECRET}/p@127.0.0.1:1/db",
        f"postgresql://user:{SECRET}/db",
        f"postgresql://host?password=p@{SECRET}",
        # ... and says what it cannot read.
        f"postgresql://user:%{SECRET}@127.0.0.1:1/db",
        f"postgresql://user:{SECRET} p@127.0.0.1:1/db",
        f"postgresql://user:{SECRET}@[127.0.0.1:1/db",
        f"postgresql://user:p@127.0.0.1:1/db?{SECRET}=1",
        f"postgresql://user:p@127.0.0.1:1/db?password={SECRET}=1",
        f"postgresql://user:{SECRET}@127.0.0.1:port/db",
        f"postgresql://user:{SECRET}\0@127.0.0.1:1/db",
        f"postgresql://user:{SECRET}\ud800@127.0.0.1:1/db",
        f"host=127.0.0.1 port=1 password={SECRET}",
        f"mysql://user:{SECRET}@host/db",
        f"{SECRET}://host/db",
        f"postgresql://user:{SECRET}@127.0.0.1:1/db".encode(),
    ],
)
def test_an_url_that_leads_nowhere_is_not_quoted(written: Any) -> None:
    """By no kind of store, by the simulator's neither."""
    for kind in KINDS:
        assert SECRET not in told(partial(open_once, kind, written))
    if isinstance(written, str):
        assert SECRET not in told(partial(open_simulated, written, lambda: StoreMs(0), "secret"))


def test_what_the_server_refuses_is_not_quoted(own_server: PostgresServer) -> None:
    """A wrong password, a role or a database that is not there."""
    with psycopg.connect(own_server.url, autocommit=True) as connection:
        connection.execute("CREATE ROLE guarded LOGIN PASSWORD 'right'")
        rules = own_server.data / "pg_hba.conf"
        rules.write_text(f"local all guarded scram-sha-256\n{rules.read_text()}")
        connection.execute("SELECT pg_reload_conf()")
    guarded = changed(own_server.url, user="guarded", password=SECRET)

    def refused() -> bool:
        with suppress(psycopg.OperationalError):
            psycopg.connect(guarded).close()
            return False
        return True

    eventually(refused)
    for parts in ({"user": "guarded"}, {"user": "nobody"}, {"dbname": "nowhere"}):
        wrong = changed(own_server.url, **parts, password=SECRET)
        for kind in KINDS:
            assert SECRET not in told(partial(open_once, kind, wrong))


def test_a_server_that_goes_away_is_told_without(own_server: PostgresServer) -> None:
    """To a command, and to the pool, which logs each try to connect anew."""
    given = changed(own_server.url, password=SECRET)
    with PostgresStore(given, operation_timeout_ms=400) as store:
        store.execute(ADMIT)
        own_server.stop(crash=True)
        for command in (ADMIT, c.Heartbeat("a", TERMS), c.Find("j1")):
            assert SECRET not in told(partial(store.execute, command))


def test_a_store_shows_none(kind: str, url: str, postgres_schema: str) -> None:
    """Neither its repr nor that of what it is made of, nor its errors while it works."""
    with opened(kind, url, schema=postgres_schema, operation_timeout_ms=200) as store:
        given = settings(url, postgres_schema)
        for shown in (store, given, SimulatedStore(url), given.queries):
            assert SECRET not in repr(shown) + str(shown)
        with psycopg.connect(url) as stranger:
            assert SECRET not in repr(stranger)
            stranger.execute(f"LOCK TABLE {postgres_schema}.jobs".encode())
            assert SECRET not in told(lambda: store.execute(ADMIT))
    closed = PostgresStore(url, schema=postgres_schema)
    closed.close()
    assert SECRET not in told(lambda: closed.execute(ADMIT))


def test_a_wrong_schema_is_told_without(kind: str, url: str, postgres_schema: str) -> None:
    """Whatever is wrong with it."""

    def work() -> None:
        open_once(kind, url, schema=postgres_schema, migrate=False)

    assert SECRET not in told(work)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {postgres_schema}".encode())
        connection.execute(f"CREATE TABLE {postgres_schema}.jobs ()".encode())
    assert SECRET not in told(work)
    with mock.patch.object(schema_module, "OLDEST_SERVER", 990_000):
        assert SECRET not in told(work)
    assert SECRET not in told(lambda: open_once(kind, url, schema="order"))


def test_a_command_within_is_told_without(url: str, postgres_schema: str) -> None:
    """The caller's connection has the secret too."""
    enqueue = c.Enqueue("j1")
    with PostgresStore(url, schema=postgres_schema) as store:
        wrong: Any
        for wrong in (url, url.encode(), None):
            assert SECRET not in told(partial(store.execute_within, wrong, enqueue))
        with psycopg.connect(url, autocommit=True) as own:
            assert SECRET not in told(lambda: store.execute_within(own, enqueue))
        assert SECRET not in told(lambda: store.execute_within(own, enqueue))

    async def work() -> None:
        connection: Any = url
        store = AsyncPostgresStore(url, schema=postgres_schema)
        await store.execute_within(connection, enqueue)

    assert SECRET not in told(lambda: asyncio.run(work()))


# The command line -------------------------------------------------------------------------------


def ran(*words: str) -> tuple[int, str]:
    result = CliRunner(env={"COLUMNS": "300"}).invoke(app, [*words])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.output


def test_db_prints_none(url: str, postgres_schema: str) -> None:
    """Neither where it succeeds nor where it fails."""
    for verb in ("check", "init", "check", "sql"):
        for more in ((), ("--json",)):
            _, out = ran("db", verb, "--store", url, "--schema", postgres_schema, *more)
            assert SECRET not in out
            assert postgres_schema in out
    for parts in ({"dbname": "unswept_nowhere"}, {"host": "127.0.0.1", "port": "1"}):
        for more in ((), ("--json",)):
            code, out = ran("db", "check", "--store", changed(url, **parts), *more)
            assert code == ExitCode.UNDETERMINED
            assert SECRET not in out


def test_simulate_prints_none(url: str) -> None:
    """The store is named, in the report and in the progress, without it."""
    words = ("simulate", "--seed", "1", "--hours", "0.02", "--workers", "1", "--json")
    code, out = ran(*words, "--store", url)
    assert code == ExitCode.HELD, out
    assert SECRET not in out
    assert f'"store": "{without_password(url)}"' in out


def test_a_violation_on_postgres_is_replayed_without(url: str) -> None:
    """The command that it prints leads there, with a password from elsewhere."""
    design = ("--design", "blanket-sweep", "--hours", "0.2", "--workers", "1")
    words = ("simulate", *design, "--no-shrink")
    _, found = ran(*words, "--seeds", "50", "--store", "memory:", "--json")
    seed = json.loads(found)["violated_seed"]
    code, out = ran(*words, "--seed", str(seed), "--store", url)
    assert code == ExitCode.REFUTED, out
    assert SECRET not in out
    [replay] = [line for line in out.splitlines() if "unswept simulate --store" in line]
    assert shlex.split(replay)[2:6] == ["--store", without_password(url), "--seed", str(seed)]


@pytest.mark.parametrize(
    "words",
    [
        ("simulate", "--store", f"postgresql://user:p@{SECRET}@host/db"),
        ("simulate", "--store", f"postgresql://user:{SECRET}/p@host/db"),
        ("simulate", "--store", f"mysql://user:{SECRET}@host/db"),
        ("simulate", f"postgresql://user:{SECRET}@host/db"),
        ("simulate", "--seed", f"postgresql://user:{SECRET}@host/db"),
        ("db", "check", "--store", f"postgresql://user:p@{SECRET}@host/db"),
        ("db", "check", "--store", f"mysql://user:{SECRET}@host/db"),
        ("db", "check", "--store", "sqlite:x", f"postgresql://user:{SECRET}@host/db"),
        ("db", f"postgresql://user:{SECRET}@host/db"),
        (f"postgresql://user:{SECRET}@host/db",),
    ],
)
def test_wrong_words_are_told_without(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where the URL stands in a wrong place."""
    monkeypatch.setattr("sys.argv", ["unswept", *words])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == ExitCode.USAGE
    told = capsys.readouterr()
    assert SECRET not in told.out + told.err


def test_a_fault_of_the_command_is_told_without(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its traceback shows no variables."""

    def broken(*_: object) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(simulate_module, "run_seeds", broken)
    monkeypatch.setattr("sys.argv", ["unswept", "simulate", "--store", url])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == ExitCode.UNDETERMINED
    assert SECRET not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("postgresql://user:secret@host:1/db", "postgresql://user@host:1/db"),
        ("postgresql://user@host/db?sslmode=require", "postgresql://user@host/db?sslmode=require"),
        ("postgresql://user:s@/db?host=/tmp", "postgresql://user@/db?host=/tmp"),
        ("postgresql://:secret@host/db", "postgresql://...@host/db"),
        ("postgresql://user:a@b@host/db", "postgresql://...@host/db"),
        ("postgresql://user:a/b@host/db", "postgresql://...@host/db"),
        ("postgresql://h/db?password=a@b&user=u", "postgresql://h/db?user=u"),
        ("No such command 'postgresql://u:a b@h'.", "No such command 'postgresql://u@h'."),
        ("postgresql:user:secret@host/db", "postgresql:user@host/db"),
        ("sqlite:/tmp/postgres:/user:secret@host/db", "sqlite:/tmp/postgres:/user@host/db"),
        ("sqlite:jobs.db", "sqlite:jobs.db"),
    ],
)
def test_without_password(written: str, shown: str) -> None:
    """A well-formed URL still leads to the store; of another one too much is hidden."""
    assert without_password(written) == shown


def test_an_opener_still_has_it_in_another_process(url: str) -> None:
    """Its repr hides what it carries along."""
    assert pickle.loads(pickle.dumps(SimulatedStore(url))).url == url
