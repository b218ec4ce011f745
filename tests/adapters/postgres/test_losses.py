"""What the outside world does: backends that are killed, servers that end, crash and only read.

A command that fails has taken no effect, unless its error says that nobody knows; and then it may
be repeated like every other.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.adapters.postgres.conftest import Connect
from tests.adapters.postgres.helpers import (
    PATIENT_MS,
    TERMS,
    Meanwhile,
    Observer,
    ServerClock,
    Session,
    eventually,
    tables_of,
    with_options,
)
from tests.adapters.postgres.races import SITUATIONS, VERBS, Names, Pure, does_something
from tests.postgres_server import PostgresServer, running
from unswept.adapters.postgres import PostgresStore, sync
from unswept.adapters.postgres.session import Batch
from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.errors import (
    OutcomeUnknownError,
    StoreReadOnlyError,
    StoreUnavailableError,
)
from unswept.core.event_log import event_key
from unswept.core.lease import Kind, Status
from unswept.core.units import Ms
from unswept.core.values import Chunk, Stream

# A command, and a situation in which it changes something.
WRITES = [(verb, next(name for name in SITUATIONS if does_something(verb, name))) for verb in VERBS]


NAMES = Names("n")


class Losing:
    """A store on which one command at a time loses its connection."""

    def __init__(self, store: PostgresStore, clock: ServerClock, connect: Connect, schema: str):
        self.store, self.clock, self.schema = store, clock, schema
        self.session = connect()

    def prepare(
        self, verb: str, situation: str, names: Names = NAMES
    ) -> tuple[Pure, c.Command[Any]]:
        """The situation, on the store and on a pure one; and the command."""
        pure = Pure(names, situation, self.clock.now)
        for at, command in pure.asked:
            self.clock.now = at
            self.store.execute(command)
        self.clock.now = pure.now
        return pure, VERBS[verb](pure.store.world, names)

    def rows(self, names: Names = NAMES) -> dict[str, Any]:
        rows = dict(tables_of(self.session, self.schema, f"{names.name}-"))
        rows["events"] = {event_key(event): event for event in rows["events"]}
        return rows

    def kill(self, wait_event: str) -> None:
        """Terminates the one backend of the store that waits for such a thing."""
        kill = (
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE wait_event = %(event)s AND datname = current_database()"
            " AND application_name = 'unswept'"
        )
        eventually(lambda: self.session.value(kill, event=wait_event) == 1)


@pytest.fixture
def losing(
    store: PostgresStore, clock: ServerClock, connect: Connect, postgres_schema: str
) -> Losing:
    return Losing(store, clock, connect, postgres_schema)


# A backend is killed ----------------------------------------------------------------------------


def test_a_backend_that_is_killed_while_it_waits_leaves_nothing(
    losing: Losing, connect: Connect, observer: Observer
) -> None:
    """Before the commit nothing has happened: the store carries the command out anew, by itself."""
    _, complete = losing.prepare("complete", "running")
    stranger = connect()
    stranger.begin()
    stranger.run(f"SELECT FROM {losing.schema}.jobs FOR UPDATE")
    work: Meanwhile[Any] = Meanwhile(lambda: losing.store.execute(complete))
    for _ in range(2):
        assert observer.sees_wait(work, stranger)
        (pid,) = observer.waiting_for(stranger)
        observer.session.run("SELECT pg_terminate_backend(%(pid)s)", pid=pid)
        eventually(lambda pid=pid: pid not in observer.waiting_for(stranger))  # type: ignore[misc]
    assert observer.sees_wait(work, stranger)
    stranger.rollback()
    done = work.result()
    assert isinstance(done, r.Accepted)
    assert done.transition is Kind.COMPLETE
    kinds = [event.kind for event in losing.store.execute(c.ReadEvents()).events]
    assert kinds == [Kind.ADMIT, Kind.START, Kind.COMPLETE]


@pytest.mark.parametrize(("verb", "situation"), WRITES, ids=[verb for verb, _ in WRITES])
def test_a_backend_may_be_killed_between_any_two_round_trips(
    verb: str, situation: str, losing: Losing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever it is, the command is carried out once; only where the COMMIT was on its way does
    its caller hear that nobody knows, and repeats it."""
    sent = sync._sent
    trips = unknown = 0
    to_kill = 1

    def kill_before(connection: psycopg.Connection[Any], batch: Batch) -> Any:
        nonlocal trips
        trips += 1
        if trips == to_kill:
            pid = connection.info.backend_pid
            losing.session.run("SELECT pg_terminate_backend(%(pid)s, 10000)", pid=pid)
        return sent(connection, batch)

    while trips >= to_kill - 1:
        names = Names(f"n{to_kill}")
        pure, command = losing.prepare(verb, situation, names)
        trips = 0
        with monkeypatch.context() as patched:
            patched.setattr(sync, "_sent", kill_before)
            try:
                reply = losing.store.execute(command)
            except OutcomeUnknownError:
                unknown += 1
                reply = losing.store.execute(command)
        assert reply == pure.execute(command, losing.clock.now), f"killed before trip {to_kill}"
        assert losing.rows(names) == pure.rows(), f"killed before trip {to_kill}"
        to_kill += 1
    assert to_kill > 3
    assert unknown == 1


