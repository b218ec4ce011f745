"""On every store: a command whose answer was lost is repeated, and has no second effect.

A gateway that loses its connection between COMMIT and the answer cannot know whether its command
took effect, and asks once more. Each story tells that of one command, in the words of
`unswept.simulations.scenarios.language`:

    0    admit j1 A
    1    do start j1 A 1  -> start: running A e1 b2 d101
    5    again            -> repeated: running A e1 b2 d101
    102  sweep S j1/1/2
    103  again            -> refused orphaned: orphaned A e1 b2

The connection is lost after the line with `do`, and after each `again`, which repeats the command
of that line: at once, and after others have changed the job meanwhile. What must hold:

* `do` changes the store, unless it only reads; no `again` changes a row or adds an event. What it
  may touch is listed in `MAY_TOUCH`, and `again leaves KIND` is for a wish that stands: to cancel a
  job ends it as soon as it is nobody's;
* the answer to `again` is the first one, or says what stands by now: to be checked by eye;
* every answer and every row equal the pure store's, on every line;
* other lines prepare, and change the store where they show no answer.

Not told: a Register and a Deregister of the same id in turns. An instance's id is of one boot, and
is deregistered once, at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from uuid import uuid4

import psycopg
import pytest
from attrs import frozen

from tests.adapters.postgres.helpers import Session
from tests.adapters.postgres.helpers import tables_of as postgres_tables
from tests.adapters.sqlite.helpers import Clock, tables_of
from tests.adapters.tables import tables_in
from unswept.adapters.postgres import PostgresStore
from unswept.adapters.postgres.simulated import GivenClockStore
from unswept.adapters.sql.scripts import SCRIPTS
from unswept.adapters.sql.steps import Mode
from unswept.adapters.sqlite import SqliteStore
from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.job import Job
from unswept.core.memory import MemoryStore
from unswept.core.records import changed
from unswept.core.units import StoreMs
from unswept.core.values import Instance
from unswept.core.world import all_commands
from unswept.simulations.scenarios.language import VERBS, Options, lines_of, shown

Tables = Mapping[str, Any]


@frozen
class Opened:
    """A store under test, and what a test may do to it."""

    store: c.Store
    tables: Callable[[], Tables]
    """All rows, in the shape of `tables_in`."""
    lose_connection: Callable[[], None]
    """Cuts every connection to the database; the store connects anew at its next command."""


@contextmanager
def on_sqlite(folder: Path, clock: Clock) -> Iterator[Opened]:
    path = folder / "jobs.db"
    with SqliteStore(path, clock=clock, durability="normal") as store:

        def lose_connection() -> None:
            for connection in store._connections:
                with connection.lock:
                    connection.close()

        yield Opened(store, lambda: tables_of(path), lose_connection)


@contextmanager
def on_postgres(folder: Path, clock: Clock) -> Iterator[Opened]:
    url, schema = POSTGRES[0], f"unswept_repeats_{uuid4().hex[:12]}"
    with (
        PostgresStore(
            f"{url}{'&' if '?' in url else '?'}application_name={schema}",
            schema=schema,
            max_connections=1,
        ) as store,
        Session(url) as session,
        closing(GivenClockStore(store, clock, psycopg.connect(url, autocommit=True))) as given,
    ):

        def lose_connection() -> None:
            session.run(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = %(name)s AND pid <> pg_backend_pid()",
                name=schema,
            )

        yield Opened(given, lambda: postgres_tables(session, schema), lose_connection)


STORES: Final = MappingProxyType[str, Callable[[Path, Clock], AbstractContextManager[Opened]]](
    {"sqlite": on_sqlite, "postgres": on_postgres}
)
"""Every store that has to tell the stories: a further one is added here."""

POSTGRES: Final[list[str]] = []
"""The server's URL, once a test asked for it."""


@pytest.fixture(autouse=True)
def _postgres(request: pytest.FixtureRequest) -> None:
    if "postgres" in request.node.name and not POSTGRES:
        POSTGRES.append(request.getfixturevalue("postgres_url"))


# What a repeat may touch --------------------------------------------------------------------------


def _unseen(row: Instance) -> Instance:
    return changed(row, seen_at=StoreMs(0))


