"""A command in the caller's own transaction stands or falls with the caller's own writes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Protocol, TypeVar
from unittest import mock

import psycopg
import pytest
from psycopg import rows
from psycopg.adapt import Dumper, Loader

from tests.adapters.postgres.conftest import Connect
from tests.adapters.postgres.helpers import (
    PATIENT_MS,
    TERMS,
    Meanwhile,
    Observer,
    ServerClock,
    Session,
    tables_of,
)
from tests.adapters.postgres.places import KINDS, database, least, role, run
from unswept.adapters.postgres import AsyncPostgresStore, PostgresStore
from unswept.core import commands as c
from unswept.core.errors import (
    MisuseError,
    StoreError,
    StoreReadOnlyError,
    StoreUnavailableError,
)
from unswept.core.lease import Kind, Status
from unswept.core.refusal import Refusal
from unswept.core.replies import Accepted, Answer, Refused
from unswept.core.values import Request, Result

R = TypeVar("R")

ENQUEUE = c.Enqueue("j1", request=Request(b"payload", "me", "key"))
COMPLETE = c.Complete("mine", "a", 1, Status.COMPLETED, Result(0, body=b"done"))
BOTH = pytest.mark.parametrize("command", [ENQUEUE, COMPLETE], ids=["enqueue", "complete"])


class Caller(Protocol):
    """An application with a table `orders` and a connection of its own, of either kind."""

    def connect(self, url: str | None = None, **options: Any) -> None: ...

    def run(self, sql: str) -> None: ...

    def within(self, command: Any) -> Any: ...

    def within_savepoint(self, command: Any) -> Any:
        """In a `connection.transaction()` of the caller's, which is rolled back."""

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def close(self) -> None: ...

    @property
    def connection(self) -> Any: ...


class Blocking:
    def __init__(self, url: str, schema: str) -> None:
        self.url = url
        self.store = PostgresStore(url, schema=schema, operation_timeout_ms=PATIENT_MS)
        self.connection: psycopg.Connection[Any] = psycopg.connect(url)

    def connect(self, url: str | None = None, **options: Any) -> None:
        self.connection.close()
        self.connection = psycopg.connect(url or self.url, **options)

    def run(self, sql: str) -> None:
        psycopg.Cursor(self.connection).execute(sql.encode())

    def within(self, command: Any) -> Any:
        return self.store.execute_within(self.connection, command)

    def within_savepoint(self, command: Any) -> Any:
        with self.connection.transaction(force_rollback=True):
            return self.within(command)

    def commit(self) -> None:
        self.connection.commit()

    def rollback(self) -> None:
        self.connection.rollback()

    def close(self) -> None:
        self.connection.close()
        self.store.close()


class Awaiting:
    def __init__(self, url: str, schema: str) -> None:
        self.url = url
        self.loop = asyncio.Runner()
        self.store = AsyncPostgresStore(url, schema=schema, operation_timeout_ms=PATIENT_MS)
        self.connection: psycopg.AsyncConnection[Any] = self.loop.run(
            psycopg.AsyncConnection.connect(url)
        )

    def connect(self, url: str | None = None, **options: Any) -> None:
        self.loop.run(self.connection.close())
        connecting = psycopg.AsyncConnection.connect(url or self.url, **options)
        self.connection = self.loop.run(connecting)

    def run(self, sql: str) -> None:
        self.loop.run(psycopg.AsyncCursor(self.connection).execute(sql.encode()))

    def within(self, command: Any) -> Any:
        return self.loop.run(self.store.execute_within(self.connection, command))

    def within_savepoint(self, command: Any) -> Any:
        async def work() -> Any:
            async with self.connection.transaction(force_rollback=True):
                return await self.store.execute_within(self.connection, command)

        return self.loop.run(work())

    def commit(self) -> None:
        self.loop.run(self.connection.commit())

    def rollback(self) -> None:
        self.loop.run(self.connection.rollback())

    def close(self) -> None:
        self.loop.run(self.connection.close())
        self.loop.run(self.store.close())
        self.loop.close()


@pytest.fixture
def session(store: PostgresStore, connect: Connect, postgres_schema: str) -> Session:
    """It sees what is committed: a running job `mine` of the owner `a`, and an empty `orders`."""
    store.execute(c.Admit("mine", "a", TERMS))
    store.execute(c.Start("mine", "a", 1, TERMS))
    session = connect()
    session.run(f"CREATE TABLE {postgres_schema}.orders (id text)")
    return session


