"""What the outside world does to a store comes out as a typed error, and the store goes on."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest import mock

import psycopg
import pytest

from tests.adapters.postgres.conftest import Connect
from tests.adapters.postgres.helpers import (
    PATIENCE_S,
    PATIENT_MS,
    TERMS,
    Meanwhile,
    Observer,
    eventually,
    tables_of,
)
from tests.adapters.postgres.places import (
    KINDS,
    Awaiting,
    changed,
    least,
    open_once,
    opened,
    role,
    run,
)
from tests.adapters.sqlite.drawn import Drawer
from tests.adapters.sqlite.helpers import environment
from tests.adapters.tables import tables_in
from tests.postgres_server import PostgresServer
from unswept.adapters.postgres import AsyncPostgresStore, PostgresStore
from unswept.adapters.postgres import settings as settings_module
from unswept.adapters.postgres.simulated import GivenClockStore, SchemaStore
from unswept.core import commands as c
from unswept.core.errors import (
    MisuseError,
    StoreError,
    StoreReadOnlyError,
    StoreUnavailableError,
)
from unswept.core.lease import Status
from unswept.core.memory import MemoryStore
from unswept.core.replies import Accepted, Answer, Found
from unswept.core.units import StoreMs
from unswept.core.values import Request

ADMIT = c.Admit("j1", "a", TERMS)
COMPLETE = c.Complete("j1", "a", 1, Status.COMPLETED)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Both kinds of store meet the same world."""
    assert isinstance(request.param, str)
    return request.param


# There is no connection -------------------------------------------------------------------------


def test_a_wrong_password_is_told(own_server: PostgresServer) -> None:
    """In the server's words, and with what to check."""
    run(own_server.url, "CREATE ROLE guarded LOGIN PASSWORD 'right'")
    rules = own_server.data / "pg_hba.conf"
    rules.write_text(f"local all guarded scram-sha-256\n{rules.read_text()}")
    run(own_server.url, "SELECT pg_reload_conf()")
    wrong, right = (changed(own_server.url, user="guarded", password=p) for p in ("w", "right"))
    eventually(lambda: not can_connect(wrong))
    run(own_server.url, "CREATE SCHEMA unswept AUTHORIZATION guarded")
    for kind in KINDS:
        with pytest.raises(StoreUnavailableError, match=r"cannot connect.*password.*guarded"):
            open_once(kind, wrong)
        open_once(kind, right)


def can_connect(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"dbname": "unswept_nowhere"}, 'database "unswept_nowhere" does not exist'),
        ({"user": "unswept_nobody"}, 'role "unswept_nobody" does not exist'),
        ({"host": "127.0.0.1", "port": "1"}, "Connection refused"),
        ({"host": "/nowhere/at/all"}, "No such file or directory"),
    ],
)
def test_no_connection_is_unavailable(
    parts: dict[str, str], said: str, kind: str, postgres_url: str
) -> None:
    """It says where to, and why there is none."""
    with pytest.raises(StoreUnavailableError, match=f"cannot connect.*{said}"):
        open_once(kind, changed(postgres_url, **parts))


# The role may not -------------------------------------------------------------------------------


def test_missing_privileges_are_told(kind: str, postgres_url: str, postgres_schema: str) -> None:
    """Which ones a store needs; what the role may do still works."""
    PostgresStore(postgres_url, schema=postgres_schema).close()
    usage, tables = least(postgres_schema)
    said = r"lacks a privilege.*USAGE on the schema.*42501"
    with role(postgres_url) as url, pytest.raises(StoreError, match=said):
        open_once(kind, url, schema=postgres_schema, migrate=False)
    reads = tables.replace("SELECT, INSERT, UPDATE, DELETE", "SELECT")
    with (
        role(postgres_url, usage, reads) as url,
        opened(kind, url, schema=postgres_schema, migrate=False) as store,
    ):
        for _ in range(2):
            with pytest.raises(StoreError, match=said):
                store.execute(ADMIT)
            assert not isinstance(store.execute(c.Find("j1")), Found)