def test_idle_connections_that_are_killed_are_replaced(losing: Losing) -> None:
    """As by a server that restarted, or a firewall: the next commands go through."""
    open_now = "FROM pg_stat_activity WHERE application_name = 'unswept'"
    for _ in range(3):
        # The pool opens anew in the background what it has lost.
        eventually(lambda: losing.session.value(f"SELECT count(*) {open_now}") >= 2)
        losing.session.value(f"SELECT count(pg_terminate_backend(pid, 10000)) {open_now}")
        losing.store.execute(c.Register("a"))
        assert losing.store.execute(c.Heartbeat("a", TERMS)).registered


DEFER = """
CREATE FUNCTION {schema}.linger() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_advisory_xact_lock(77); RETURN NULL; END $$;
"""
WRITTEN = "jobs job_ids output events instances consumers"


@pytest.mark.parametrize(("verb", "situation"), WRITES, ids=[verb for verb, _ in WRITES])
def test_a_backend_that_is_killed_in_its_commit_leaves_nothing(
    verb: str, situation: str, losing: Losing, connect: Connect
) -> None:
    """The COMMIT was sent, and nobody can know more: the error says so. Here nothing was written,
    and the command, repeated, does what it would have done."""
    pure, command = losing.prepare(verb, situation)
    holder = connect()
    holder.run("SELECT pg_advisory_lock(77)")
    losing.session.run(DEFER.format(schema=losing.schema))
    for table in WRITTEN.split():
        losing.session.run(
            f"CREATE CONSTRAINT TRIGGER linger AFTER INSERT OR UPDATE OR DELETE"
            f" ON {losing.schema}.{table} DEFERRABLE INITIALLY DEFERRED"
            f" FOR EACH ROW EXECUTE FUNCTION {losing.schema}.linger()"
        )
    before = losing.rows()
    work: Meanwhile[Any] = Meanwhile(lambda: losing.store.execute(command))
    losing.kill("advisory")
    with pytest.raises(OutcomeUnknownError):
        work.result()
    holder.close()
    assert losing.rows() == before
    assert losing.store.execute(command) == pure.execute(command, losing.clock.now)
    assert losing.rows() == pure.rows()


# The answer to a commit is lost -----------------------------------------------------------------


@pytest.fixture(scope="module")
def slow_to_answer() -> Iterator[PostgresServer]:
    """Each COMMIT is carried out, and answered only when a standby, which there is none, has it:
    a backend that is killed meanwhile has committed and will not say so."""
    settings = {"synchronous_commit": "local", "synchronous_standby_names": "nobody"}
    with running(settings) as server:
        yield server


@pytest.mark.parametrize(("verb", "situation"), WRITES, ids=[verb for verb, _ in WRITES])
def test_a_command_whose_answer_was_lost_is_repeated(
    verb: str, situation: str, slow_to_answer: PostgresServer
) -> None:
    """It has taken effect, once, and the repeat has no second effect: it gets the first answer, or
    one that says what stands. Replies and rows are those of the pure store."""
    schema = f"lost_{verb.replace(' ', '_')}"
    slow = with_options(slow_to_answer.url, "-c synchronous_commit=on")
    with (
        Session(slow_to_answer.url) as session,
        PostgresStore(slow_to_answer.url, schema=schema) as quick,
    ):
        clock = ServerClock(session, schema)
        losing = Losing(quick, clock, lambda: session, schema)
        pure, command = losing.prepare(verb, situation)
        with PostgresStore(slow, schema=schema, operation_timeout_ms=PATIENT_MS) as store:
            work: Meanwhile[Any] = Meanwhile(lambda: store.execute(command))
            losing.kill("SyncRep")
            with pytest.raises(OutcomeUnknownError):
                work.result()
        pure.execute(command, clock.now)
        assert losing.rows() == pure.rows()
        clock.now += 1
        assert quick.execute(command) == pure.execute(command, clock.now)
        assert losing.rows() == pure.rows()


# The server goes away, and comes back -----------------------------------------------------------


def until_done(store: PostgresStore, command: c.Command[Any]) -> tuple[Any, int]:
    """Repeats a command as a runtime does until it is answered; gives also how often it failed."""
    failed = 0
    until = time.monotonic() + 60
    while True:
        try:
            return store.execute(command), failed
        except (StoreUnavailableError, OutcomeUnknownError):
            assert time.monotonic() < until
            failed += 1
            time.sleep(0.01)


