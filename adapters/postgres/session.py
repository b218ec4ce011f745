"""What is sent to the server and when, without sending it: blocking and asynchronous connections
drive the same generators.

A generator yields batches, each one round trip, and receives the rows of each of its statements.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import psycopg
from attrs import frozen
from psycopg.adapt import AdaptersMap
from psycopg.types.numeric import Int8

from unswept.adapters.sql.steps import (
    CLOCK,
    Each,
    Mode,
    Params,
    Row,
    Script,
    Statement,
    Step,
    Tell,
    Timed,
    TryLock,
)
from unswept.core.units import Ms

T = TypeVar("T")

Request: TypeAlias = tuple[str, Any]
"""One statement and its parameters; None where it has none."""
Rows: TypeAlias = list[Row]


class Batch(NamedTuple):
    """Statements for one round trip. An error in one of them skips the rest."""

    requests: Sequence[Request]
    commits: bool = False
    """The last of them is the COMMIT: if the connection breaks now, the outcome is unknown."""
    forgiving: bool = False
    """A lock that is not to be had is no error: the rows are given as None, and the transaction is
    rolled back to where it was before the batch."""


ADAPTERS: Final = AdaptersMap(psycopg.adapters)
"""How values go out and come back, whatever a caller's connection was taught: psycopg's own way."""

Session: TypeAlias = Generator[Batch, list[Rows] | None, T]


@frozen
class Limits:
    """How long the server may be kept waiting, by its own clock."""

    statement_ms: Ms
    """One statement, waits for locks included."""
    moment_ms: Ms
    """A `TryLock`."""


# A role's defaults may differ; a transaction that is left open by a client that has gone to sleep
# must not keep its locks. SET LOCAL: behind a pooler the next transaction is somebody else's.
_BEGIN: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"
_WAIT: Final = "SELECT set_config('lock_timeout', %(wait)s, true)"
_SAVEPOINT: Final = "SAVEPOINT unswept"
_BACK: Final = "ROLLBACK TO SAVEPOINT unswept"
_RELEASE: Final = "RELEASE SAVEPOINT unswept"


def session_of(
    mode: Mode, script: Callable[[], Script[T]], clock: str, limits: Limits
) -> Session[T]:
    """What a script needs around it."""
    return (look if mode is Mode.READ else transaction)(script, clock, limits)


def transaction(script: Callable[[], Script[T]], clock: str, limits: Limits) -> Session[T]:
    """A script in a transaction of its own; an error leaves it for the connection to roll back."""
    begin = ((_BEGIN, None), _limited(clock, limits))
    reply, unsent = yield from _steps(script(), clock, limits, begin)
    yield Batch([*unsent, ("COMMIT", None)], commits=True)
    return reply


def inside(script: Script[T], clock: str, limits: Limits) -> Session[T]:
    """A script within a transaction that is open; its caller commits."""
    reply, unsent = yield from _steps(script, clock, limits, ())
    if unsent:
        yield Batch(unsent)
    return reply


def _limited(clock: str, limits: Limits) -> Request:
    """The limits, for as long as the transaction lasts, and the store time."""
    return (
        f"SELECT {clock}, set_config('lock_timeout', %(wait)s, true),"
        " set_config('statement_timeout', %(wait)s, true),"
        " set_config('idle_in_transaction_session_timeout', %(wait)s, true)",
        {"wait": str(limits.statement_ms)},
    )


def look(script: Callable[[], Script[T]], clock: str, limits: Limits) -> Session[T]:
    """A script that only looks, whose every round trip is a transaction of its own: a lock that it
    takes is gone at once. It waits for no lock, so the time may be read before the statement."""
    begin = _limited(clock, limits)
    steps = script()
    now: Rows = []
    rows: Rows | None = None
    while True:
        try:
            step = next(steps) if rows is None else steps.send(rows)
        except StopIteration as end:
            reply: T = end.value
            return reply
        if step is CLOCK:
            if not now:
                now = _time_of(_given((yield Batch([begin])))[0])
            rows = now
        else:
            assert isinstance(step, (Statement, Timed)), "a script that looks writes nothing"
            limited, rows = _given((yield Batch([begin, _request(step.sql, step.params)])))
            now = now or _time_of(limited)


def _steps(
    script: Script[T], clock: str, limits: Limits, begin: tuple[Request, ...]
) -> Session[tuple[T, list[Request]]]:
    """Carries out a script's steps; gives its reply, and what has still to be sent."""
    read_clock = (f"SELECT {clock}", None)
    unsent: list[Request] = list(begin)
    now: Rows | None = None
    rows: Rows | None = None
    while True:
        try:
            step: Step = next(script) if rows is None else script.send(rows)
        except StopIteration as end:
            return end.value, unsent
        if isinstance(step, Tell):
            unsent += (_request(step.sql, params) for params in step.params)
            rows, now = [], None
            continue
        if step is CLOCK and now is not None:
            rows, now = now, None
            continue
        now = None
        if isinstance(step, TryLock):
            if unsent:
                yield Batch(unsent)
            found = yield _moment(step, limits)
            rows = [] if found is None else found[2]
        elif isinstance(step, Each):
            asked = [_request(step.sql, params) for params in step.params]
            found = yield Batch([*unsent, *asked])
            rows = [row for one in _given(found)[len(unsent) :] for row in one]
        elif isinstance(step, Timed):
            found = yield Batch([*unsent, _request(step.sql, step.params), read_clock])
            *_, rows, now = _given(found)
        elif step is CLOCK and begin and unsent == [*begin]:
            rows = _time_of(_given((yield Batch(unsent)))[-1])
        else:
            one = read_clock if step is CLOCK else _request(step.sql, step.params)
            found = yield Batch([*unsent, one])
            rows = _given(found)[-1]
        unsent = []


def _time_of(limited: Rows) -> Rows:
    return [limited[0][:1]]


def _request(sql: str, params: Params) -> Request:
    """Whole numbers go out as the columns' bigint, whatever their size: psycopg would choose the
    smallest type, and the sum of two small ones can overflow it."""
    return sql, {
        name: Int8(value) if type(value) is int else value for name, value in params.items()
    }


def _moment(step: TryLock, limits: Limits) -> Batch:
    """To go back to the savepoint, or to release it, ends the shorter limit too."""
    return Batch(
        [
            (_SAVEPOINT, None),
            (_WAIT, {"wait": str(limits.moment_ms)}),
            _request(step.sql, step.params),
            (_WAIT, {"wait": str(limits.statement_ms)}),
            (_RELEASE, None),
        ],
        forgiving=True,
    )


def _given(found: list[Rows] | None) -> list[Rows]:
    assert found is not None, "only a forgiving batch may be given up"
    return found


GIVE_UP: Final = Batch([(_BACK, None), (_RELEASE, None)])
"""Sent by the connection after a forgiving batch that found a lock taken."""