def test_whoever_may_make_no_schema_is_told(
    kind: str, postgres_url: str, postgres_schema: str
) -> None:
    """And none is made."""
    with role(postgres_url) as url, pytest.raises(StoreError, match="CREATE on the database"):
        open_once(kind, url, schema=postgres_schema)
    assert run(postgres_url, f"SELECT to_regnamespace('{postgres_schema}')") == [(None,)]


def test_a_role_that_only_reads_is_told_apart(
    kind: str, postgres_url: str, postgres_schema: str
) -> None:
    """Its store opens and reads, and writes and makes nothing."""
    read_only = "ALTER ROLE {role} SET default_transaction_read_only = on"
    grant_all = "GRANT ALL ON DATABASE postgres TO {role}"
    with role(postgres_url, grant_all, read_only) as url:
        with pytest.raises(StoreReadOnlyError, match="25006"):
            open_once(kind, url, schema=postgres_schema)
        assert run(postgres_url, f"SELECT to_regnamespace('{postgres_schema}')") == [(None,)]
    with PostgresStore(postgres_url, schema=postgres_schema) as store:
        store.execute(ADMIT)
    with (
        role(postgres_url, *least(postgres_schema), read_only) as url,
        opened(kind, url, schema=postgres_schema, migrate=False) as store,
    ):
        for command in (COMPLETE, c.Heartbeat("a", TERMS, (c.Hold("j1", 1),))):
            with pytest.raises(StoreReadOnlyError, match="25006"):
                store.execute(command)
            assert isinstance(store.execute(c.Find("j1")), Found)


# The server keeps it waiting --------------------------------------------------------------------


def test_a_lock_that_outlasts_the_timeout_costs_the_command(
    kind: str, postgres_url: str, postgres_schema: str, connect: Connect
) -> None:
    """And nothing else: the next one is carried out, also on the one connection that there is."""
    stranger = connect()
    with opened(
        kind, postgres_url, schema=postgres_schema, operation_timeout_ms=150, max_connections=1
    ) as store:
        store.execute(ADMIT)
        stranger.begin()
        stranger.run(f"SELECT FROM {postgres_schema}.jobs FOR UPDATE")
        for _ in range(2):
            with pytest.raises(StoreUnavailableError, match="55P03"):
                store.execute(COMPLETE)
        assert isinstance(store.execute(c.Admit("j2", "a", TERMS)), Accepted)
        stranger.rollback()
        assert isinstance(store.execute(COMPLETE), Accepted)


def test_a_statement_that_outlasts_the_timeout_costs_the_command(
    kind: str, postgres_url: str, postgres_schema: str, connect: Connect
) -> None:
    """The same for one that waits for no lock."""
    session = connect()
    with opened(
        kind, postgres_url, schema=postgres_schema, operation_timeout_ms=150, max_connections=1
    ) as store:
        session.run(
            f"CREATE FUNCTION {postgres_schema}.slow() RETURNS trigger LANGUAGE plpgsql"
            f" AS $$BEGIN PERFORM pg_sleep(10); RETURN NEW; END$$"
        )
        session.run(
            f"CREATE TRIGGER slow BEFORE INSERT ON {postgres_schema}.requests"
            f" FOR EACH ROW EXECUTE FUNCTION {postgres_schema}.slow()"
        )
        for _ in range(2):
            with pytest.raises(StoreUnavailableError, match="57014"):
                store.execute(ADMIT)
        session.run(f"DROP TRIGGER slow ON {postgres_schema}.requests")
        admitted = store.execute(ADMIT)
        assert isinstance(admitted, Accepted)
        assert not admitted.repeated


# The pool ---------------------------------------------------------------------------------------