@pytest.mark.parametrize("crash", [False, True], ids=["stopped", "crashed"])
def test_nothing_is_lost_when_the_server_restarts_under_load(
    crash: bool, own_server: PostgresServer
) -> None:
    """Each job that was begun is carried to its end by repeating what failed: each answer is the
    first one or a repeat, each step has one event, and no other error is raised."""
    jobs = 40
    restarts = 3

    def work(store: PostgresStore, owner: str, enough: Callable[[], bool]) -> tuple[int, int]:
        failed = number = 0
        while number < jobs or not enough():
            job_id = f"{owner}{number:05}"
            steps: tuple[c.Command[Any], ...] = (
                c.Admit(job_id, owner, TERMS),
                c.Start(job_id, owner, 1, TERMS),
                c.Output(job_id, owner, 1, Chunk(0, Stream.STDOUT, b"x"), TERMS.lease_ttl_ms),
                c.Complete(job_id, owner, 1, Status.COMPLETED),
            )
            for step in steps:
                reply, more = until_done(store, step)
                assert isinstance(reply, r.Accepted), (step, reply)
                failed += more
            number += 1
        return number, failed

    def beat(store: PostgresStore, enough: Callable[[], bool]) -> int:
        beats = 0
        while not enough():
            beaten, _ = until_done(store, c.Heartbeat("beating", TERMS, (c.Hold("held", 1),)))
            assert beaten.answers[0].answer is r.Answer.RENEWED
            beats += 1
        return beats

    over: list[bool] = []
    with (
        PostgresStore(own_server.url, operation_timeout_ms=1_000) as store,
        PostgresStore(own_server.url, operation_timeout_ms=1_000) as other,
    ):
        store.execute(c.Admit("held", "beating", TERMS))
        working = [
            Meanwhile(lambda: work(store, "a", lambda: bool(over))),
            Meanwhile(lambda: work(other, "b", lambda: bool(over))),
        ]
        beating = Meanwhile(lambda: beat(store, lambda: bool(over)))
        for _ in range(restarts):
            time.sleep(0.2)
            own_server.stop(crash=crash)
            own_server.start()
        time.sleep(0.1)
        over.append(True)
        (a_jobs, _), (b_jobs, _) = (each.result() for each in working)
        assert beating.result() > 0
        counts: Counter[tuple[str, Kind]] = Counter()
        page = store.execute(c.ReadEvents(limit=10_000))
        while page.events:
            counts.update((event.job_id, event.kind) for event in page.events)
            page = store.execute(c.ReadEvents(page.next_after, limit=10_000))
        assert set(counts.values()) == {1}
        done = sorted(job_id for job_id, kind in counts if kind is Kind.COMPLETE)
        expected = [f"a{number:05}" for number in range(a_jobs)]
        expected += [f"b{number:05}" for number in range(b_jobs)]
        assert done == expected


def test_a_server_that_is_gone_is_out_of_reach(own_server: PostgresServer) -> None:
    """That is said within the operation timeout; later the same store goes on."""
    commands: list[c.Command[Any]] = [c.Register("a"), c.Heartbeat("a", TERMS), c.Find("j")]
    with PostgresStore(own_server.url, operation_timeout_ms=500) as store:
        own_server.stop()
        for command in commands:
            with pytest.raises(StoreUnavailableError):
                store.execute(command)
        with pytest.raises(StoreUnavailableError):
            PostgresStore(own_server.url)
        own_server.start()
        for command in commands:
            until_done(store, command)


# The server only reads --------------------------------------------------------------------------


def set_read_only(server: PostgresServer) -> None:
    with Session(server.url) as session:
        session.run("ALTER SYSTEM SET default_transaction_read_only = on")
        session.run("SELECT pg_reload_conf()")

        def is_set() -> bool:
            with Session(server.url) as new:
                return bool(new.value("SHOW default_transaction_read_only") == "on")

        eventually(is_set)


def become_standby(server: PostgresServer) -> None:
    server.stop()
    server.start(standby=True)


@pytest.mark.parametrize("how", [set_read_only, become_standby], ids=lambda how: how.__name__)
def test_a_server_that_only_reads_refuses_writes_and_answers_readers(
    how: Callable[[PostgresServer], None], own_server: PostgresServer
) -> None:
    """As after a failover to a replica: each write says so, and nothing but writes fails, the
    making of a schema among them."""
    names = Names("n")
    unborn = Pure(names, "unborn", 1).store.world
    writes: list[c.Command[Any]] = [verb(unborn, names) for verb in VERBS.values()]
    writes += [c.Register("n-a"), c.Deregister("n-a"), c.Heartbeat("n-a", TERMS)]
    with PostgresStore(own_server.url, operation_timeout_ms=5_000) as store:
        store.execute(c.Register("n-a"))
        store.execute(c.Admit("j", "n-a", TERMS))
        how(own_server)
        for write in writes:
            with pytest.raises(StoreReadOnlyError):
                store.execute(write)
        assert isinstance(store.execute(c.Find("j")), r.Found)
        assert isinstance(store.execute(c.ReadRequest("j")), r.RequestRead)
        assert isinstance(store.execute(c.ReadOutput("j")), r.OutputPage)
        assert len(store.execute(c.ReadEvents()).events) == 1
        assert len(store.execute(c.ListInstances()).instances) == 1
        assert store.execute(c.LookOverdue(Ms(1), Ms(10**9), Ms(1))).evictable == ()
    with PostgresStore(own_server.url, migrate=False) as opened:
        assert isinstance(opened.execute(c.Find("j")), r.Found)
    with pytest.raises(StoreReadOnlyError):
        PostgresStore(own_server.url, schema="another")
