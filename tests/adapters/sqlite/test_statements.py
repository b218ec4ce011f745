"""The statement table: every statement bears its guard on the row that it changes, and each guard
and list of assignments equals the core's function on a grid of small rows."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest
import sqlglot
from sqlglot import expressions as ast

from unswept.adapters.sql.queries import Queries, over_holds
from unswept.adapters.sql.rows import (
    JOB_COLUMNS,
    LEASE_COLUMNS,
    job_of,
    listed,
    process_params,
    terms_params,
)
from unswept.adapters.sql.statements import (
    BIRTHS,
    EVICT,
    OUTPUT,
    RENEW,
    TRANSITIONS,
    Birth,
    Transition,
)
from unswept.adapters.sqlite.dialect import SqliteDialect
from unswept.adapters.sqlite.schema import schema_sql
from unswept.core import job as jobs
from unswept.core import lease as rules
from unswept.core.job import Job, OnOrphan, Process, Terms, Transport
from unswept.core.lease import MOVES, Kind, Lease, RequeueRule, Status, well_formed
from unswept.core.refusal import Refusal
from unswept.core.units import Ms, StoreMs

Q = Queries(SqliteDialect())
TABLE = tuple(TRANSITIONS.values())
NOW = StoreMs(100)
SHORT, LONG = Terms(Ms(20), Ms(30), Ms(10), Ms(5)), Terms(Ms(40), Ms(50), Ms(60), Ms(70))
PROCESS = Process(7, 8, "boot")


def texts() -> Iterator[tuple[str, str]]:
    for name, value in vars(Q).items():
        if isinstance(value, str):
            yield name, value
        elif not name.startswith("_") and name in {"update", "insert"}:
            yield from value.items()


@pytest.mark.parametrize("transition", [t for t in TABLE if t.sets], ids=lambda t: t.name)
def test_an_update_bears_its_guard_on_the_row_that_it_changes(transition: Transition) -> None:
    """`UPDATE jobs SET <assignments> WHERE id = :id AND (<guard>)`, and nothing else around it."""
    sets = ", ".join(f"{column} = {expression}" for column, expression in transition.sets)
    begins = f"UPDATE unswept_jobs SET {sets} WHERE id = :id AND ({transition.guard}) RETURNING "
    assert Q.update[transition.name].startswith(begins)


def test_the_renewal_of_a_batch_bears_the_guard_of_one_renewal() -> None:
    """Only the epoch comes from the hold instead of from a parameter."""
    guard = RENEW.guard.replace(":epoch", "hold_epoch")
    assert over_holds(RENEW, ":now").guard == guard
    assert f" WHERE id = hold_id AND ({guard}) RETURNING " in Q.renew_holds
    sets = ", ".join(f"{column} = {expression}" for column, expression in RENEW.sets)
    assert Q.renew_holds.startswith(f"UPDATE unswept_jobs SET {sets} FROM ")


def test_eviction_and_output_bear_their_guards() -> None:
    """Also where the row is removed, or another one is added because of it."""
    assert Q.evict == (
        f"DELETE FROM unswept_jobs WHERE id = :id AND ({EVICT.guard})"
        " RETURNING id, status, owner, epoch, beats, deadline, cancel_requested_at"
    )
    assert f"FROM unswept_jobs WHERE id = :id AND ({OUTPUT.guard}) ON CONFLICT" in Q.append_chunk


def test_nothing_else_writes_to_the_table_of_jobs() -> None:
    """Every statement that writes a job stands in the statement table."""
    writes = re.compile(r"(UPDATE|DELETE FROM|INSERT INTO|REPLACE INTO) unswept_jobs\b")
    writers = {name for name, text in texts() if writes.search(text)}
    updates = {transition.name for transition in TABLE if transition.sets}
    assert writers == updates | set(BIRTHS) | {"renew_holds", "evict"}


def test_the_table_names_every_transition() -> None:
    """Each move of the status table, and the two that are not in it: output and the births."""
    kinds = {transition.kind for transition in TABLE} | {birth.kind for birth in BIRTHS.values()}
    assert kinds == set(Kind) - {Kind.STALE_RESULT}  # an event, which changes no row
    assert set(MOVES) <= {transition.kind for transition in TABLE}


@pytest.mark.parametrize("entry", [*TABLE, *BIRTHS.values()], ids=lambda e: e.name)
def test_an_entry_says_what_it_does(entry: Transition | Birth) -> None:
    """One sentence, the laws it carries, and each column assigned once."""
    assert entry.says.endswith(".")
    assert entry.laws
    assert all(re.fullmatch(r"L\d+", law) for law in entry.laws)
    columns = [column for column, _ in entry.sets]
    assert len(columns) == len(set(columns))
    assert set(columns) <= set(JOB_COLUMNS)


PORTABLE = (
    ast.And, ast.Or, ast.Not, ast.Paren, ast.Is, ast.In, ast.EQ, ast.NEQ, ast.LT, ast.LTE, ast.GT,
    ast.GTE, ast.Add, ast.Sub, ast.Case, ast.If, ast.Coalesce, ast.Column, ast.Identifier,
    ast.Placeholder, ast.Literal, ast.Null,
)  # fmt: skip


@pytest.mark.parametrize("entry", [*TABLE, *BIRTHS.values()], ids=lambda e: e.name)
def test_fragments_are_plain_sql(entry: Transition | Birth) -> None:
    """They parse in both dialects to a few kinds of node, so that they can be proved."""
    guards = [entry.guard] if isinstance(entry, Transition) else []
    for fragment in (*guards, *(expression for _, expression in entry.sets)):
        for dialect in ("sqlite", "postgres"):
            tree = sqlglot.parse_one(fragment, read=dialect)
            strange = {type(node) for node in tree.walk()} - set(PORTABLE)
            assert not strange, fragment
            columns = {column.name for column in tree.find_all(ast.Column)}
            assert columns <= set(JOB_COLUMNS)


# The same as the core's functions ---------------------------------------------------------------

Ask = tuple[Transition, dict[str, Any], Callable[[Job], Any]]


def asks() -> Iterator[Ask]:
    """What is asked of each row: the transition, its parameters, and the core's function."""
    t = TRANSITIONS
    for owner, epoch, beats in product(("a", "b"), (1, 2), (1, 2)):
        mine, seen = {"owner": owner, "epoch": epoch}, {"epoch": epoch, "beats": beats}
        if beats == 1:
            for terms, process in ((SHORT, None), (LONG, PROCESS)):
                say = {**mine, **process_params(process), **terms_params(terms)}
                yield t["start"], say, _start(owner, epoch, process, terms)
                yield t["renew"], say, _renew(owner, epoch, terms)
            yield t["record_process"], {**mine, **process_params(PROCESS)}, _record(owner, epoch)
            for outcome in sorted(rules.OUTCOMES):
                say = {**mine, "outcome": outcome.value}
                yield t["complete"], say, _complete(owner, epoch, outcome, rules.ACTIVE)
                yield t["heal"], say, _complete(owner, epoch, outcome, {Status.ORPHANED})
            for late in (10, 9, 11):
                yield t["output"], {**mine, "late_output_ms": late}, _output(owner, epoch, late)
            for later in (None, StoreMs(150)):
                yield t["release"], {**mine, "not_before": later}, _release(owner, epoch, later)
        if owner == "a":
            yield t["delay"], seen, _delay(epoch, beats)
            yield t["orphan"], seen, _orphan(epoch, beats)
        if owner == "a" and beats == 1:
            for force in (False, True):
                say = {"epoch": epoch, "force": int(force), "not_before": StoreMs(150)}
                yield t["requeue"], say, _requeue(epoch, force)
            for outcome in sorted(rules.SETTLEMENTS):
                say = {"epoch": epoch, "outcome": outcome.value}
                yield t["settle"], say, _settle(epoch, outcome)
            for keep in (10, 9, 11):
                yield t["evict"], {"epoch": epoch, "retention_ms": keep}, _evict(epoch, keep)
        if (epoch, beats) == (1, 1):
            yield t["withdraw"], {"owner": owner}, _withdraw(owner)
            say = {"owner": owner, "claim_no": 3, **terms_params(SHORT)}
            yield t["claim"], say, _claim(owner)
    yield t["request_cancel"], {}, _cancel(at_once=False)
    yield t["cancel"], {}, _cancel(at_once=True)
    yield t["expire"], {}, lambda job: jobs.expire(job, NOW)


