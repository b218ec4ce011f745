"""Closes every open store around a fork: SQLite connections must not be carried across one.

The library keeps, per process, what it knows of each file's locks. A child that inherited it would
believe in locks that the system took from it, and so could damage the file, also through a
connection of its own. Hence all connections are closed before the fork; parent and child connect
anew at their next command.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Final, Protocol


class Forkable(Protocol):
    """What a store does around a fork."""

    def before_fork(self) -> None:
        """Take all locks, and close all files."""
        ...

    def after_fork(self, *, in_child: bool) -> None:
        """Release all locks."""
        ...


class _Forks:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: weakref.WeakSet[Forkable] = weakref.WeakSet()
        self._held: list[Forkable] = []

    def add(self, store: Forkable) -> None:
        with self._lock:
            self._open.add(store)

    def before(self) -> None:
        self._lock.acquire()
        self._held = list(self._open)
        for store in self._held:
            store.before_fork()

    def after(self, *, in_child: bool) -> None:
        for store in self._held:
            store.after_fork(in_child=in_child)
        self._held = []
        self._lock.release()

    def in_parent(self) -> None:
        self.after(in_child=False)

    def in_child(self) -> None:
        self.after(in_child=True)


_FORKS: Final = _Forks()

if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(
        before=_FORKS.before,
        after_in_parent=_FORKS.in_parent,
        after_in_child=_FORKS.in_child,
    )


def guard(store: Forkable) -> None:
    """From now on, for as long as the store exists."""
    _FORKS.add(store)
