"""The end of a run: the store is asked what no honest client asks, of consumers and old events.

In the last millisecond of a lease, under a token that nobody has, past the newest event, for events
that somebody has still to read: simulated consumers do nothing of that, so that a guard against it
could be gone and nobody would know. Nothing is drawn, and nobody acts on what is answered; but each
step is judged, and compared with the store under test, like any other. Only F4 has no say: nobody
handles events here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from unswept.core import commands as c
from unswept.core.lease import Kind
from unswept.core.units import Ms
from unswept.core.values import Event
from unswept.core.world import World
from unswept.simulations.timeline import StoreClock

NAME: Final = "examiner"
"""Who asks, and the consumer for whom it asks."""
_JOB: Final = "examined"
_LEASE_MS: Final = Ms(60_000)
_MOST: Final = 20
"""How many jobs' events it wants gone."""


class Examiner:
    """Asks one store, once."""

    def __init__(
        self, ask: Callable[[c.Command[Any], str], Any], world: World, clock: StoreClock
    ) -> None:
        """`world` is a live view of what was told to the store that `ask` asks."""
        self._send = ask
        self._world = world
        self._clock = clock

    def examine(self) -> None:
        """Leases first, then acknowledgements, then events."""
        token = self._leased(NAME)
        self._pass(_LEASE_MS)
        self._ask(c.LeaseEvents(NAME, "another", _LEASE_MS))
        self._ask(c.ForgetConsumer(NAME))
        self._acknowledge(token)
        self._pass(_LEASE_MS)
        self._unread()
        self._caught_up()
        self._at_the_end_of_the_retention()
        self._newest_of_all()

    def _ask(self, command: c.Command[Any]) -> Any:
        return self._send(command, NAME)

    def _pass(self, ms: int) -> None:
        self._clock.offset_ms += ms

    def _leased(self, holder: str) -> int:
        token: int = self._ask(c.LeaseEvents(NAME, holder, _LEASE_MS)).token
        return token

    def _acknowledge(self, token: int) -> None:
        newest = self._world.events.newest
        self._ask(c.Acknowledge(NAME, token, newest + 1))
        self._ask(c.Acknowledge(NAME, token + 1, newest))
        self._ask(c.Acknowledge(NAME, token, 1, last=True))
        self._ask(c.Acknowledge(NAME, token, newest))

    def _unread(self) -> None:
        """It has come to the first event of all."""
        jobs = tuple(event.job_id for _, event in self._evictions())
        self._ask(c.ForgetEvents(jobs[:_MOST], Ms(1)))

    def _caught_up(self) -> None:
        self._pass(_LEASE_MS + 1)
        token = self._leased(NAME)
        self._ask(c.Acknowledge(NAME, token, self._world.events.newest, last=True))

    def _at_the_end_of_the_retention(self) -> None:
        """In its last millisecond, of the events of one job that nothing else keeps."""
        read = min(row.position for row in self._world.consumers.values())
        letters = {number for _, number in self._world.letters}
        told = self._world.events.behind(0)
        given_up = {event.job_id for number, event in told if number in letters}
        for number, event in self._evictions():
            age = self._clock() - event.at
            if number <= read and event.job_id not in given_up and age > 0:
                self._ask(c.ForgetEvents((event.job_id,), Ms(age)))
                return

    def _newest_of_all(self) -> None:
        """A job's eviction, when all other consumers are gone and it has read that too."""
        self._ask(c.Enqueue(_JOB))
        self._ask(c.RequestCancel(_JOB))
        self._pass(2 * _LEASE_MS)
        self._ask(c.Evict((c.Hold(_JOB, self._world.jobs[_JOB].lease.epoch),), Ms(1)))
        for name in [name for name in self._world.consumers if name != NAME]:
            self._ask(c.ForgetConsumer(name))
        self._caught_up()
        self._ask(c.ForgetEvents((_JOB,), Ms(1)))

    def _evictions(self) -> Iterator[tuple[int, Event]]:
        """Those whose events are there, with their numbers."""
        for number, event in self._world.events.behind(0):
            if event.kind is Kind.EVICT:
                yield number, event
