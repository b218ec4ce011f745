"""What a script asks of its driver: statements, locks, or the time.

A script is a generator: it yields steps, receives rows, and returns the reply of its command. It
holds no connection and awaits nothing, so that blocking and asynchronous drivers run the very same
scripts.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from unswept.core.units import StoreMs

T = TypeVar("T")

Params: TypeAlias = Mapping[str, Any]
Row: TypeAlias = tuple[Any, ...]


class Statement(NamedTuple):
    """One statement; the driver answers with all its rows."""

    sql: str
    params: Params


class Each(NamedTuple):
    """The same statement for every set of parameters, in order; the driver answers with the rows of
    all of them, one after the other. Where a round trip costs, a driver sends them in one."""

    sql: str
    params: Sequence[Params]


class Timed(NamedTuple):
    """A statement behind which the script asks for the time, for it may wait for locks; the driver
    answers with all its rows. Where a round trip costs, it reads the clock in the same one."""

    sql: str
    params: Params


class Glance(NamedTuple):
    """A statement whose locks are let go at once; the driver answers with all its rows. Never asked
    for where rows have no locks of their own."""

    sql: str
    params: Params


class Tell(NamedTuple):
    """Writes whose rows nobody reads: the statement for every set of parameters, in order. The
    driver answers with nothing, and may send them together with what comes next."""

    sql: str
    params: Sequence[Params]


class ReadClock(Enum):
    """The store time, read now; the driver answers with one row of one number.

    A script asks for it once its locks are held: a time read before a wait is in the past.
    """

    STEP = "read clock"


CLOCK: Final = ReadClock.STEP


class Pause(Enum):
    """A moment passes, in which whoever is just writing a row is done. The driver answers with one
    row, or with none where enough moments have passed. Never asked for where rows have no locks of
    their own."""

    MOMENT = "wait a moment"


MOMENT: Final = Pause.MOMENT

Step: TypeAlias = Statement | Each | Timed | Glance | Tell | ReadClock | Pause
Script: TypeAlias = Generator[Step, list[Row], T]


class Mode(Enum):
    """What a script needs around it."""

    READ = "read"
    """One look at a committed state; no lock is taken and nothing is written."""
    WRITE = "write"
    """One transaction: all of it is done, or none."""


def read_clock() -> Script[StoreMs]:
    """The store time."""
    rows = yield CLOCK
    return StoreMs(rows[0][0])