@pytest.fixture(params=KINDS)
def caller(
    request: pytest.FixtureRequest, session: Session, postgres_url: str, postgres_schema: str
) -> Iterator[Caller]:
    kind = Blocking if request.param == "blocking" else Awaiting
    caller = kind(postgres_url, postgres_schema)
    caller.run(f"SET search_path = {postgres_schema}")
    caller.commit()
    yield caller
    caller.close()


def orders(session: Session, schema: str) -> list[str]:
    return [order for (order,) in session.run(f"SELECT id FROM {schema}.orders")]


def order(caller: Caller, schema: str, name: str = "before") -> None:
    """A write of the caller's own."""
    caller.run(f"INSERT INTO {schema}.orders VALUES ('{name}')")


# Together or not at all -------------------------------------------------------------------------


def test_it_takes_effect_with_the_callers_commit(
    caller: Caller, session: Session, postgres_schema: str
) -> None:
    """Until then nobody sees it."""
    before = tables_of(session, postgres_schema)
    order(caller, postgres_schema)
    enqueued, completed = caller.within(ENQUEUE), caller.within(COMPLETE)
    assert isinstance(enqueued, Accepted)
    assert enqueued.transition is Kind.ENQUEUE
    assert isinstance(completed, Accepted)
    assert completed.transition is Kind.COMPLETE
    assert tables_of(session, postgres_schema) == before
    order(caller, postgres_schema, "after")
    caller.commit()
    tables = tables_of(session, postgres_schema)
    assert tables["jobs"]["j1"].lease.status is Status.QUEUED
    assert tables["requests"]["j1"] == ENQUEUE.request
    assert tables["jobs"]["mine"].lease.status is Status.COMPLETED
    assert tables["results"] == {"mine": COMPLETE.result}
    kinds = [event.kind for event in tables["events"]]
    assert kinds == [Kind.ADMIT, Kind.START, Kind.ENQUEUE, Kind.COMPLETE]
    assert orders(session, postgres_schema) == ["before", "after"]


@BOTH
def test_it_is_rolled_back_with_the_callers_writes(
    caller: Caller,
    session: Session,
    store: PostgresStore,
    postgres_schema: str,
    command: c.Enqueue | c.Complete,
) -> None:
    """Then it was never there, and can be carried out anew."""
    before = tables_of(session, postgres_schema)
    order(caller, postgres_schema)
    caller.within(command)
    caller.rollback()
    assert tables_of(session, postgres_schema) == before
    assert orders(session, postgres_schema) == []
    anew = store.execute(command)
    assert isinstance(anew, Accepted)
    assert not anew.repeated


@BOTH
def test_it_is_rolled_back_to_the_callers_savepoint(
    caller: Caller, session: Session, postgres_schema: str, command: c.Enqueue | c.Complete
) -> None:
    """A savepoint of the caller's takes it back like any of the caller's statements."""
    before = tables_of(session, postgres_schema)
    order(caller, postgres_schema)
    assert isinstance(caller.within_savepoint(command), Accepted)
    caller.commit()
    assert tables_of(session, postgres_schema) == before
    assert orders(session, postgres_schema) == ["before"]


@BOTH
def test_it_can_be_repeated(
    caller: Caller,
    session: Session,
    store: PostgresStore,
    postgres_schema: str,
    command: c.Enqueue | c.Complete,
) -> None:
    """In the same transaction, in another one, and without one."""
    first = caller.within(command)
    again = [caller.within(command)]
    caller.commit()
    once = tables_of(session, postgres_schema)
    again.append(caller.within(command))
    caller.commit()
    again.append(store.execute(command))
    assert not first.repeated
    assert [reply.standing for reply in again] == [first.standing] * 3
    assert all(reply.repeated for reply in again)
    assert tables_of(session, postgres_schema) == once


def test_a_refusal_is_a_reply(
    caller: Caller, session: Session, clock: ServerClock, postgres_schema: str
) -> None:
    """As `execute` would give it; the caller's transaction goes on."""
    order(caller, postgres_schema)
    refused = caller.within(c.Complete("mine", "b", 1, Status.COMPLETED))
    assert isinstance(refused, Refused)
    assert refused.reason is Refusal.NOT_OWNER
    assert refused.at == clock.now
    caller.commit()
    assert orders(session, postgres_schema) == ["before"]


