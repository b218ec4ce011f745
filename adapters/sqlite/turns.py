"""Takes turns at a connection: one thread at a time, none for longer than it may wait."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Final

from unswept.adapters.sqlite.patience import Wait
from unswept.core.errors import MisuseError, StoreUnavailableError


class Turn:
    """A lock that knows whether the current thread holds it, and says so instead of waiting.

    A signal handler, a finalizer or a store clock may run in the middle of a command of its own
    thread. If it waited for that command, it would wait for itself.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        # Re-entrant, so that a handler that runs just after the lock was taken, but before the
        # holder was noted, gets a whole turn of its own: nothing has begun yet.
        self._lock: Final = threading.RLock()
        self._holder: int | None = None

    def take(self, wait: Wait | None = None) -> None:
        """Take the turn; without a `wait`, however long that takes."""
        self.check_free_here()
        if not self._lock.acquire(timeout=-1 if wait is None else wait.left_s):
            raise StoreUnavailableError(
                f"{self._path}: another thread's command was carried out for the whole busy"
                " timeout; nothing was written. Repeat the command"
            )
        self._holder = threading.get_ident()

    def give_back(self) -> None:
        """Let the next one have it."""
        self._holder = None
        self._lock.release()

    @property
    def is_here(self) -> bool:
        """Does the current thread hold it?"""
        return self._holder == threading.get_ident()

    def check_free_here(self) -> None:
        """Refuse a use of the store from within a use of it."""
        if self.is_here:
            raise MisuseError(
                f"{self._path}: this thread is already in the middle of a command on this store;"
                " do not use it in a signal handler, a __del__ or a clock, which run in the middle"
                " of one. Leave a note there, and act on it afterwards"
            )

    def __enter__(self) -> None:
        self.take()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.give_back()
