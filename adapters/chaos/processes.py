"""The gateway processes of a run as the driver holds them: started, told, asked, always ended."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from unswept.adapters.chaos.worker import Charge, charge_line
from unswept.core.errors import UnsweptError

ANSWER_S: Final = 30.0
"""How long a gateway at rest may take to answer: its loop may still be blocked."""
_LOG_CHARS: Final = 2_000


class RunFailedError(UnsweptError):
    """The run itself failed, so that it has found nothing out."""


class GatewayProcess:
    """One gateway, from its start to its end."""

    kind = "gateway"
    """What it is called in messages."""

    def __init__(self, program: str, number: int, slot: int, charge: Charge, log: Path) -> None:
        """Start it; it works from then on."""
        self.number = number
        self.slot = slot
        self.stopped = False
        self.ending = False
        """It has been told to end."""
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", program, str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                start_new_session=True,  # an interrupt at the terminal is for the driver alone
                bufsize=0,
            )
        self._write(charge_line(charge))

    @property
    def code(self) -> int | None:
        """What it returned; None: it is still there."""
        return self._process.poll()

    def send(self, number: signal.Signals) -> None:
        """Signal it, if it is still there."""
        self._process.send_signal(number)

    def order(self, **order: Any) -> None:
        """Tell it something; a gateway that is gone does not hear it."""
        self._write(json.dumps(order))

    def ask(self, **order: Any) -> Mapping[str, int]:
        """Tell it something, and wait for its answer."""
        self.order(**order)
        line = b""
        until = time.monotonic() + ANSWER_S
        assert self._process.stdout is not None
        while not line.endswith(b"\n"):
            left_s = max(0.0, until - time.monotonic())
            ready, _, _ = select.select([self._process.stdout], [], [], left_s)
            piece = self._process.stdout.read(4096) if ready else b""
            if not piece:
                raise RunFailedError(f"{self.kind} {self.number} does not answer: {self.log()}")
            line += piece
        answer: Mapping[str, int] = json.loads(line)
        return answer

    def wait(self, timeout_s: float) -> int:
        """What it returns; `RunFailedError` if it takes longer."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise RunFailedError(
                f"{self.kind} {self.number} has not ended {timeout_s:.0f} s after it was told to:"
                f" {self.log()}"
            ) from None

    def end(self) -> None:
        """Kill it, if it is still there; a stopped one too."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def log(self) -> str:
        """The end of what it said on its standard error."""
        said = self._log.read_text(errors="replace").strip()
        return said[-_LOG_CHARS:] or "(it said nothing)"

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(line.encode() + b"\n")


@contextmanager
def open_pipe(path: Path) -> Iterator[Path]:
    """A pipe that this process holds open; whoever waits on it learns when that is over."""
    os.mkfifo(path, 0o600)
    # For reading too, or the opening would wait for a reader.
    descriptor = os.open(path, os.O_RDWR)
    try:
        yield path
    finally:
        os.close(descriptor)
        path.unlink()


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """A signal to end ends the block by the exception of SIGINT; what comes later is not heard, so
    that all is tidied up. For the main thread."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def end(number: int, frame: object) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {each: signal.signal(each, end) for each in numbers}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
