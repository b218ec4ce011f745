"""What is sent to the server and when, without sending it: blocking and asynchronous connections
drive the same generators.

A generator yields batches, each one round trip, and receives the rows of each of its statements.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from attrs import frozen

from unswept.adapters.sql.steps import (
    CLOCK,
    MOMENT,
    Each,
    Glance,
    Mode,
    Row,
    Script,
    Statement,
    Step,
    Tell,
    Timed,
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


Session: TypeAlias = Generator[Batch, list[Rows], T]


_LONGEST_MOMENT_MS: Final = 50


@frozen
class Limits:
    """How long the server may be kept waiting, by its own clock."""

    statement_ms: Ms
    """One statement, waits for locks included."""
    rows_ms: Ms
    """All pauses for those who are just writing a row."""

    @property
    def moment_ms(self) -> Ms:
        """One such pause."""
        return Ms(max(1, min(_LONGEST_MOMENT_MS, self.rows_ms // 4)))

    @property
    def lock_ms(self) -> Ms:
        """One lock: a little less, so that the error says that it was one."""
        return Ms(max(1, self.statement_ms * 9 // 10))


# A role's defaults may differ; a transaction that is left open by a client that has gone to sleep
# must not keep its locks. SET LOCAL: behind a pooler the next transaction is somebody else's.
_BEGIN: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"
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
        f"SELECT {clock}, set_config('lock_timeout', %(lock)s, true),"
        " set_config('statement_timeout', %(wait)s, true),"
        " set_config('idle_in_transaction_session_timeout', %(wait)s, true)",
        {"lock": str(limits.lock_ms), "wait": str(limits.statement_ms)},
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
                now = _time_of((yield Batch([begin]))[0])
            rows = now
        else:
            assert isinstance(step, (Statement, Timed)), "a script that looks writes nothing"
            limited, rows = yield Batch([begin, step])
            now = now or _time_of(limited)


def _steps(
    script: Script[T], clock: str, limits: Limits, begin: tuple[Request, ...]
) -> Session[tuple[T, list[Request]]]:
    """Carries out a script's steps; gives its reply, and what has still to be sent."""
    read_clock = (f"SELECT {clock}", None)
    unsent: list[Request] = list(begin)
    moments = max(1, limits.rows_ms // limits.moment_ms)
    now: Rows | None = None
    rows: Rows | None = None
    while True:
        try:
            step: Step = next(script) if rows is None else script.send(rows)
        except StopIteration as end:
            return end.value, unsent
        if isinstance(step, Tell):
            unsent += ((step.sql, params) for params in step.params)
            rows, now = [], None
            continue
        if isinstance(step, Each) and not step.params:
            rows, now = [], None  # no reason for a round trip
            continue
        if step is MOMENT:
            rows, now = [], None
            if moments:
                moments -= 1
                unsent.append(("SELECT pg_sleep(%(s)s)", {"s": limits.moment_ms / 1000}))
                rows = [(moments,)]
            continue
        if step is CLOCK and now is not None:
            rows, now = now, None
            continue
        now = None
        if isinstance(step, Glance):
            looked = [(_SAVEPOINT, None), step, (_BACK, None), (_RELEASE, None)]
            found = yield Batch([*unsent, *looked])
            rows = found[-3]
        elif isinstance(step, Each):
            asked = [(step.sql, params) for params in step.params]
            found = yield Batch([*unsent, *asked])
            rows = [row for one in found[len(unsent) :] for row in one]
        elif isinstance(step, Timed):
            found = yield Batch([*unsent, step, read_clock])
            *_, rows, now = found
        elif step is CLOCK and begin and unsent == [*begin]:
            rows = _time_of((yield Batch(unsent))[-1])
        else:
            found = yield Batch([*unsent, read_clock if step is CLOCK else step])
            rows = found[-1]
        unsent = []


def _time_of(limited: Rows) -> Rows:
    return [limited[0][:1]]
