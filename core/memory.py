"""The pure store in a box: `decide` over rows that are kept in memory. Nothing outlives it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from unswept.core.checks import shown
from unswept.core.commands import Command
from unswept.core.errors import MisuseError
from unswept.core.event_log import EventLog
from unswept.core.units import StoreMs
from unswept.core.world import (
    Decision,
    Table,
    World,
    all_commands,
    decide,
    make_so,
)

R = TypeVar("R")


class MemoryStore:
    """A store that lives as long as its object; the reference that every other store must equal.

    Its clock is injected, since the core reads none: `clock()` is the store time of a command.
    One thread at a time.
    """

    def __init__(self, clock: Callable[[], StoreMs]) -> None:
        """An empty store whose store clock is `clock`."""
        self._clock = clock
        self._tables: dict[Table, dict[Any, Any]] = {table: {} for table in Table}
        self._sets: dict[str, dict[str, None]] = {"owned": {}, "waiting": {}, "ended": {}}
        self._events = EventLog()
        self.world = World(
            jobs=self._tables[Table.JOBS],
            ids=self._tables[Table.IDS],
            keys=self._tables[Table.KEYS],
            requests=self._tables[Table.REQUESTS],
            results=self._tables[Table.RESULTS],
            output=self._tables[Table.OUTPUT],
            instances=self._tables[Table.INSTANCES],
            events=self._events,
            consumers=self._tables[Table.CONSUMERS],
            letters=self._tables[Table.LETTERS],
            **self._sets,
        )
        """A live view of the rows, for checkers; only `execute` changes it."""

    def execute(self, command: Command[R]) -> R:
        """Carry out one command and reply."""
        if type(command) not in all_commands():
            raise MisuseError(f"a store executes commands, got {shown(command)}")
        decision = decide(self.world, command, self._clock())
        self.apply(decision)
        return decision.reply

    def apply(self, decision: Decision[Any]) -> None:
        """Make the changes of a decision that was taken on `self.world`."""
        make_so(decision, self._tables, self._events, self._sets)

    def close(self) -> None:
        """Nothing to close; every store has this method."""
