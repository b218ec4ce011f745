"""Tells the loop through one descriptor of all that the descriptors of jobs have to say.

A trivial job has three of them: to let the loop watch each costs as much as to admit the job.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable

_Epoll = getattr(select, "epoll", None)
"""Linux; elsewhere the loop watches each descriptor for itself."""


class Readers:
    """Who is called once a descriptor can be read. Made, used and closed on the loop."""

    def __init__(self) -> None:
        """Nothing is watched."""
        self._loop = asyncio.get_running_loop()
        self._called: dict[int, Callable[[], object]] = {}
        self._epoll = None if _Epoll is None else _Epoll()
        if self._epoll is not None:
            self._loop.add_reader(self._epoll.fileno(), self._ready)

    def add(self, descriptor: int, call: Callable[[], object]) -> None:
        """From now on, as often as there is something to read, until `remove`."""
        if self._epoll is None:
            self._loop.add_reader(descriptor, call)
        else:
            self._epoll.register(descriptor, select.EPOLLIN)
        self._called[descriptor] = call

    def remove(self, descriptor: int) -> None:
        """Watch it no more; it is still open. Again changes nothing."""
        if self._called.pop(descriptor, None) is None:
            return
        if self._epoll is None:
            self._loop.remove_reader(descriptor)
        else:
            self._epoll.unregister(descriptor)

    def close(self) -> None:
        """Watch nothing more."""
        for descriptor in tuple(self._called):
            self.remove(descriptor)
        if self._epoll is not None:
            self._loop.remove_reader(self._epoll.fileno())
            self._epoll.close()

    def _ready(self) -> None:
        assert self._epoll is not None
        for descriptor, _ in self._epoll.poll(0):
            call = self._called.get(descriptor)
            # Whoever was called before may have closed this one.
            if call is not None:
                call()