def test_a_transaction_of_either_kind_will_do(
    caller: Caller, session: Session, postgres_schema: str
) -> None:
    """One begun in so many words, one that psycopg begins with the first statement, and one at
    READ COMMITTED where that is not the default."""
    caller.connect(autocommit=True)
    for number, begin in enumerate(
        ("BEGIN", "BEGIN ISOLATION LEVEL READ COMMITTED", "START TRANSACTION")
    ):
        caller.run(begin)
        assert isinstance(caller.within(c.Enqueue(f"j{number}")), Accepted)
        caller.run("COMMIT")
    caller.connect(options="-c default_transaction_isolation=serializable")
    caller.run("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
    assert isinstance(caller.within(c.Enqueue("j3")), Accepted)
    caller.commit()
    caller.connect()
    assert isinstance(caller.within(c.Enqueue("j4")), Accepted)  # psycopg begins here
    assert "j4" not in tables_of(session, postgres_schema)["jobs"]
    caller.commit()
    assert set(tables_of(session, postgres_schema)["jobs"]) >= {f"j{n}" for n in range(5)}


# What is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        c.Admit("j", "a", TERMS),
        c.Claim("a", 1, TERMS),
        c.Heartbeat("a", TERMS),
        c.Find("mine"),
        "enqueue",
        None,
    ],
    ids=lambda command: type(command).__name__,
)
def test_other_commands_are_misuse(caller: Caller, command: Any) -> None:
    """What holds a lease must be seen by its heartbeat at once."""
    with pytest.raises(MisuseError, match=r"expected an Enqueue or a Complete.*heartbeat"):
        caller.within(command)


def test_a_connection_in_no_transaction_is_misuse(caller: Caller, session: Session) -> None:
    """The command would be committed at once, without anything of the caller's."""
    caller.connect(autocommit=True)
    with pytest.raises(MisuseError, match="idle with autocommit"):
        caller.within(ENQUEUE)


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_another_isolation_is_misuse(
    caller: Caller, session: Session, postgres_schema: str, level: str
) -> None:
    """Its snapshot is older than the locks that the command waits for."""
    caller.run(f"SET TRANSACTION ISOLATION LEVEL {level}")
    order(caller, postgres_schema)
    with pytest.raises(MisuseError, match=f"READ COMMITTED, found {level.lower()}"):
        caller.within(ENQUEUE)
    order(caller, postgres_schema, "after")
    caller.commit()
    assert orders(session, postgres_schema) == ["before", "after"]


def test_a_failed_transaction_is_misuse(caller: Caller, session: Session) -> None:
    """It can only be rolled back."""
    with pytest.raises(psycopg.errors.DivisionByZero):
        caller.run("SELECT 1 / 0")
    with pytest.raises(MisuseError, match="inerror"):
        caller.within(ENQUEUE)


def test_a_closed_connection_is_misuse(caller: Caller) -> None:
    """Whoever closed it."""
    closing = caller.connection.close()
    if isinstance(caller, Awaiting):
        caller.loop.run(closing)
    with pytest.raises(MisuseError, match="must be open"):
        caller.within(ENQUEUE)


def test_a_connection_of_the_other_kind_is_misuse(caller: Caller, postgres_url: str) -> None:
    """And what is none at all; nothing of it is quoted, since it may be a URL."""
    own = caller.connection
    for wrong in (postgres_url, None, object()):
        caller.connection = wrong  # type: ignore[misc]
        with pytest.raises(MisuseError, match=r"must be a psycopg\.\w*Connection, got a ") as told:
            caller.within(ENQUEUE)
        assert postgres_url not in str(told.value)
    caller.connection = own  # type: ignore[misc]


def test_a_pipeline_is_misuse(session: Session, postgres_url: str, postgres_schema: str) -> None:
    """In it a statement has no answer yet."""
    with (
        PostgresStore(postgres_url, schema=postgres_schema) as store,
        psycopg.connect(postgres_url) as own,
        own.pipeline(),
    ):
        own.execute("SELECT 1")
        with pytest.raises(MisuseError, match="pipeline"):
            store.execute_within(own, ENQUEUE)


def test_another_database_is_misuse(
    caller: Caller, session: Session, postgres_url: str, postgres_schema: str
) -> None:
    """One without the store, and one in which the same names mean something else."""
    with database(postgres_url) as url:
        run(url, "CREATE TABLE public.orders (id text)")
        caller.connect(url)
        caller.run("INSERT INTO orders VALUES ('before')")
        with pytest.raises(MisuseError, match=f"no table {postgres_schema}.migrations"):
            caller.within(ENQUEUE)
        caller.commit()
        assert run(url, "SELECT id FROM orders") == [("before",)]
        run(
            url,
            f"CREATE SCHEMA {postgres_schema}",
            f"CREATE TABLE {postgres_schema}.migrations (number int)",
        )
        with pytest.raises(MisuseError, match=r"expected schema version 1.*found None"):
            caller.within(ENQUEUE)
        caller.rollback()
        caller.connect()