def _claim(owner: str) -> Any:
    return lambda job: jobs.claim(job, owner, 3, SHORT, NOW)


def _start(owner: str, epoch: int, process: Process | None, terms: Terms) -> Any:
    def start(job: Job) -> Any:
        if job.lease.status is Status.RUNNING:  # then nothing is stamped
            return Refusal.ALREADY_RUNNING
        return jobs.start(job, owner, epoch, process, terms, NOW)

    return start


def _record(owner: str, epoch: int) -> Any:
    def record(job: Job) -> Any:
        if job.lease.status is not Status.RUNNING or job.process is not None:
            return Refusal.NOT_STARTED
        return jobs.start(job, owner, epoch, PROCESS, SHORT, NOW)

    return record


def _renew(owner: str, epoch: int, terms: Terms) -> Any:
    return lambda job: jobs.renew(job, owner, epoch, terms, NOW)


def _complete(owner: str, epoch: int, outcome: Status, leaves: Any) -> Any:
    def complete(job: Job) -> Any:
        if job.lease.status not in leaves:
            return Refusal.ALREADY_TERMINAL
        return jobs.complete(job, owner, epoch, outcome, NOW)

    return complete


def _output(owner: str, epoch: int, late: int) -> Any:
    def output(job: Job) -> Any:
        said = rules.may_append(job.lease, owner, epoch, job.finished_at, Ms(late), NOW)
        return job if said is None else said

    return output


