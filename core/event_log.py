"""The events that a pure store keeps, by key and by number; those that are removed leave gaps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile

from unswept.core.lease import Kind
from unswept.core.values import Event

EventKey = tuple[str, int, Kind]
"""(job id, epoch, kind)."""


def event_key(event: Event) -> EventKey:
    """The key under which an event is written at most once. (L5)"""
    return (event.job_id, event.epoch, event.kind)


class EventLog(Mapping[EventKey, Event]):
    """Events by their keys, in the order in which they were written.

    An event's number is its place among all that were ever written, counted from 1. A number is
    never used again, whatever was removed.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        """These events, in their order."""
        self.newest = 0
        """The greatest number that was ever given."""
        self._rows: dict[EventKey, tuple[int, Event]] = {}
        for event in events:
            self.append(event)

    def __getitem__(self, key: EventKey) -> Event:
        return self._rows[key][1]

    def __contains__(self, key: object) -> bool:
        return key in self._rows

    def __iter__(self) -> Iterator[EventKey]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def number(self, key: EventKey) -> int | None:
        """An event's number; None where it is not kept."""
        row = self._rows.get(key)
        return None if row is None else row[0]

    def behind(self, number: int) -> Iterator[tuple[int, Event]]:
        """The events that are kept after this number, with theirs."""
        if 2 * number < self.newest:
            return (row for row in self._rows.values() if row[0] > number)
        # Readers are seldom far from the newest: what was written long ago costs them nothing.
        late = takewhile(lambda row: row[0] > number, reversed(self._rows.values()))
        return reversed(tuple(late))

    def append(self, event: Event) -> None:
        """The newest event; one that is there already keeps its number."""
        key = event_key(event)
        number = self.number(key)
        if number is None:
            number = self.newest = self.newest + 1
        self._rows[key] = (number, event)

    def remove(self, job_id: str) -> None:
        """All events of a job go."""
        for key in [key for key in self._rows if key[0] == job_id]:
            del self._rows[key]

    def copy(self) -> EventLog:
        """The same events, to be changed apart."""
        log = EventLog()
        log.newest, log._rows = self.newest, dict(self._rows)
        return log