def test_where_no_connection_is_free_the_command_is_given_up(
    postgres_url: str, postgres_schema: str
) -> None:
    """Nothing of it was sent; a heartbeat has a connection of its own."""
    with PostgresStore(
        postgres_url, schema=postgres_schema, operation_timeout_ms=500, max_connections=1
    ) as store:
        store.execute(ADMIT)
        with store._commands.connection():
            with pytest.raises(StoreUnavailableError, match=r"no connection within 500 ms.*are 1 "):
                store.execute(COMPLETE)
            beaten = store.execute(c.Heartbeat("a", TERMS, (c.Hold("j1", 1),)))
            assert beaten.answers[0].answer is Answer.RENEWED
        assert isinstance(store.execute(COMPLETE), Accepted)


def test_where_no_connection_is_free_the_awaited_command_is_given_up(
    postgres_url: str, postgres_schema: str
) -> None:
    """The same in an event loop."""

    async def work() -> None:
        async with AsyncPostgresStore(
            postgres_url, schema=postgres_schema, operation_timeout_ms=500, max_connections=1
        ) as store:
            await store.execute(ADMIT)
            assert store._pools is not None
            async with store._pools[0].connection():
                with pytest.raises(StoreUnavailableError, match="no connection within 500 ms"):
                    await store.execute(COMPLETE)
                beaten = await store.execute(c.Heartbeat("a", TERMS, (c.Hold("j1", 1),)))
                assert beaten.answers[0].answer is Answer.RENEWED
            assert isinstance(await store.execute(COMPLETE), Accepted)

    asyncio.run(work())


def in_tasks(store: SchemaStore, commands: list[c.Command[Any]]) -> list[Any]:
    """The replies to commands that are all asked at once."""
    if isinstance(store, Awaiting):
        asked = store.store

        async def work() -> list[Any]:
            return await asyncio.gather(*map(asked.execute, commands))

        return store.loop.run(work())
    asking = [Meanwhile(partial(store.execute, command)) for command in commands]
    return [each.result() for each in asking]


def test_many_commands_at_once_are_all_carried_out(
    kind: str, postgres_url: str, postgres_schema: str, connect: Connect
) -> None:
    """On far fewer connections, each as if it were alone."""
    with opened(
        kind,
        postgres_url,
        schema=postgres_schema,
        operation_timeout_ms=PATIENT_MS,
        max_connections=3,
    ) as store:
        ids = [f"j{number:02}" for number in range(40)]
        steps: list[list[c.Command[Any]]] = [
            [c.Admit(job_id, "a", TERMS) for job_id in ids],
            [c.Start(job_id, "a", 1, TERMS) for job_id in ids],
            [c.Complete(job_id, "a", 1, Status.COMPLETED) for job_id in ids],
        ]
        for commands in steps:
            replies = in_tasks(store, commands)
            assert [reply.standing.job_id for reply in replies] == ids
        twins = in_tasks(store, [c.Admit("twin", "a", TERMS) for _ in range(20)])
        assert sorted(reply.repeated for reply in twins) == [False] + [True] * 19
    events = tables_of(connect(), postgres_schema)["events"]
    assert len(events) == 3 * len(ids) + 1


def test_heartbeats_are_not_held_up_by_commands_that_wait(
    kind: str, postgres_url: str, postgres_schema: str, connect: Connect, observer: Observer
) -> None:
    """All connections for commands wait for a lock, and the beat goes through."""
    stranger = connect()
    with opened(
        kind,
        postgres_url,
        schema=postgres_schema,
        operation_timeout_ms=PATIENT_MS,
        max_connections=2,
    ) as store:
        for job_id in ("j1", "j2", "j3"):
            store.execute(c.Admit(job_id, "a", TERMS))
        stranger.begin()
        stranger.run(f"SELECT FROM {postgres_schema}.jobs WHERE id <> 'j3' FOR UPDATE")
        waiting: list[c.Command[Any]] = [COMPLETE, c.RequestCancel("j2"), c.RequestCancel("j3")]
        beat = c.Heartbeat("a", TERMS, (c.Hold("j3", 1),))

        def beat_meanwhile() -> Any:
            eventually(lambda: len(observer.waiting_for(stranger)) == 2)
            answer = beating(store)(beat)
            assert len(observer.waiting_for(stranger)) == 2
            return answer

        beaten = Meanwhile(beat_meanwhile)

        def free() -> None:
            beaten.over(PATIENCE_S)
            stranger.rollback()

        freeing = Meanwhile(free)
        replies = in_tasks(store, waiting)
        freeing.result()
        assert beaten.result().answers[0].answer is Answer.RENEWED
        assert len(replies) == 3


