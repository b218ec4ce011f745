"""What a gateway is asked to run, and how a run ends: exit codes and messages in one place."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from attrs import field, frozen

from unswept.core.checks import check_bytes, check_duration, check_whole, shown
from unswept.core.errors import MisuseError
from unswept.core.job import Transport
from unswept.core.lease import Status
from unswept.core.units import Ms
from unswept.core.values import Result

EXIT_WALL_TIMEOUT: Final = 124
EXIT_IDLE: Final = 125
EXIT_NOT_LAUNCHED: Final = 126
EXIT_OVERFLOW: Final = 126
EXIT_NOT_FOUND: Final = 127
EXIT_QUEUE_TIMEOUT: Final = 75
"""EX_TEMPFAIL of sysexits.h: try again later."""

MAX_OUTPUT_BYTES: Final = 50 * 1024 * 1024

_SORTED: Final = json.JSONEncoder(sort_keys=True)
"""`json.dumps` makes a new one at every call, which takes as long as to write a request."""


class OnOrphaned(StrEnum):
    """What the owner does with work that a sweeper has taken for dead."""

    GO_ON = "go on"
    """Finish it, which heals the job unless it was requeued, settled or canceled meanwhile."""
    STOP = "stop"
    """Stop it; the job heals as failed."""


def _folder(cwd: str | os.PathLike[str] | None) -> str | None:
    return os.fspath(cwd) if isinstance(cwd, os.PathLike) else cwd


def _words(argv: Sequence[str]) -> tuple[str, ...]:
    if isinstance(argv, str):
        raise MisuseError(f"argv must be a sequence of strings, got the string {shown(argv)}")
    return tuple(argv)


def _is_environment(env: object) -> bool:
    return isinstance(env, Mapping) and all(
        isinstance(name, str) and isinstance(value, str) for name, value in env.items()
    )


@frozen(kw_only=True, slots=False)
class ProcessWork:
    """A command, run in a process group of its own."""

    argv: tuple[str, ...] = field(converter=_words)
    stdin: bytes | None = None
    """None: no input."""
    env: Mapping[str, str] | None = None
    """The whole environment; None: the gateway's own."""
    cwd: str | None = field(default=None, converter=_folder)
    idle_timeout_ms: Ms | None = None
    """Killed when it has written nothing for so long; None for what prints only when it exits."""
    wall_timeout_ms: Ms | None = None
    max_output_bytes: int | None = None
    """Of both streams together; None: the gateway's bound."""

    transport = Transport.PROCESS

    def __attrs_post_init__(self) -> None:
        """A command, and bounds."""
        if not self.argv or not all(isinstance(part, str) for part in self.argv):
            raise MisuseError(f"argv must be one or more strings, got {shown(self.argv)}")
        if self.stdin is not None and not isinstance(self.stdin, bytes):
            raise MisuseError(f"stdin must be bytes or None, got {shown(self.stdin)}")
        if self.cwd is not None and not isinstance(self.cwd, str):
            raise MisuseError(f"cwd must be a path or None, got {shown(self.cwd)}")
        if self.env is not None and not _is_environment(self.env):
            # Not quoted: it holds secrets.
            raise MisuseError("env must map strings to strings, or be None")
        for name in ("idle_timeout_ms", "wall_timeout_ms"):
            if getattr(self, name) is not None:
                check_duration(name, getattr(self, name))
        if self.max_output_bytes is not None:
            check_whole("max_output_bytes", self.max_output_bytes, 1, MAX_OUTPUT_BYTES)

    def request_key(self, provider: str) -> str:
        """Names requests that are the same: whatever may change the output is part of it."""
        parts = {
            "provider": provider,
            "argv": self.argv,
            "stdin": None if self.stdin is None else hashlib.sha256(self.stdin).hexdigest(),
            "env": None if self.env is None else dict(self.env),
            "cwd": self.cwd,
        }
        return hashlib.sha256(_SORTED.encode(parts).encode("utf-8", "surrogateescape")).hexdigest()

    def description(self) -> Mapping[str, object]:
        """What a reader may know of it; stdin and environment hold secrets."""
        return {"argv": self.argv, "cwd": self.cwd}


@frozen
class Answer:
    """What a call brought back."""

    body: bytes = b""
    http_status: int | None = None
    """Kept apart from the exit code, which says only whether the job succeeded."""
    error: str | None = None
    """Set: the job failed, whatever the status."""

    def __attrs_post_init__(self) -> None:
        """Bytes, a status, and words."""
        check_bytes("body", self.body)
        if self.http_status is not None:
            check_whole("http_status", self.http_status, 0, 999)
        if self.error is not None and not isinstance(self.error, str):
            raise MisuseError(f"error must be a string or None, got {shown(self.error)}")

    @property
    def ok(self) -> bool:
        """Did the call succeed?"""
        return self.error is None and (self.http_status is None or self.http_status < 400)


