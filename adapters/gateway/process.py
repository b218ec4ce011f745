"""Runs one command in a process group of its own, and never signals a number that is not its own.

A child that has ended stays a zombie until `reap`: as long as it does, neither its pid nor the
group's can be given to anybody else, so that a signal to the group meets nobody else, whatever
thread sends it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from typing import IO, Final

from unswept.adapters.gateway import evidence
from unswept.adapters.gateway.exit_watch import ExitWatch
from unswept.adapters.gateway.work import ProcessWork
from unswept.core.job import Process
from unswept.core.values import Stream

KILL_AFTER_S: Final = 5.0
"""How long a process has to end by itself when it is asked to."""
PIPES_OPEN_S: Final = 2.0
"""How long the pipes may stay open when the process has ended and its group was killed: only one
who has left the group can hold them."""
_READ_BYTES: Final = 256 * 1024
_MOST_READS: Final = 8
"""More than any pipe holds."""


class ProcessRun:
    """One child, its group and its pipes. Made and read on the loop; signaled from any thread."""

    def __init__(self, work: ProcessWork, on_data: Callable[[Stream, bytes], None]) -> None:
        """Start the command and read what it writes; OSError or ValueError where it cannot be
        started."""
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._reaped = False
        self._popen = subprocess.Popen(
            work.argv,
            stdin=subprocess.DEVNULL if work.stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=None if work.env is None else dict(work.env),
            cwd=work.cwd,
            start_new_session=True,
        )
        assert self._popen.stdout is not None and self._popen.stderr is not None
        self._pipes = (
            _Pipe(self._loop, Stream.STDOUT, self._popen.stdout, on_data),
            _Pipe(self._loop, Stream.STDERR, self._popen.stderr, on_data),
        )
        self._input: asyncio.WriteTransport | None = None
        self.evidence: Process | None = evidence.process_of(self._popen.pid)
        self._exit = ExitWatch(self._popen.pid)

    @property
    def exited(self) -> asyncio.Future[int]:
        """What it returned: an exit code, or less than 0 for a signal."""
        return self._exit.exited

    async def feed(self, data: bytes) -> None:
        """Write this to its input, and close that."""
        assert self._popen.stdin is not None
        # What the pipe takes at once, which is most inputs, needs nothing of the loop's.
        rest = data[_write_some(self._popen.stdin, data) :]
        if not rest:
            self._popen.stdin.close()
            return
        self._input, _ = await self._loop.connect_write_pipe(asyncio.Protocol, self._popen.stdin)
        self._input.write(rest)
        self._input.write_eof()

    def signal(self, number: signal.Signals) -> None:
        """Signal the whole group, if any of it is left."""
        with self._lock:
            if self._reaped:
                return
            # macOS answers EPERM where nothing but a zombie is left of the group.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, number)

    def lives(self) -> bool:
        """Has it not ended yet? Asks the system, not the loop, which may stand still."""
        with self._lock:
            if self._reaped:
                return False
            found = os.waitid(os.P_PID, self._popen.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
            return found is None

    async def close_pipes(self) -> None:
        """The process has ended: read what it has written, then end its group, and read on."""
        for pipe in self._pipes:
            pipe.read()
        ends = [pipe.ended for pipe in self._pipes if not pipe.ended.done()]
        if ends:
            self.signal(signal.SIGKILL)
            await asyncio.wait(ends, timeout=PIPES_OPEN_S)

    def reap(self) -> None:
        """Let go of the number and of the pipes; ends the group if it is still there."""
        self.signal(signal.SIGKILL)
        self._exit.close()
        for pipe in self._pipes:
            pipe.close()
        if self._input is not None:
            if not self._input.is_closing():
                self._input.abort()  # what the process did not read, nobody will
        elif self._popen.stdin is not None:
            self._popen.stdin.close()
        with self._lock:
            self._reaped = True
            self._popen.wait()


def _write_some(pipe: IO[bytes], data: bytes) -> int:
    """How much the pipe took without waiting; all of it where nobody reads any more."""
    os.set_blocking(pipe.fileno(), False)
    try:
        return os.write(pipe.fileno(), data) if data else 0
    except BlockingIOError:
        return 0
    except BrokenPipeError:
        return len(data)


class _Pipe:
    """One of the outputs, until its end."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        stream: Stream,
        file: IO[bytes],
        on_data: Callable[[Stream, bytes], None],
    ) -> None:
        self._loop = loop
        self._stream = stream
        self._file = file
        self._on_data = on_data
        self.ended: asyncio.Future[None] = loop.create_future()
        os.set_blocking(file.fileno(), False)
        loop.add_reader(file.fileno(), self._read_some)

    def read(self) -> None:
        """Read what is in the pipe now; not for ever, for somebody may still write."""
        for _ in range(_MOST_READS):
            if self.ended.done() or not self._read_some():
                return

    def _read_some(self) -> bool:
        """Was there something to read?"""
        try:
            data = os.read(self._file.fileno(), _READ_BYTES)
        except BlockingIOError:
            return False
        if data:
            self._on_data(self._stream, data)
        else:
            self.close()
        return bool(data)

    def close(self) -> None:
        """Nothing more is read."""
        if not self.ended.done():
            self._loop.remove_reader(self._file.fileno())
            self._file.close()
            # Whoever takes the data belongs to the job, which has this: in a circle they would wait
            # for the garbage collector, who takes his time for every job that is there.
            self._on_data = _nobodys
            self.ended.set_result(None)


def _nobodys(stream: Stream, data: bytes) -> None:
    """Nothing comes out of a pipe that is closed."""
