"""Closes every open store around a fork: SQLite connections must not be carried across one.

The library keeps, per process, what it knows of each file's locks. A child that inherited it would
believe in locks that the system took from it, and so could damage the file, also through a
connection of its own. Hence all connections are closed before the fork; parent and child connect
anew at their next command.

A connection that is in use for longer than a command may wait cannot be closed, and the fork goes
on without. The parent notices nothing; the child is kept away from that file for good.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Final, Protocol

from unswept.adapters.sqlite.files import FileId
from unswept.core.errors import MisuseError, StoreUnavailableError


class Forkable(Protocol):
    """What a store does around a fork."""

    def before_fork(self) -> None:
        """Take all locks that can be had in time, and close what they guard."""
        ...

    def after_fork(self, *, in_child: bool) -> FileId | None:
        """Release all locks; gives the file that was not closed, which the child must not use."""
        ...


class _Forks:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: weakref.WeakSet[Forkable] = weakref.WeakSet()
        self._held: list[Forkable] = []
        self._spoiled: frozenset[FileId] = frozenset()
        # Stores that were in use: kept, since their end would close what is not the child's.
        self._carried: list[Forkable] = []

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
            file = store.after_fork(in_child=in_child)
            if in_child and file is not None:
                self._carried.append(store)
                self._spoiled |= {file}
        self._held = []
        self._lock.release()

    def in_parent(self) -> None:
        self.after(in_child=False)

    def in_child(self) -> None:
        self.after(in_child=True)

    def is_spoiled(self, file: FileId) -> bool:
        return file in self._spoiled


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


def check(file: FileId, path: str) -> None:
    """Refuse a file that was in use while this process was forked."""
    if _FORKS.is_spoiled(file):
        raise StoreUnavailableError(
            f"{path}: this process was forked in the middle of a command on that file, so that"
            " SQLite cannot use it safely here; nothing was written. Fork while the store is idle,"
            " or start the process by spawn or exec"
        )


def carried_over(path: str) -> MisuseError:
    """The error for the child's copy of a command whose own thread forked."""
    return MisuseError(
        f"{path}: this process was forked by the very thread that carries the command out, in the"
        " middle of it; only the parent may go on with it"
    )
