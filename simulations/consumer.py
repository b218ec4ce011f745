"""A simulated consumer of events: it leases, reads, handles and acknowledges, and can be lost
between any two of these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from attrs import frozen

from unswept.core import commands as c
from unswept.core import outbox
from unswept.core import replies as r
from unswept.core.units import Ms
from unswept.core.values import Event
from unswept.simulations.actor import Actor, Host, Surroundings, pause
from unswept.simulations.marks import Mark

PATIENCE_MS: Final = 5_000
LEASE_MS: Final = Ms(60_000)
POLL_MS: Final = 90_000
BATCH: Final = 20
TRIES: Final = 3
"""How often an event that fails is tried before it is made a dead letter."""


class Watcher(Surroundings, Protocol):
    """What a consumer can reach, and who watches it for the laws."""

    def handled(self, consumer: str, event: Event) -> None:
        """An event has been handled."""
        ...


@frozen
class Batch:
    """Events in the order of their numbers, and the lease under which they were read."""

    lease: r.EventsLeased
    events: tuple[Event, ...]

    def number(self, index: int) -> int:
        """The number of one of them."""
        return self.lease.position + 1 + index


class Consumer(Actor):
    """One process that reads for a consumer; others may take its lease when it has run out."""

    def __init__(
        self,
        name: str,
        host: Host,
        world: Watcher,
        reads_for: str,
        handler: Callable[[Event], None],
    ) -> None:
        """It reads nothing yet."""
        super().__init__(name, host, world, PATIENCE_MS)
        self.at_work = False
        """It has read events and not acknowledged them yet: the worst moment to be lost."""
        self._watcher = world
        self._reads_for = reads_for
        self.handler = handler

    def begin(self) -> None:
        """Look for events from time to time."""
        self._later()

    def _later(self) -> None:
        self.later(pause(self.world.rng, POLL_MS), self._lease)

    def _lease(self) -> None:
        lease = c.LeaseEvents(self._reads_for, self.name, LEASE_MS)
        self.call(lease, lambda reply, sent_at: self._leased(reply))

    def _leased(self, reply: r.EventsLeased | r.Refused) -> None:
        if isinstance(reply, r.Refused):
            self.world.sometimes(Mark.LEASE_REFUSED)
            self._later()
            return
        if not reply.renewed and reply.attempts > 1:
            self.world.sometimes(Mark.LEASE_TAKEN_OVER)
        limit = outbox.how_many(reply.attempts, BATCH)
        read = c.ReadEvents(reply.position, limit)
        self.call(read, lambda page, sent_at: self._read(Batch(reply, page.events)))

    def _read(self, batch: Batch) -> None:
        self.at_work = bool(batch.events)
        if not batch.events:
            self._later()
        elif self.world.design.acknowledges_first:
            upto = batch.number(len(batch.events) - 1)
            self._acknowledge(batch, upto, then=lambda: self._handle(batch, 0))
        else:
            self._handle(batch, 0)

    def _handle(self, batch: Batch, index: int) -> None:
        """One event; the next a little later."""
        number = batch.number(index)
        if self._fails(number):
            self._failed(batch, number)
            return
        self.handler(batch.events[index])
        self._watcher.handled(self._reads_for, batch.events[index])
        takes = self.world.rng.randint(1, 2_000)
        if index + 1 < len(batch.events):
            self.later(takes, self._handle, batch, index + 1)
        elif self.world.design.acknowledges_first:
            self.later(takes, self._lease)
        else:
            self.later(takes, self._acknowledge, batch, number, self._lease)

    def _fails(self, number: int) -> bool:
        """Some events fail whoever handles them."""
        return number % 50 == 17

    def _failed(self, batch: Batch, number: int) -> None:
        """What came before it is done; whoever comes next tries it again, but not for ever."""
        if batch.lease.attempts >= TRIES:
            self.world.sometimes(Mark.DEAD_LETTER)
            self._acknowledge(batch, number, self._lease, error="it fails every time")
        else:
            self._acknowledge(batch, number - 1, self._later, last=True)

    def _acknowledge(
        self,
        batch: Batch,
        upto: int,
        then: Callable[[], None],
        last: bool = False,
        error: str | None = None,
    ) -> None:
        command = c.Acknowledge(self._reads_for, batch.lease.token, upto, last, error)
        self.call(command, lambda reply, sent_at: self._acknowledged(reply, then))

    def _acknowledged(self, reply: r.Acknowledged | r.Refused, then: Callable[[], None]) -> None:
        self.at_work = False
        if isinstance(reply, r.Refused):
            self.world.sometimes(Mark.ACKNOWLEDGED_TOO_LATE)
            self._later()
        else:
            then()
