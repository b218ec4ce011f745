"""Tells the loop once a child has ended, and leaves it a zombie, whose number is nobody else's."""

from __future__ import annotations

import asyncio
import os
import threading

from unswept.adapters.gateway.readers import Readers
from unswept.adapters.gateway.to_loop import tell


class ExitWatch:
    """Watches one child that is not reaped yet. Made and closed on the loop."""

    def __init__(self, pid: int, readers: Readers) -> None:
        """From now on, until `close`."""
        self._pid = pid
        self._readers = readers
        self._loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[int] = self._loop.create_future()
        """What it returned: an exit code, or less than 0 for a signal."""
        self._pidfd = _pidfd(pid)
        if self._pidfd is None:
            threading.Thread(target=self._wait, name="unswept-wait", daemon=True).start()
        else:
            readers.add(self._pidfd, self._readable)

    def close(self) -> None:
        """Watch no more; the child may be reaped now."""
        if self._pidfd is not None:
            self._readers.remove(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None

    def _readable(self) -> None:
        self.close()
        code = _exit_code(self._pid)
        assert code is not None  # it is not reaped while it is watched
        self._set(code)

    def _wait(self) -> None:
        code = _exit_code(self._pid)
        if code is not None:
            tell(self._loop, self._set, code)

    def _set(self, code: int) -> None:
        if not self.exited.done():
            self.exited.set_result(code)


def _pidfd(pid: int) -> int | None:
    """A descriptor that is readable once the child has ended; a thread for each child costs five
    times as much. None: this system has no such thing."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _exit_code(pid: int) -> int | None:
    """Waits for the child's end, and does not reap it; None: somebody has."""
    try:
        found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    except ChildProcessError:
        return None
    assert found is not None  # only WNOHANG finds nothing
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