def beating(store: SchemaStore) -> Callable[[c.Heartbeat], Any]:
    """Asks from another thread, also of an event loop that is at work."""
    if not isinstance(store, Awaiting):
        return store.execute
    loop = store.loop.get_loop()
    return lambda beat: asyncio.run_coroutine_threadsafe(store.store.execute(beat), loop).result(30)


# Whoever uses it wrongly ------------------------------------------------------------------------


def test_a_closed_store_says_so(postgres_url: str, postgres_schema: str) -> None:
    """Closing twice is no fault; asking it anything is."""
    store = PostgresStore(postgres_url, schema=postgres_schema)
    store.close()
    store.close()
    for command in (c.Find("j1"), c.Heartbeat("a", TERMS)):
        with pytest.raises(MisuseError, match="is closed; open the store anew"):
            store.execute(command)


@pytest.mark.parametrize("what", ["Find", None, c.Find, c.Hold("j1", 1), object()])
def test_what_is_no_command_is_misuse(
    what: Any, kind: str, postgres_url: str, postgres_schema: str
) -> None:
    """Whatever it is."""
    with (
        opened(kind, postgres_url, schema=postgres_schema) as store,
        pytest.raises(MisuseError, match="expected a command of unswept"),
    ):
        store.execute(what)


FORKS = """
import os, sys
from unswept.adapters.postgres import AsyncPostgresStore, PostgresStore
from unswept.core import commands as c
from unswept.core.job import Terms
from unswept.core.errors import MisuseError

url, schema = sys.argv[1:]
terms = Terms(100, 160, 80, 60)
store = PostgresStore(url, schema=schema, operation_timeout_ms=30_000)
store.execute(c.Admit("parents", "a", terms))
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    store.execute(c.Admit("childs", "b", terms))
    store.execute(c.Heartbeat("b", terms, (c.Hold("childs", 1),)))
    store.close()
    try:
        store.execute(c.Find("childs"))
    except MisuseError:
        sys.exit(7)  # with all that an orderly end does to what was inherited
    sys.exit(1)
for number in range(20):
    store.execute(c.Admit(f"meanwhile{number}", "a", terms))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
store.execute(c.Heartbeat("a", terms, (c.Hold("parents", 1),)))
for pool in (store._commands, store._beats):
    assert pool.get_stats().get("connections_lost", 0) == 0
    assert pool.get_stats()["connections_num"] <= 4
for job_id in ("parents", "childs", "meanwhile19"):
    print(store.execute(c.Find(job_id)).job.lease.status)
store.close()
"""


def test_parent_and_child_both_go_on_after_a_fork(postgres_url: str, postgres_schema: str) -> None:
    """Each on connections of its own; the child's end takes nothing from its parent."""
    ran = subprocess.run(
        [sys.executable, "-c", FORKS, postgres_url, postgres_schema],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.stdout.split(), ran.returncode) == (["queued"] * 3, 0), ran.stderr


FORKS_LOOP = """
import asyncio, os, sys
from unswept.adapters.postgres import AsyncPostgresStore
from unswept.core import commands as c
from unswept.core.errors import MisuseError

async def work(store):
    await store.open()
    child = os.fork()
    if child == 0:
        try:
            await store.execute(c.Find("j"))
        except MisuseError as error:
            os._exit(7 if "its parent's; make one after the fork" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    await store.execute(c.Find("j"))
    await store.close()

asyncio.run(work(AsyncPostgresStore(sys.argv[1], schema=sys.argv[2])))
"""