def test_another_encoding_is_misuse(caller: Caller, session: Session) -> None:
    """Not every id could be told in it."""
    caller.connect(client_encoding="LATIN1")
    with pytest.raises(MisuseError, match="in UTF8, found LATIN1"):
        caller.within(ENQUEUE)


# What does not matter ---------------------------------------------------------------------------


class Odd(Loader):
    def load(self, data: Any) -> Any:
        return ("odd", bytes(data))


class OddDumper(Dumper):
    def dump(self, obj: Any) -> bytes:
        return b"odd"


@pytest.mark.parametrize(
    "options",
    [
        {"row_factory": rows.dict_row},
        {"row_factory": rows.scalar_row},
        {"prepare_threshold": 0},
        {"prepare_threshold": None},
        {"options": "-c search_path=pg_temp -c DateStyle=German -c bytea_output=escape"},
    ],
    ids=["dict rows", "scalars", "prepared", "unprepared", "settings"],
)
def test_the_connections_own_ways_do_not_matter(
    caller: Caller, session: Session, postgres_schema: str, options: dict[str, Any]
) -> None:
    """Nor are they changed."""
    caller.connect(**options)
    for number in range(3):
        order(caller, postgres_schema)
        enqueued = caller.within(c.Enqueue(f"j{number}", request=Request(b"\0\xff", "me", "k")))
        assert isinstance(enqueued, Accepted)
    assert isinstance(caller.within(COMPLETE), Accepted)
    caller.commit()
    assert orders(session, postgres_schema) == ["before"] * 3
    assert tables_of(session, postgres_schema)["requests"]["j2"].payload == b"\0\xff"


def test_the_connections_own_adapters_do_not_matter(
    caller: Caller, session: Session, postgres_schema: str
) -> None:
    """Whatever it makes of numbers, text and bytes."""
    adapters = caller.connection.adapters
    for name in ("int8", "text", "bytea", "bool"):
        adapters.register_loader(name, Odd)
    for kind in (str, bytes, int):
        adapters.register_dumper(kind, OddDumper)
    for factory in ("ClientCursor", "RawCursor"):
        prefix = "Async" if isinstance(caller, Awaiting) else ""
        caller.connection.cursor_factory = getattr(psycopg, prefix + factory)
        assert isinstance(caller.within(ENQUEUE), Accepted)
        assert isinstance(caller.within(COMPLETE), Accepted)
    caller.commit()
    tables = tables_of(session, postgres_schema)
    assert tables["requests"]["j1"] == ENQUEUE.request
    assert tables["results"] == {"mine": COMPLETE.result}


# What fails on its way --------------------------------------------------------------------------


@BOTH
def test_a_command_that_fails_leaves_the_callers_writes(
    caller: Caller, session: Session, postgres_schema: str, command: c.Enqueue | c.Complete
) -> None:
    """And nothing of its own, although its last statement was the one that failed."""
    before = tables_of(session, postgres_schema)
    queries = caller.store._settings.queries  # type: ignore[attr-defined]
    order(caller, postgres_schema)
    with (
        mock.patch.object(queries, "put_event", "INSERT INTO nowhere VALUES (1)"),
        pytest.raises(StoreError, match="not as unswept made them"),
    ):
        caller.within(command)
    order(caller, postgres_schema, "after")
    caller.commit()
    assert orders(session, postgres_schema) == ["before", "after"]
    assert tables_of(session, postgres_schema) == before


def test_missing_privileges_leave_the_callers_writes(
    caller: Caller, session: Session, postgres_url: str, postgres_schema: str
) -> None:
    """On the schema, on its migrations, and on a table."""
    usage, tables = least(postgres_schema)
    own = f"GRANT ALL ON public.{postgres_schema}_own TO {{role}}"
    run(postgres_url, f"CREATE TABLE public.{postgres_schema}_own (id text)")
    try:
        for grants in (
            (own,),
            (own, usage),
            (own, usage, tables, f"REVOKE INSERT ON {postgres_schema}.job_ids FROM {{role}}"),
        ):
            with role(postgres_url, *grants) as url:
                caller.connect(url)
                caller.run(f"INSERT INTO public.{postgres_schema}_own VALUES ('before')")
                with pytest.raises(StoreError, match="lacks a privilege"):
                    caller.within(ENQUEUE)
                caller.commit()
                caller.connect()
        assert len(run(postgres_url, f"SELECT * FROM public.{postgres_schema}_own")) == 3
    finally:
        run(postgres_url, f"DROP TABLE public.{postgres_schema}_own")


