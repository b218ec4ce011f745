"""Drives a script on one connection, inside whatever transaction is open there."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TypeVar

from unswept.adapters.sql.steps import CLOCK, MOMENT, Each, Row, Script, Step, Tell
from unswept.core.checks import check_time
from unswept.core.units import StoreMs

T = TypeVar("T")

Clock = Callable[[], StoreMs]


def drive(
    script: Script[T], cursor: sqlite3.Cursor, clock: Clock, check_goes_on: Callable[[], None]
) -> T:
    """What the script returns, once all its steps are done.

    `check_goes_on` is called before each step, and raises where the rest must not be done.
    """
    now: list[Row] | None = None
    rows: list[Row] | None = None
    while True:
        try:
            step: Step = next(script) if rows is None else script.send(rows)
        except StopIteration as end:
            reply: T = end.value
            return reply
        check_goes_on()
        # All rows are fetched at once: an open cursor with RETURNING would hold up the COMMIT.
        if step is CLOCK:
            # One time for the whole script, read with its lock held.
            if now is None:
                now = [(_read(clock),)]
            rows = now
        elif isinstance(step, (Each, Tell)):
            rows = []
            for params in step.params:
                rows += cursor.execute(step.sql, params)
        else:
            assert step is not MOMENT, "no row has a lock of its own"
            rows = cursor.execute(step.sql, step.params).fetchall()


def _read(clock: Clock) -> StoreMs:
    now = clock()
    check_time("what the store's clock returns", now)
    return now