def _evict(epoch: int, keep: int) -> Any:
    def evict(job: Job) -> Any:
        said = rules.may_evict(job.lease, epoch, job.finished_at, Ms(keep), NOW)
        return job if said is None else said

    return evict


def _release(owner: str, epoch: int, later: StoreMs | None) -> Any:
    return lambda job: jobs.release(job, owner, epoch, later, NOW)


def _delay(epoch: int, beats: int) -> Any:
    return lambda job: jobs.delay(job, epoch, beats, NOW)


def _orphan(epoch: int, beats: int) -> Any:
    return lambda job: jobs.orphan(job, epoch, beats, NOW)


def _requeue(epoch: int, force: bool) -> Any:
    return lambda job: jobs.requeue(job, epoch, force, StoreMs(150), NOW)


def _settle(epoch: int, outcome: Status) -> Any:
    return lambda job: jobs.settle(job, epoch, outcome, NOW)


def _withdraw(owner: str) -> Any:
    def withdraw(job: Job) -> Any:
        if job.lease.status is not Status.QUEUED or job.lease.owner != owner:
            return Refusal.NOT_OWNER
        return jobs.withdraw(job, owner, NOW)

    return withdraw


def _cancel(*, at_once: bool) -> Any:
    def cancel(job: Job) -> Any:
        nobodys = job.lease.status is Status.ORPHANED or job.lease.owner is None
        after = jobs.request_cancel(job, NOW)
        asked_before = after == job
        return Refusal.OWNED if nobodys is not at_once or asked_before else after

    return cancel


def grid() -> Iterator[Job]:
    """Small rows around every boundary, well-formed ones only."""
    number = 0
    for status, owner, beats, deadline, asked, delayed, ttl in product(
        Status, (None, "a"), (1, 2), (None, 99, 100, 101), (None, 90), (None, 95), (None, 30)
    ):
        lease = Lease(
            status,
            owner,
            0 if owner is None and beats == 1 else 1,
            beats,
            None if deadline is None else StoreMs(deadline),
            None if asked is None else StoreMs(asked),
            None if delayed is None else StoreMs(delayed),
            None if ttl is None else Ms(ttl),
            None if ttl is None else Ms(5),
            RequeueRule.ALLOWED if number % 3 else RequeueRule.NEVER,
        )
        if not well_formed(lease):
            continue
        number += 1
        at = StoreMs((89, 90, 91)[number % 3])
        ended = status in rules.TERMINAL
        yield Job(
            f"j{number}",
            lease,
            (Transport.PROCESS, Transport.HTTP)[number % 2],
            admitted_at=StoreMs(50),
            attempts=1,
            queue_deadline=(None, StoreMs(99), StoreMs(100))[number % 3],
            not_before=(None, StoreMs(100), StoreMs(101))[number % 3],
            claim_no=(None, 2)[number % 2],
            beat_at=StoreMs(60) if owner else None,
            started_at=StoreMs(55) if owner else None,
            finished_at=at if ended else None,
            orphaned_at=StoreMs(80) if status is Status.ORPHANED else None,
            process=PROCESS if owner and number % 4 < 2 else None,
        )