def test_a_transaction_that_only_reads_is_told(caller: Caller, session: Session) -> None:
    """It can go on reading."""
    caller.run("SET TRANSACTION READ ONLY")
    with pytest.raises(StoreReadOnlyError):
        caller.within(ENQUEUE)
    caller.run("SELECT 1")
    caller.commit()


def test_a_lock_is_waited_for_as_long_as_the_callers_connection_waits(
    caller: Caller, session: Session, connect: Connect, postgres_schema: str
) -> None:
    """Then it is given up alone."""
    caller.connect(options="-c lock_timeout=50ms")
    stranger = connect()
    stranger.begin()
    stranger.run(f"SELECT FROM {postgres_schema}.jobs FOR UPDATE")
    order(caller, postgres_schema)
    with pytest.raises(StoreUnavailableError, match="55P03"):
        caller.within(COMPLETE)
    stranger.rollback()
    assert isinstance(caller.within(COMPLETE), Accepted)
    caller.commit()
    assert orders(session, postgres_schema) == ["before"]


def test_a_deadlock_is_psycopgs_error(
    caller: Caller,
    session: Session,
    connect: Connect,
    observer: Observer,
    postgres_schema: str,
) -> None:
    """What repeats the caller's transactions knows it by its SQLSTATE."""
    caller.connect(options="-c deadlock_timeout=10ms")
    stranger = connect()
    stranger.run("SET deadlock_timeout = '60s'")
    stranger.begin()
    stranger.run(f"SELECT FROM {postgres_schema}.jobs FOR UPDATE")
    caller.run(f"LOCK TABLE {postgres_schema}.orders")
    crossing = Meanwhile(lambda: stranger.run(f"INSERT INTO {postgres_schema}.orders VALUES ('x')"))
    holder = Session.__new__(Session)
    holder.pid = caller.connection.info.backend_pid
    assert observer.sees_wait(crossing, holder)
    with pytest.raises(psycopg.errors.DeadlockDetected):
        caller.within(COMPLETE)
    caller.rollback()
    crossing.result()
    stranger.rollback()
    assert isinstance(caller.within(COMPLETE), Accepted)
    caller.commit()


def test_a_serialization_failure_is_psycopgs_error(
    caller: Caller, session: Session, postgres_schema: str
) -> None:
    """Wherever it comes from."""
    session.run(
        f"CREATE FUNCTION {postgres_schema}.fail() RETURNS trigger LANGUAGE plpgsql"
        f" AS $$BEGIN RAISE 'not now' USING ERRCODE = '40001'; END$$"
    )
    session.run(
        f"CREATE TRIGGER fail BEFORE INSERT ON {postgres_schema}.events"
        f" FOR EACH ROW EXECUTE FUNCTION {postgres_schema}.fail()"
    )
    with pytest.raises(psycopg.errors.SerializationFailure):
        caller.within(ENQUEUE)
    caller.rollback()


def test_a_connection_that_breaks_is_unavailable(
    caller: Caller, session: Session, postgres_schema: str
) -> None:
    """The server undoes the caller's transaction with it."""
    order(caller, postgres_schema)
    pid = caller.connection.info.backend_pid
    session.run("SELECT pg_terminate_backend(%(pid)s, 10000)", pid=pid)
    with pytest.raises(StoreUnavailableError, match="nothing was written"):
        caller.within(ENQUEUE)
    assert orders(session, postgres_schema) == []
    assert "j1" not in tables_of(session, postgres_schema)["jobs"]
    caller.connect()


def test_a_beat_passes_a_completion_that_is_not_committed(
    caller: Caller, session: Session, postgres_url: str, postgres_schema: str
) -> None:
    """It is answered busy for that one hold, and the next beat knows."""
    with PostgresStore(postgres_url, schema=postgres_schema, operation_timeout_ms=400) as store:
        store.execute(c.Admit("other", "a", TERMS))
        caller.within(COMPLETE)
        beat = c.Heartbeat("a", TERMS, (c.Hold("mine", 1), c.Hold("other", 1)))
        beaten = [answer.answer for answer in store.execute(beat).answers]
        assert beaten == [Answer.BUSY, Answer.RENEWED]
        caller.commit()
        beaten = [answer.answer for answer in store.execute(beat).answers]
        assert beaten == [Answer.TERMINAL, Answer.RENEWED]
