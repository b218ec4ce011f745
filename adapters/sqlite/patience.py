"""Waits for SQLite's write lock so that no writer starves, however busy the others are.

SQLite's own waiting tries less and less often, in the end ten times a second, while a process that
writes all the time lets go of the lock for microseconds: a heartbeat was seen to fail after five
seconds beside one such process. Trying every millisecond or so gives every writer a like chance.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_SHORTEST_S, _LONGEST_S = 0.000_2, 0.001_5
"""Drawn anew for each try, so that two waiters do not keep step."""


class Wait:
    """How long one command may wait in all, whatever for: its turn, a connection, the write lock.

    Waits that each had the whole timeout would add up to several of it.
    """

    def __init__(self, timeout_ms: int) -> None:
        self._until = time.monotonic() + timeout_ms / 1000

    @property
    def left_s(self) -> float:
        """What is left of it, in seconds; never below 0."""
        return max(0.0, self._until - time.monotonic())


def patiently(attempt: Callable[[], T], wait: Wait) -> T:
    """What `attempt` gives once SQLite is not busy; its error if it still is when the wait is over.

    It is tried at least once, and must have done nothing when it fails as busy.
    """
    while True:
        try:
            return attempt()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or not wait.left_s:
                raise
        time.sleep(random.uniform(_SHORTEST_S, _LONGEST_S))


def is_busy(error: sqlite3.OperationalError) -> bool:
    """Does another connection hold what was asked for?"""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
