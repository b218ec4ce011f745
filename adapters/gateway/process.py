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
from typing import Final

from unswept.adapters.gateway import evidence
from unswept.adapters.gateway.exit_watch import ExitWatch
from unswept.adapters.gateway.readers import Readers
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

    def __init__(
        self, work: ProcessWork, on_data: Callable[[Stream, bytes], None], readers: Readers
    ) -> None:
        """Start the command and read what it writes; OSError or ValueError where it cannot be
        started."""
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._reaped = False
        self._popen, self._stdin, outputs = _spawned(work)
        self._pipes = [
            _Pipe(self._loop, readers, stream, output, on_data)
            for stream, output in zip((Stream.STDOUT, Stream.STDERR), outputs, strict=True)
        ]
        self._input: asyncio.WriteTransport | None = None
        self.evidence: Process | None = evidence.process_of(self._popen.pid)
        self._exit = ExitWatch(self._popen.pid, readers)

    @property
    def exited(self) -> asyncio.Future[int]:
        """What it returned: an exit code, or less than 0 for a signal."""
        return self._exit.exited

    async def feed(self, data: bytes) -> None:
        """Write this to its input, and close that."""
        assert self._stdin is not None
        # What the pipe takes at once, which is most inputs, needs nothing of the loop's.
        rest = data[_write_some(self._stdin, data) :]
        if not rest:
            self._close_input()
            return
        file, self._stdin = os.fdopen(self._stdin, "wb", buffering=0), None
        self._input, _ = await self._loop.connect_write_pipe(asyncio.Protocol, file)
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
        """Let go of the number and of the pipes; ends the group if it is still there. Does not wait
        for a process that does not end."""
        self.signal(signal.SIGKILL)
        self._exit.close()
        for pipe in self._pipes:
            pipe.close()
        if self._input is not None and not self._input.is_closing():
            self._input.abort()  # what the process did not read, nobody will
        self._close_input()
        try:
            ended = not self.lives()
        except ChildProcessError:  # somebody else has reaped it
            ended = True
        with self._lock:
            self._reaped = True
        if ended:
            self._popen.wait()
        else:
            # One that nobody may kill, or that hangs in a system call, must not stop the loop.
            threading.Thread(target=self._popen.wait, name="unswept-reap", daemon=True).start()

    def _close_input(self) -> None:
        if self._stdin is not None:
            os.close(self._stdin)
            self._stdin = None


def _spawned(work: ProcessWork) -> tuple[subprocess.Popen[bytes], int | None, tuple[int, int]]:
    """The child, and this side of its input, if it has one, and of its output and errors.

    The pipes are made here: `subprocess` wraps its own in files, which nobody here needs.
    """
    given: list[int] = []
    kept: list[int] = []
    try:
        for _ in range(2):
            output, its_output = os.pipe()
            kept.append(output)
            given.append(its_output)
        its_stdout, its_stderr = given
        its_input, stdin = subprocess.DEVNULL, None
        if work.stdin is not None:
            its_input, stdin = os.pipe()
            given.append(its_input)
            kept.append(stdin)
        child = subprocess.Popen(
            work.argv,
            stdin=its_input,
            stdout=its_stdout,
            stderr=its_stderr,
            bufsize=0,
            env=None if work.env is None else dict(work.env),
            cwd=work.cwd,
            start_new_session=True,
        )
    except BaseException:
        for descriptor in kept:
            os.close(descriptor)
        raise
    finally:
        for descriptor in given:
            os.close(descriptor)
    return child, stdin, (kept[0], kept[1])


def _write_some(pipe: int, data: bytes) -> int:
    """How much the pipe took without waiting; all of it where nobody reads any more."""
    os.set_blocking(pipe, False)
    try:
        return os.write(pipe, data) if data else 0
    except BlockingIOError:
        return 0
    except BrokenPipeError:
        return len(data)


class _Pipe:
    """One of the outputs, until its end."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        readers: Readers,
        stream: Stream,
        descriptor: int,
        on_data: Callable[[Stream, bytes], None],
    ) -> None:
        self._readers = readers
        self._stream = stream
        self._descriptor = descriptor
        self._on_data = on_data
        self.ended: asyncio.Future[None] = loop.create_future()
        os.set_blocking(descriptor, False)
        readers.add(descriptor, self._read_some)

    def read(self) -> None:
        """Read what is in the pipe now; not for ever, for somebody may still write."""
        for _ in range(_MOST_READS):
            if self.ended.done() or not self._read_some():
                return

    def _read_some(self) -> bool:
        """Was there something to read?"""
        try:
            data = os.read(self._descriptor, _READ_BYTES)
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
            self._readers.remove(self._descriptor)
            os.close(self._descriptor)
            # Whoever takes the data belongs to the job, which has this: in a circle they would wait
            # for the garbage collector, who takes his time for every job that is there.
            self._on_data = _nobodys
            self.ended.set_result(None)


def _nobodys(stream: Stream, data: bytes) -> None:
    """Nothing comes out of a pipe that is closed."""
