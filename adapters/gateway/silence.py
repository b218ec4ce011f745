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
        loop = asyncio.get_running_loop()
        self._timers = [loop.call_later(mark, self._tell, mark) for mark in MARKS_S]

    def close(self) -> None:
        """The run is over."""
        for timer in self._timers:
            timer.cancel()

    def _tell(self, mark: float) -> None:
        if self._is_silent():
            log.warning("%s has written nothing for %g s", self._what, mark)
