"""Warns of a process that runs and runs and has not written a byte to its standard output.

A warning and nothing more: a provider that prints only when it exits looks just the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

MARKS_S: Final = (300.0, 600.0, 900.0)

log: Final = logging.getLogger(__name__)


class SilenceWatch:
    """One run's marks; each that is passed in silence is told once."""

    def __init__(self, what: str, is_silent: Callable[[], bool]) -> None:
        """From now on, until `close`."""
        self._what = what
        self._is_silent = is_silent
        self._loop = asyncio.get_running_loop()
        self._begun_at = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._wait_for(0)

    def close(self) -> None:
        """The run is over."""
        if self._timer is not None:
            self._timer.cancel()

    def _wait_for(self, number: int) -> None:
        self._timer = None
        if number < len(MARKS_S):
            self._timer = self._loop.call_at(self._begun_at + MARKS_S[number], self._tell, number)

    def _tell(self, number: int) -> None:
        if self._is_silent():
            log.warning("%s has written nothing for %g s", self._what, MARKS_S[number])
            self._wait_for(number + 1)