def _unstamped(job: Job) -> Job:
    if job.lease.owner is None or job.lease.deadline is None:
        return job
    lease = changed(job.lease, beats=0, deadline=StoreMs(0))
    return changed(job, lease=lease, beat_at=StoreMs(0))


MAY_TOUCH: Final = MappingProxyType[type, Mapping[str, Callable[[Any], Any]]](
    {
        c.Register: {"instances": _unseen},
        c.LeaseEvents: {"consumers": lambda row: changed(row, expires_at=StoreMs(0))},
        # A beat that comes twice stamps twice.
        c.Heartbeat: {"instances": _unseen, "jobs": _unstamped},
    }
)
"""Rows without what a repeat of the command may change in them."""


def untouched(tables: Tables, command: c.Command[Any]) -> Tables:
    blind = MAY_TOUCH.get(type(command), {})
    return {
        name: {key: blind[name](row) for key, row in rows.items()} if name in blind else rows
        for name, rows in tables.items()
    }


# Telling a story ----------------------------------------------------------------------------------

WORDS: Final[Mapping[str, Callable[[list[str], Options], c.Command[Any]]]] = {
    **VERBS,
    "instances": lambda words, options: c.ListInstances(),
    "request": lambda words, options: c.ReadRequest(words[0]),
}


def command_of(words: list[str]) -> c.Command[Any]:
    verb, *rest = words
    options = dict(word.split("=", 1) for word in rest if "=" in word)
    return WORDS[verb]([word for word in rest if "=" not in word], options)


def answered(reply: Any) -> str:
    match reply:
        case r.Instances():
            return ", ".join(f"{row.id} seen={row.seen_at}" for row in reply.instances) or "nothing"
        case r.RequestRead():
            return f"key={reply.request.principal}/{reply.request.request_key}"
    return shown(reply)


class Teller:
    """Asks a store and the pure one the same, and looks at all rows before and after."""

    def __init__(self, opened: Opened, clock: Clock) -> None:
        self.opened = opened
        self.clock = clock
        self.pure = MemoryStore(clock)
        self.lost: c.Command[Any] | None = None

    def tell(self, line: str) -> str:
        """The line, with the answer that was really given where the line has one."""
        said, arrow, _ = line.partition(" -> ")
        at, verb, *words = said.split()
        self.clock.now = int(at)
        before = self.opened.tables()
        if verb == "do":
            self.lost = command_of(words)
            reply = self.ask(self.lost)
            self.opened.lose_connection()
            changes = self.opened.tables() != before
            assert changes is (SCRIPTS[type(self.lost)].mode is Mode.WRITE), line
        elif verb == "again":
            assert self.lost is not None
            reply = self.ask(self.lost)
            self.opened.lose_connection()
            self.check_left(line, before, self.lost, words[1:])
        else:
            reply = self.ask(command_of([verb, *words]))
            assert arrow or self.opened.tables() != before, f"says nothing, does nothing: {line}"
        return f"{said}{arrow}{answered(reply)}" if arrow else said

    def ask(self, command: c.Command[Any]) -> Any:
        reply = self.opened.store.execute(command)
        assert reply == self.pure.execute(command), command
        assert self.opened.tables() == tables_in(self.pure.world), command
        return reply

    def check_left(
        self, line: str, before: Tables, command: c.Command[Any], kinds: list[str]
    ) -> None:
        """What a repeat left: these events, and where there is none no changed row either."""
        after = self.opened.tables()
        left = after["events"][len(before["events"]) :]
        assert [event.kind.value for event in left] == kinds, line
        if not kinds:
            assert untouched(after, command) == untouched(before, command), line


# The stories --------------------------------------------------------------------------------------