@pytest.fixture(scope="module")
def database() -> Iterator[sqlite3.Connection]:
    made = sqlite3.connect(":memory:", isolation_level=None)
    made.executescript(schema_sql())
    for job in grid():
        row = row_of(job)
        marks = ", ".join("?" * len(row))
        made.execute(f"INSERT INTO unswept_jobs ({listed(JOB_COLUMNS)}) VALUES ({marks})", row)
    yield made
    made.close()


def row_of(job: Job) -> tuple[Any, ...]:
    process = process_params(job.process)
    values = {
        **vars(job),
        **process,
        **{column: getattr(job.lease, column) for column in LEASE_COLUMNS},
        "label_set": 0,
    }
    plain = (values[column] for column in JOB_COLUMNS)
    return tuple(value.value if hasattr(value, "value") else value for value in plain)


def test_the_statements_equal_the_core_on_every_small_row(database: sqlite3.Connection) -> None:
    """Each guard holds where the core's function says yes, and the row after is the core's."""
    yes: dict[str, int] = dict.fromkeys(TRANSITIONS, 0)
    no: dict[str, int] = dict.fromkeys(TRANSITIONS, 0)
    rows = list(grid())
    for transition, say, core in asks():
        for job in rows:
            params = {"id": job.id, "now": NOW, **say}
            expected = core(job)
            database.execute("BEGIN")
            if transition.sets:
                changed = database.execute(Q.update[transition.name], params).fetchall()
            else:
                held = f"SELECT 1 FROM unswept_jobs WHERE id = :id AND ({transition.guard})"
                changed = database.execute(held, params).fetchall()
            after = job_of(database.execute(Q.read_job, {"id": job.id}).fetchall()[0])
            database.execute("ROLLBACK")
            if isinstance(expected, Refusal):
                assert not changed, (transition.name, say, job)
                no[transition.name] += 1
            else:
                assert changed, (transition.name, say, job)
                assert after == expected, (transition.name, say, job)
                yes[transition.name] += 1
    assert all(yes.values()), yes
    assert all(no.values()), no


@pytest.mark.parametrize("birth", BIRTHS.values(), ids=lambda b: b.name)
def test_a_row_is_born_as_the_core_says(birth: Birth, database: sqlite3.Connection) -> None:
    """An admit and an enqueue, of both transports."""
    for transport in Transport:
        if birth.kind is Kind.ADMIT:
            expected = jobs.admit(
                "new", "a", transport, RequeueRule.ALLOWED, OnOrphan.REQUEUE, 3, LONG, NOW
            )
        else:
            expected = jobs.enqueue(
                "new",
                transport,
                RequeueRule.ALLOWED,
                OnOrphan.REQUEUE,
                3,
                "p",
                -1,
                StoreMs(200),
                StoreMs(150),
                (),
                NOW,
            )
        params = {
            "id": "new",
            "owner": "a",
            "requeue": "allowed",
            "on_orphan": "requeue",
            "max_attempts": 3,
            "transport": transport.value,
            "partition": "p",
            "label_set": 0,
            "priority": -1,
            "queue_deadline": 200,
            "not_before": 150,
            "now": NOW,
            **terms_params(LONG),
        }
        assert birth.parameters <= params.keys()
        database.execute("BEGIN")
        database.execute(Q.insert[birth.name], params)
        row = database.execute(Q.read_job, {"id": "new"}).fetchall()[0]
        database.execute("ROLLBACK")
        assert job_of(row) == expected