@frozen(kw_only=True)
class CallWork:
    """A coroutine: an http request, or anything else that the event loop runs."""

    call: Callable[[], Awaitable[Answer]]
    """Called once, when the job has a slot and the store has taken its start."""
    wall_timeout_ms: Ms | None = None
    what: Mapping[str, object] = field(factory=dict)
    """What a reader may know of it; and, if it tells such calls apart, what names its twins."""

    transport = Transport.HTTP

    def __attrs_post_init__(self) -> None:
        """A callable, and a bound."""
        if not callable(self.call):
            raise MisuseError(f"call must be callable, got {shown(self.call)}")
        if self.wall_timeout_ms is not None:
            check_duration("wall_timeout_ms", self.wall_timeout_ms)
        try:
            json.dumps(dict(self.what), sort_keys=True)
        except (TypeError, ValueError) as error:
            raise MisuseError(
                f"what must be a mapping that JSON can say, with strings for keys: {error}"
            ) from None

    def request_key(self, provider: str) -> str | None:
        """Two calls are the same only if they say that they do the same."""
        if not self.what:
            return None
        text = json.dumps({"provider": provider, "what": dict(self.what)}, sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()

    def description(self) -> Mapping[str, object]:
        """What a reader may know of it."""
        return dict(self.what)


Work = ProcessWork | CallWork


class Cause(StrEnum):
    """Why a run is stopped before its own end; the first one counts."""

    CANCELED = "canceled"
    SHUTDOWN = "shutdown"
    IDLE = "idle"
    WALL_TIMEOUT = "wall timeout"
    OVERFLOW = "overflow"
    ORPHANED = "orphaned"
    START_REFUSED = "start refused"
    EXPIRED = "expired"
    """The local deadline of work that somebody else may run. (L11)"""
    FENCED = "fenced"
    """The hold has ended: nothing more that this instance writes lands."""


AT_ONCE: Final = frozenset({Cause.OVERFLOW, Cause.START_REFUSED, Cause.EXPIRED, Cause.FENCED})
"""Causes that leave a process no time to end by itself."""


@frozen
class Ending:
    """How a run ended, as the terminal write will say."""

    outcome: Status
    result: Result


def completed(result: Result) -> Ending:
    """It did what it was asked."""
    return Ending(Status.COMPLETED, result)


def failed(exit_code: int, error: str) -> Ending:
    """It did not, with the reason."""
    return Ending(Status.FAILED, Result(exit_code=exit_code, error=error))


def waited_too_long(provider: str) -> str:
    """No slot came free in time, in words."""
    return f"Gateway is at capacity for {provider}: queue wait timed out before a run slot was free"


def queue_timed_out(provider: str) -> Ending:
    """No slot came free in time."""
    return failed(EXIT_QUEUE_TIMEOUT, waited_too_long(provider))


def described(error: BaseException) -> str:
    """An error's kind and message; there are some that cannot be printed."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


def not_launched(argv: tuple[str, ...], error: Exception) -> Ending:
    """There is no such command, or it cannot be run; that there is no such folder is another
    thing."""
    missing = isinstance(error, FileNotFoundError) and error.filename == argv[0]
    code = EXIT_NOT_FOUND if missing else EXIT_NOT_LAUNCHED
    return failed(code, f"Failed to launch {shown(argv[0])}: {error}")


def exited(code: int) -> Ending:
    """A process ended by itself; a negative code is the signal that killed it."""
    if code == 0:
        return completed(Result(exit_code=0))
    if code < 0:
        # A death by signal has no exit code; without one it must not pass for success.
        return failed(1, f"Process was killed by signal {-code}")
    return Ending(Status.FAILED, Result(exit_code=code))


def answered(answer: Answer) -> Ending:
    """A call came back."""
    result = Result(
        exit_code=0 if answer.ok else 1,
        http_status=answer.http_status,
        error=answer.error,
        body=answer.body,
    )
    return Ending(Status.COMPLETED if answer.ok else Status.FAILED, result)


def stopped(cause: Cause, work: Work, begun: bool, code: int | None = None) -> Ending:
    """A run was stopped, before or after it had `begun`; `code` is what its process returned."""
    if cause is Cause.CANCELED:
        shown_code = None if code is None else code if code >= 0 else 1
        return Ending(Status.CANCELED, Result(exit_code=shown_code, error="Canceled"))
    if cause is Cause.SHUTDOWN:
        # Also where the process caught the signal and exited with 0: it did not finish.
        when = "Stopped because the gateway is shutting down"
        return failed(1, when if begun else "Gateway is shutting down before execution")
    if cause is Cause.IDLE and isinstance(work, ProcessWork):
        return failed(EXIT_IDLE, f"Process killed after {work.idle_timeout_ms}ms of inactivity")
    if cause is Cause.WALL_TIMEOUT:
        return failed(EXIT_WALL_TIMEOUT, f"Stopped after {work.wall_timeout_ms}ms in all")
    if cause is Cause.OVERFLOW and isinstance(work, ProcessWork):
        size = _size(work.max_output_bytes or MAX_OUTPUT_BYTES)
        return failed(EXIT_OVERFLOW, f"Output exceeded maximum size ({size})")
    if cause is Cause.ORPHANED:
        return failed(1, "Stopped because a sweeper had taken this gateway for dead")
    return failed(EXIT_NOT_LAUNCHED, "Failed to launch: the store did not take the start")


def _size(size: int) -> str:
    megabytes, rest = divmod(size, 1024 * 1024)
    return f"{size} bytes" if rest else f"{megabytes}MB"