STORIES: Final = MappingProxyType(
    {
        "register": """
            0     do register A claims=3 -> registered, claims=3
            5     again                  -> registered, claims=3
            6     claim A 4
            7     again                  -> registered, claims=4
        """,
        "deregister": """
            0     register A
            1     admit j1 A
            2     do deregister A -> deregistered
            3     again           -> deregistered
        """,
        "deregister, having claimed": """
            0     register A
            1     claim A 7
            2     do deregister A -> deregistered
            3     again           -> deregistered
            4     register A      -> registered, claims=7
            5     enqueue j1
            6     claim A 7       -> again: nothing
        """,
        "instances": """
            0     register A
            1     do instances -> A seen=0
            2     again        -> A seen=0
            3     deregister A
            4     again        -> nothing
        """,
        "admit": """
            0     register B
            0     do admit j1 A requeueable -> admit: queued A e1 b1 d100
            1     again                     -> repeated: queued A e1 b1 d100
            2     start j1 A 1
            3     again                     -> repeated: running A e1 b2 d102
            103   sweep S j1/1/2
            104   again                     -> repeated: orphaned A e1 b2
            105   requeue j1 1
            106   again                     -> repeated: queued - e2 b2
            107   claim B 1
            108   again                     -> repeated: running B e3 b3 d157
            109   complete j1 B 3 completed
            110   again                     -> repeated: completed B e3 b3
            1110  evict j1/3
            1111  again                     -> refused spent
        """,
        "admit, withdrawn": """
            0     do admit j1 A -> admit: queued A e1 b1 d100
            1     withdraw j1 A
            2     again         -> repeated: failed A e1 b1
        """,
        "admit under a key": """
            0     do admit j1 A key=me/k -> admit: queued A e1 b1 d100
            1     again                  -> repeated: queued A e1 b1 d100
            2     admit j2 B key=me/k fresh
            3     again                  -> repeated: queued A e1 b1 d100
            100   forget-key me k j2
            101   again                  -> repeated: queued A e1 b1 d100
            102   sweep S j1/1/1
            103   again                  -> repeated: orphaned A e1 b1
        """,
        "admit, joined": """
            0     admit j1 A key=me/k
            1     do admit j2 B key=me/k -> joined j1: queued A e1 b1 d100
            2     again                  -> joined j1: queued A e1 b1 d100
            3     start j1 A 1
            4     again                  -> joined j1: running A e1 b2 d103
            104   sweep S j1/1/2
            105   again                  -> joined j1: orphaned A e1 b2
            106   complete j1 A 1 failed
            107   again                  -> joined j1: failed A e1 b2
            1107  evict j1/1
            1108  again                  -> refused spent
        """,
        "enqueue": """
            0     register A
            0     do enqueue j1 requeueable until=50 -> enqueue: queued - e0 b0
            1     again                              -> repeated: queued - e0 b0
            2     claim A 1
            3     again                              -> repeated: running A e1 b1 d52
            4     release j1 A 1
            5     again                              -> repeated: queued - e2 b1
            6     cancel j1
            7     again                              -> repeated: canceled - e3 b1 c6
            1007  evict j1/3
            1008  again                              -> refused spent
        """,
        "enqueue, expired": """
            0     do enqueue j1 until=50 -> enqueue: queued - e0 b0
            51    expire j1
            52    again                  -> repeated: expired - e1 b0
        """,
        "withdraw before the admit": """
            0     do withdraw j1 A -> withdrawn
            1     again            -> withdrawn
            2     admit j1 A       -> refused spent
            3     enqueue j1       -> refused spent
            4     again            -> withdrawn
        """,
        "withdraw of an admit": """
            0     admit j1 A
            1     do withdraw j1 A -> withdraw: failed A e1 b1
            2     again            -> refused already_terminal: failed A e1 b1
            1002  evict j1/1
            1003  again            -> withdrawn
        """,
        "withdraw of an enqueue": """
            0     enqueue j1
            1     do withdraw j1 A -> cancel: canceled - e1 b0 c1
            2     again            -> refused already_terminal: canceled - e1 b0 c1
        """,
        "withdraw from its runner": """
            0     register B
            0     enqueue j1
            1     claim B 1
            2     do withdraw j1 A    -> request_cancel: running B e1 b1 d51 c2
            3     again               -> repeated: running B e1 b1 d51 c2
            60    sweep S j1/1/1
            61    again leaves cancel -> cancel: canceled - e2 b1 c2
            62    again               -> refused already_terminal: canceled - e2 b1 c2
        """,
        "claim": """
            0     register A
            0     enqueue j1 requeueable
            1     enqueue j2 requeueable
            2     do claim A 1 limit=2 -> got: j1 running A e1 b1 d52, j2 running A e1 b1 d52
            3     again                -> again: j1 running A e1 b1 d52, j2 running A e1 b1 d52
            4     enqueue j3
            5     again                -> again: j1 running A e1 b1 d52, j2 running A e1 b1 d52
            6     complete j1 A 1 completed
            7     again                -> again: j2 running A e1 b1 d52
            8     beat A j2/1
            9     again                -> again: j2 running A e1 b2 d108
            109   sweep S j2/1/2
            110   again                -> again: nothing
            111   requeue j2 1
            112   again                -> again: nothing
            113   claim A 2
            114   again                -> again: nothing
            115   deregister A
            116   again                -> refused not_registered
        """,
        "claim of nothing": """
            0     register A
            1     do claim A 1 -> got: nothing
            2     enqueue j1
            3     again        -> again: nothing
        """,
        "start": """
            0     admit j1 A requeueable
            1     do start j1 A 1 pid=7 -> start: running A e1 b2 d101
            5     again                 -> repeated: running A e1 b2 d101
            6     beat A j1/1
            7     again                 -> repeated: running A e1 b3 d106
            8     cancel j1
            9     again                 -> repeated: running A e1 b3 d106 c8
            107   sweep S j1/1/3
            108   again                 -> refused orphaned: orphaned A e1 b3 c8
            109   requeue j1 1
            110   again                 -> refused stale_epoch: canceled - e2 b3 c8
            1110  evict j1/2
            1111  again                 -> refused spent
        """,
        "start of a claimed job": """
            0     register A
            0     enqueue j1
            1     claim A 1
            2     do start j1 A 1 pid=7 -> repeated: running A e1 b1 d51
            3     again                 -> repeated: running A e1 b1 d51
            4     complete j1 A 1 completed
            5     again                 -> refused already_terminal: completed A e1 b1
        """,
        "beat": """
            0     register A
            0     admit j1 A requeueable
            0     admit j2 A
            1     do beat A j1/1 j2/1 -> j1 renewed d101, j2 renewed d101
            5     again               -> j1 renewed d105, j2 renewed d105
            6     cancel j1
            7     again               -> j1 renewed d107 c6, j2 renewed d107
            8     complete j2 A 1 completed
            9     again               -> j1 renewed d109 c6, j2 terminal
            110   sweep S j1/1/5
            111   again               -> j1 orphaned c6, j2 terminal
            112   requeue j1 1
            113   again               -> j1 fenced, j2 terminal
            1009  evict j2/1
            1010  again               -> j1 fenced, j2 absent
            1011  deregister A
            1012  again               -> j1 fenced, j2 absent (not registered)
        """,
        "output": """
            0     admit j1 A requeueable
            1     do output j1 A 1 0 text -> output: queued A e1 b1 d100
            2     again                   -> repeated: queued A e1 b1 d100
            3     output j1 A 1 1 more
            102   sweep S j1/1/1
            103   again                   -> repeated: orphaned A e1 b1
            104   complete j1 A 1 completed
            130   again                   -> repeated: completed A e1 b1
            1105  evict j1/1
            1106  again                   -> refused spent
        """,
        "output, requeued": """
            0     admit j1 A requeueable
            1     do output j1 A 1 0 text -> output: queued A e1 b1 d100
            2     release j1 A 1
            3     again                   -> refused stale_epoch: queued - e2 b1
            4     print j1 1              -> e1: text
        """,
        "complete": """
            0     admit j1 A
            1     do complete j1 A 1 failed code=3 -> complete: failed A e1 b1
            2     again                            -> repeated: failed A e1 b1
            3     cancel j1                        -> refused already_terminal: failed A e1 b1
            4     again                            -> repeated: failed A e1 b1
            1002  evict j1/1
            1003  again                            -> refused spent
        """,
        "complete, healing": """
            0     admit j1 A
            101   sweep S j1/1/1
            102   do complete j1 A 1 completed code=0 -> heal: completed A e1 b1
            103   again                               -> repeated: completed A e1 b1
            104   settle j1 1 failed                  -> refused already_terminal: completed A e1 b1
            105   again                               -> repeated: completed A e1 b1
        """,
        "complete, too late": """
            0     admit j1 A requeueable
            1     release j1 A 1
            2     do complete j1 A 1 completed -> refused stale_epoch: queued - e2 b1
            3     again                        -> refused stale_epoch: queued - e2 b1
            4     cancel j1
            5     again                        -> refused stale_epoch: canceled - e3 b1 c4
        """,
        "release": """
            0     register B
            0     admit j1 A requeueable
            1     do release j1 A 1 from=5 -> release: queued - e2 b1
            2     again                    -> repeated: queued - e2 b1
            5     claim B 1
            6     again                    -> refused stale_epoch: running B e3 b2 d55
            7     complete j1 B 3 completed
            8     again                    -> refused stale_epoch: completed B e3 b2
            1008  evict j1/3
            1009  again                    -> refused spent
        """,
        "release under a cancel": """
            0     admit j1 A requeueable
            1     cancel j1
            2     do release j1 A 1 -> release: canceled - e2 b1 c1
            3     again             -> repeated: canceled - e2 b1 c1
        """,
        "cancel, asked": """
            0     admit j1 A requeueable
            1     do cancel j1 -> request_cancel: queued A e1 b1 d100 c1
            5     again        -> repeated: queued A e1 b1 d100 c1
            6     beat A j1/1
            7     again        -> repeated: queued A e1 b2 d106 c1
            8     release j1 A 1
            9     again        -> repeated: canceled - e2 b2 c1
            1009  evict j1/2
            1010  again        -> withdrawn
        """,
        "cancel, asked of one that is swept": """
            0     admit j1 A
            1     do cancel j1        -> request_cancel: queued A e1 b1 d100 c1
            101   sweep S j1/1/1
            102   again leaves cancel -> cancel: canceled - e2 b1 c1
            103   again               -> repeated: canceled - e2 b1 c1
        """,
        "cancel, asked of one that completes": """
            0     admit j1 A
            1     do cancel j1 -> request_cancel: queued A e1 b1 d100 c1
            2     complete j1 A 1 completed
            3     again        -> refused already_terminal: completed A e1 b1 c1
        """,
        "cancel": """
            0     enqueue j1
            1     do cancel j1 -> cancel: canceled - e1 b0 c1
            2     again        -> repeated: canceled - e1 b0 c1
            1002  evict j1/1
            1003  again        -> withdrawn
        """,
        "cancel before the enqueue": """
            0     do cancel j1 -> withdrawn
            1     again        -> withdrawn
            2     enqueue j1   -> refused spent
            3     admit j1 A   -> refused spent
            4     again        -> withdrawn
        """,
        "claim beyond the budget": """
            0     register A budget=1
            0     enqueue j1
            1     enqueue j2
            2     claim A 1
            3     do claim A 2 limit=2 -> refused budget
            4     complete j1 A 1 completed
            5     again                -> again: nothing
            6     claim A 3
        """,
        "enqueue with labels": """
            0     register A
            0     do enqueue j1 labels=gpu+cpu -> enqueue: queued - e0 b0
            1     again                        -> repeated: queued - e0 b0
            2     enqueue j2
            3     do claim A 1 labels=cpu+gpu limit=2 -> got: j1 running A e1 b1 d53, \
j2 running A e1 b1 d53
            4     again                        -> again: j1 running A e1 b1 d53, \
j2 running A e1 b1 d53
        """,
        "sweep, requeueing": """
            0     register B
            0     admit j1 A requeueable then=requeue/2
            101   do sweep S j1/1/1 -> j1 done
            102   again             -> j1 stale_epoch
            103   claim B 1
            154   sweep S j1/3/2
            155   again             -> j1 stale_epoch
        """,
        "sweep, failing": """
            0     admit j1 A then=fail
            101   do sweep S j1/1/1 -> j1 done
            102   again             -> j1 stale_epoch
            1102  evict j1/2
            1103  again             -> j1 spent
        """,
        "requeue": """
            0     register B
            0     admit j1 A requeueable
            101   sweep S j1/1/1
            102   do requeue j1 1 from=105 -> requeue: queued - e2 b1
            103   again                    -> repeated: queued - e2 b1
            105   claim B 1
            106   again                    -> refused stale_epoch: running B e3 b2 d155
            156   sweep S j1/3/2
            157   again                    -> refused stale_epoch: orphaned B e3 b2
            158   complete j1 B 3 completed
            159   again                    -> refused stale_epoch: completed B e3 b2
            1159  evict j1/3
            1160  again                    -> refused spent
        """,
        "requeue by force, under a cancel": """
            0     admit j1 A
            1     cancel j1
            101   sweep S j1/1/1
            102   do requeue j1 1 force -> requeue: canceled - e2 b1 c1
            103   again                 -> repeated: canceled - e2 b1 c1
        """,
        "settle": """
            0     admit j1 A
            101   sweep S j1/1/1
            102   do settle j1 1 failed -> settle: failed - e2 b1
            103   again                 -> repeated: failed - e2 b1
            104   complete j1 A 1 completed
            105   again                 -> repeated: failed - e2 b1
            1103  evict j1/2
            1104  again                 -> refused spent
        """,
        "expire": """
            0     enqueue j1 until=50
            51    do expire j1 -> expire: expired - e1 b0
            52    again        -> repeated: expired - e1 b0
            1052  evict j1/1
            1053  again        -> refused spent
        """,
        "suspects": """
            0     admit j1 A
            101   do suspects -> j1/1/1
            102   again       -> j1/1/1
            103   beat A j1/1
            104   again       -> nothing
        """,
        "delay": """
            0     admit j1 A
            101   do delay S j1 1 1 -> delay: queued A e1 b2 d201
            102   again             -> refused beats_moved: queued A e1 b2 d201
            202   again             -> refused beats_moved: queued A e1 b2 d201
            203   beat A j1/1
            304   again             -> refused beats_moved: queued A e1 b3 d303
            305   sweep S j1/1/3
            306   again             -> refused orphaned: orphaned A e1 b3
            307   complete j1 A 1 completed
            308   again             -> refused already_terminal: completed A e1 b3
        """,
        "sweep": """
            0     register B
            0     admit j1 A requeueable
            0     admit j2 A
            101   do sweep S j1/1/1 j2/1/1 -> j1 done, j2 done
            102   again                    -> j1 repeated, j2 repeated
            103   requeue j1 1
            104   complete j2 A 1 completed
            105   again                    -> j1 stale_epoch, j2 already_terminal
            106   claim B 1
            107   again                    -> j1 stale_epoch, j2 already_terminal
            157   again                    -> j1 stale_epoch, j2 already_terminal
            158   complete j1 B 3 completed
            1105  evict j2/1
            1106  again                    -> j1 stale_epoch, j2 spent
        """,
        "sweep of one that is canceled": """
            0     admit j1 A requeueable
            101   do sweep S j1/1/1 -> j1 done
            102   cancel j1
            103   again             -> j1 stale_epoch
            1103  evict j1/2
            1104  again             -> j1 spent
        """,
        "overdue": """
            0     admit j1 A key=me/k
            1     complete j1 A 1 completed
            2     enqueue j2 until=50
            3     register A
            1002  do overdue -> j1/1, j2/0, A/3, me/k/j1
            1003  again      -> j1/1, j2/0, A/3, me/k/j1
            1004  evict j1/1
            1005  expire j2
            1006  forget A/3
            1007  again      -> me/k/j1
        """,
        "evict": """
            0     admit j1 A key=me/k
            1     output j1 A 1 0 text
            2     complete j1 A 1 completed
            1003  do evict j1/1 -> j1 done
            1004  again         -> j1 repeated
            1005  admit j1 A    -> refused spent
            1006  enqueue j1    -> refused spent
            1007  again         -> j1 repeated
        """,
        "forget": """
            0     register A
            0     register B
            501   do forget A/0 B/0 -> forgot 2
            502   again             -> forgot 0
            503   register A
            1004  again             -> forgot 0
        """,
        "forget-key": """
            0     admit j1 A key=me/k
            61    do forget-key me k j1 -> forgot 1
            62    again                 -> forgot 0
            63    admit j2 A key=me/k
            124   again                 -> forgot 0
        """,
        "find": """
            0     admit j1 A
            1     do find j1 -> found: queued A e1 b1 d100
            2     again      -> found: queued A e1 b1 d100
            3     complete j1 A 1 completed code=0
            4     again      -> found: completed A e1 b1 code=0
            1004  evict j1/1
            1005  again      -> refused spent
        """,
        "request": """
            0     admit j1 A key=me/k
            1     do request j1 -> key=me/k
            2     again         -> key=me/k
            3     complete j1 A 1 completed
            1004  evict j1/1
            1005  again         -> refused spent
        """,
        "print": """
            0     admit j1 A requeueable
            1     output j1 A 1 0 text
            2     do print j1 -> e1: text
            3     again       -> e1: text
            4     output j1 A 1 1 more
            5     again       -> e1: text more
            6     release j1 A 1
            7     again       -> e2: -
        """,
        "forget events": """
            0     admit j1 A
            1     complete j1 A 1 completed
            1002  evict j1/1
            1003  admit j2 A
            1303  do overdue events   -> events of j1
            1304  again               -> events of j1
            1305  do forget-events j1 -> forgot 1
            1306  again               -> forgot 0
            1307  do events           -> admit/1
            1308  again               -> admit/1
            1309  complete j2 A 1 failed
            1310  again               -> admit/1, complete/1
        """,
        "forget a consumer": """
            0     admit j1 A
            1     lease mail A
            2     ack mail 1 1 error=broken
            52    do forget-consumer mail -> forgot 1
            53    again                   -> forgot 0
            54    lease mail A
            55    again                   -> refused leased
        """,
        "lease of a consumer": """
            0     do lease mail A -> leased: token 1 behind 0 until 50, attempt 1
            1     again           -> renewed: token 1 behind 0 until 51, attempt 1
            52    lease mail B
            53    again           -> refused leased
        """,
        "acknowledge": """
            0     admit j1 A
            0     start j1 A 1
            0     lease mail A
            1     do ack mail 1 1 -> moved: 1
            2     again           -> repeated: 1
            3     ack mail 1 2
            4     again           -> repeated: 2
            52    lease mail B
            53    again           -> refused stale_token
        """,
        "acknowledge, giving back": """
            0     admit j1 A
            0     lease mail A
            1     do ack mail 1 1 last -> moved: 1
            2     again                -> repeated: 1
        """,
        "dead letter": """
            0     admit j1 A
            0     lease mail A
            1     do ack mail 1 1 error=broken -> moved: 1
            2     again                        -> repeated: 1
            3     do letters mail              -> 1 broken
            4     again                        -> 1 broken
            5     do consumers                 -> mail 1/1
            6     again                        -> mail 1/1
        """,
        "count": """
            0     admit j1 A
            1     enqueue j2 in=gpu
            2     do count -> - 0/1+0/0, gpu 1@1/0+0/0
            3     again    -> - 0/1+0/0, gpu 1@1/0+0/0
            4     complete j1 A 1 completed
            5     again    -> gpu 1@1/0+0/0
        """,
        "events": """
            0     admit j1 A
            1     do events -> admit/1
            2     again     -> admit/1
            3     start j1 A 1
            4     again     -> admit/1, start/1
        """,
    }
)
"""By what is repeated."""


def commands_of(story: str) -> set[type]:
    lines = (line.partition(" -> ")[0].split() for line in lines_of(story))
    return {type(command_of(rest)) for _, verb, *rest in lines if verb == "do"}


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("name", STORES)
def test_a_repeat_has_no_second_effect(name: str, story: str, tmp_path: Path) -> None:
    """At once and later; it is answered as at first, or with what stands by now."""
    lines, clock = lines_of(STORIES[story]), Clock()
    with STORES[name](tmp_path, clock) as opened:
        teller = Teller(opened, clock)
        told = "\n".join(teller.tell(line) for line in lines)
    expected = "\n".join(lines)
    assert told == expected, f"the store's side:\n{told}"


def test_every_command_is_repeated() -> None:
    """No command of the store is without a story."""
    told = set().union(*(commands_of(story) for story in STORIES.values()))
    assert told == set(all_commands())