def test_an_awaited_store_is_its_parents(postgres_url: str, postgres_schema: str) -> None:
    """An event loop cannot be carried across a fork either."""
    ran = subprocess.run(
        [sys.executable, "-c", FORKS_LOOP, postgres_url, postgres_schema],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


# Behind a pooler --------------------------------------------------------------------------------

_OF_THE_SESSION = """
    SELECT 'setting ' || name || ' = ' || setting FROM pg_settings WHERE source = 'session'
    UNION ALL SELECT 'prepared ' || statement FROM pg_prepared_statements
    UNION ALL SELECT 'cursor ' || name FROM pg_cursors WHERE name <> ''
    UNION ALL SELECT 'lock ' || objid FROM pg_locks WHERE locktype = 'advisory'
        AND pid = pg_backend_pid()
    UNION ALL SELECT 'table ' || relname FROM pg_class WHERE relnamespace = pg_my_temp_schema()
    UNION ALL SELECT 'channel ' || pg_listening_channels()
"""


def test_nothing_stays_in_a_session(
    kind: str,
    postgres_url: str,
    postgres_schema: str,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So a pooler may give each transaction another one: after every command the session is looked
    at and emptied, and the replies and tables are those of the pure store."""
    left: list[str] = []
    emptied: list[int] = []

    def empty(connection: psycopg.Connection[Any]) -> None:
        left.extend(what for (what,) in connection.execute(_OF_THE_SESSION))
        connection.execute("DISCARD ALL")
        emptied.append(1)

    async def empty_awaited(connection: psycopg.AsyncConnection[Any]) -> None:
        found = await connection.execute(_OF_THE_SESSION)
        left.extend([what async for (what,) in found])
        await connection.execute("DISCARD ALL")
        emptied.append(1)

    reset = empty if kind == "blocking" else empty_awaited
    monkeypatch.setattr(settings_module, "POOL", {**settings_module.POOL, "reset": reset})
    now = 1_000
    pure = MemoryStore(lambda: StoreMs(now))
    drawer = Drawer(1, pure.world)
    session = connect()
    with opened(
        kind, postgres_url, schema=postgres_schema, operation_timeout_ms=PATIENT_MS
    ) as real:
        store = GivenClockStore(real, lambda: StoreMs(now), session.connection)
        for _ in range(150):
            drawer.world = pure.world
            command = drawer.command()
            now = drawer.moved(now, command)
            assert store.execute(command) == pure.execute(command), command
        real.close()
    assert len(emptied) > 100
    assert left == []
    tables = {**tables_of(session, postgres_schema)}
    assert tables["jobs"] == tables_in(pure.world)["jobs"]


# Cancelled tasks --------------------------------------------------------------------------------


def test_a_command_that_is_cancelled_while_it_waits_leaves_nothing(
    postgres_url: str, postgres_schema: str, connect: Connect, observer: Observer
) -> None:
    """Half of it was written already; its connection, the only one, is free again at once."""
    stranger, session = connect(), connect()
    admit = c.Admit("j2", "a", TERMS, request=Request(b"", "p", "k"))

    async def cancelled(store: AsyncPostgresStore, timeout_s: float | None) -> None:
        stranger.begin()
        stranger.run(f"LOCK TABLE {postgres_schema}.requests")
        admitting = asyncio.create_task(
            asyncio.wait_for(store.execute(admit), timeout_s)  # how long it has to come to the lock
        )
        while timeout_s is None and not await asyncio.to_thread(observer.waiting_for, stranger):
            await asyncio.sleep(0.005)
        if timeout_s is None:
            admitting.cancel()
        with pytest.raises((asyncio.CancelledError, TimeoutError)):
            await admitting
        await store.execute(c.Register("a"))
        stranger.rollback()
        tables = tables_of(session, postgres_schema)
        assert not tables["ids"]
        assert not tables["events"]

    async def work() -> Any:
        async with (
            asyncio.timeout(30),
            AsyncPostgresStore(
                postgres_url,
                schema=postgres_schema,
                operation_timeout_ms=PATIENT_MS,
                max_connections=1,
            ) as store,
        ):
            await cancelled(store, None)
            await cancelled(store, 0.2)
            return await store.execute(admit)

    assert isinstance(asyncio.run(work()), Accepted)


def test_a_command_that_is_cancelled_on_its_way_spoils_no_connection(
    postgres_url: str, postgres_schema: str
) -> None:
    """A caller's own, left in pipeline mode, would give the caller the command's answers."""

    async def cut_off(connection: psycopg.AsyncConnection[Any], exchange: Any) -> Any:
        next(exchange)
        raise asyncio.CancelledError

    async def work() -> bool:
        async with AsyncPostgresStore(postgres_url, schema=postgres_schema) as store:
            own = await psycopg.AsyncConnection.connect(postgres_url)
            await own.execute("SELECT 1")
            with (
                mock.patch.object(psycopg.AsyncConnection, "wait", cut_off),
                pytest.raises(asyncio.CancelledError),
            ):
                await store.execute_within(own, c.Enqueue("job"))
            return own.closed

    assert asyncio.run(work())


def test_a_command_that_is_interrupted_on_its_way_spoils_no_connection(
    postgres_url: str, postgres_schema: str
) -> None:
    """The same for a signal."""

    def cut_off(connection: psycopg.Connection[Any], exchange: Any) -> Any:
        next(exchange)
        raise KeyboardInterrupt

    with PostgresStore(postgres_url, schema=postgres_schema) as store:
        own = psycopg.connect(postgres_url)
        own.execute("SELECT 1")
        with (
            mock.patch.object(psycopg.Connection, "wait", cut_off),
            pytest.raises(KeyboardInterrupt),
        ):
            store.execute_within(own, c.Enqueue("job"))
        assert own.closed


def test_commands_cancelled_at_any_moment_are_whole_or_not_at_all(
    postgres_url: str, postgres_schema: str, connect: Connect
) -> None:
    """And the pool goes on with as many connections as before."""

    async def work() -> int:
        finished = 0
        async with (
            asyncio.timeout(60),
            AsyncPostgresStore(
                postgres_url,
                schema=postgres_schema,
                operation_timeout_ms=PATIENT_MS,
                max_connections=2,
            ) as store,
        ):
            for number in range(80):
                admit = c.Admit(
                    f"j{number:02}", "a", TERMS, request=Request(b"x", "p", f"{number}")
                )
                task = asyncio.create_task(store.execute(admit))
                for _ in range(number % 40):  # so many steps of the loop, not so long a time
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                finished += not task.cancelled()
            replies = await asyncio.gather(
                *(store.execute(c.Admit(f"k{number}", "a", TERMS)) for number in range(8))
            )
            assert all(isinstance(reply, Accepted) for reply in replies)
        return finished

    finished = asyncio.run(work())
    tables = tables_of(connect(), postgres_schema)
    whole = set(tables["jobs"])
    assert set(tables["ids"]) == set(tables["requests"]) == whole
    assert sorted(event.job_id for event in tables["events"]) == sorted(whole)
    assert {key[1] for key in tables["keys"]} >= {str(int(i[1:])) for i in whole if i[0] == "j"}
    assert len(whole) >= finished + 8


def test_an_interrupted_command_leaves_nothing(
    postgres_url: str, postgres_schema: str, connect: Connect, observer: Observer
) -> None:
    """A signal's handler raises in the middle of it; the next command finds the store in order."""
    stranger = connect()
    with PostgresStore(
        postgres_url, schema=postgres_schema, operation_timeout_ms=PATIENT_MS, max_connections=1
    ) as store:
        stranger.begin()
        stranger.run(f"LOCK TABLE {postgres_schema}.requests")

        def interrupt() -> None:
            eventually(lambda: bool(observer.waiting_for(stranger)))
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        # A shell makes what it runs in the background ignore this signal.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            interrupting = Meanwhile(interrupt)
            with pytest.raises(KeyboardInterrupt):
                store.execute(ADMIT)
            interrupting.result()
        finally:
            signal.signal(signal.SIGINT, before)
        stranger.rollback()
        admitted = store.execute(ADMIT)
        assert isinstance(admitted, Accepted)
        assert not admitted.repeated
