"""What a handler is given: the job, a way to write output, and the word that it has to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from attrs import field, frozen

from unswept.core.errors import MisuseError, UnsweptError
from unswept.core.job import Transport
from unswept.core.lease import RequeueRule
from unswept.core.values import Request, Stream


class Cause(StrEnum):
    """Why a handler is stopped; the first one counts."""

    CANCELED = "canceled"
    """Somebody asked for the job's end. (L7)"""
    TIMEOUT = "timeout"
    """It took longer than the runner allows."""
    OVERFLOW = "overflow"
    """It wrote more output than the runner allows."""
    DRAIN = "drain"
    """The runner ends; the job goes back to the queue if it may."""
    EXPIRED = "expired"
    """The local deadline of work that somebody else may run from now on. (L11)"""
    FENCED = "fenced"
    """The hold has ended by the store's word: nothing that is written lands."""


class AbortedError(UnsweptError):
    """Raised by `RunnerJob.check` in a handler that has been stopped."""


class Aborted:
    """Set once, from any thread, when the handler is to stop. What it returns after that does not
    count; its job is not given to others by this runner before it has ended."""

    def __init__(self) -> None:
        """Not set."""
        self._set = threading.Event()
        self.cause: Cause | None = None
        """Why; None: nobody has stopped it."""

    def set(self, cause: Cause) -> None:
        """The runner's to call; the first cause stays."""
        if self.cause is None:
            self.cause = cause
            self._set.set()

    def is_set(self) -> bool:
        """Has it been stopped?"""
        return self._set.is_set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Block this thread until it is stopped; False: for `timeout_s` seconds nobody did. For
        handlers on threads: one on the event loop is cancelled instead."""
        return self._set.wait(timeout_s)


@frozen(eq=False)
class RunnerJob:
    """One claimed job, for as long as its handler runs."""

    id: str
    epoch: int
    """The fencing token: whoever writes elsewhere on the job's behalf can pass it on."""
    attempts: int
    """How often the job was begun, this time included."""
    request: Request
    transport: Transport
    requeue: RequeueRule
    aborted: Aborted
    _may_step: Callable[[], bool] = field(repr=False)
    _write: Callable[[Stream, bytes], None] = field(repr=False)

    @property
    def payload(self) -> bytes:
        """What was enqueued."""
        return self.request.payload

    def check(self) -> None:
        """Raise `AbortedError` if no further step may be begun: for long handlers, before each
        step that has an effect. It reads the clock itself, and so is right after a suspension, too.
        (L11)"""
        if not self._may_step():
            cause = self.aborted.cause or Cause.EXPIRED
            raise AbortedError(f"{self.id} is stopped: {cause}")

    def write(self, data: bytes, stream: Stream = Stream.STDOUT) -> None:
        """Append output, from whatever thread; it is in the store about a second later, and all of
        it before the job's end is. More than `max_output_bytes` stops the handler."""
        if not isinstance(data, bytes):
            raise MisuseError(f"data must be bytes, got a {type(data).__name__}")
        self._write(Stream(stream), data)


Handler = Callable[[RunnerJob], Any]
"""Returns bytes, a `Result` or None, or a coroutine of one of these."""
