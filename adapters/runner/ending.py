"""What a handler's end comes to: a terminal write, or the job's way back to the queue."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from unswept.adapters.runner.job import Cause, RunnerJob
from unswept.adapters.runner.retries import Fail, Retries, Retry
from unswept.core.checks import shown
from unswept.core.errors import MisuseError
from unswept.core.lease import RequeueRule, Status
from unswept.core.units import Ms
from unswept.core.values import Result


@frozen
class Over:
    """The job is over."""

    outcome: Status
    result: Result


@frozen
class Back:
    """The job goes back to the queue, and is claimed after this pause at the earliest."""

    pause_ms: Ms = Ms(0)


Ending = Over | Back


@frozen
class Returned:
    """What the handler returned, or raised."""

    value: Any = None
    error: BaseException | None = None


@frozen
class Endings:
    """The rules of one runner."""

    retries: Retries
    timeout_ms: Ms | None

    def of(self, job: RunnerJob, returned: Returned) -> Ending:
        """The handler has ended by itself."""
        error = returned.error
        if error is None:
            try:
                return Over(Status.COMPLETED, result_of(returned.value))
            except MisuseError as misuse:
                error = misuse
        if isinstance(error, Fail):
            return Over(Status.FAILED, error.result)
        after_ms = error.after_ms if isinstance(error, Retry) else None
        return self._failed(job, _told(error), after_ms)

    def stopped(self, job: RunnerJob, cause: Cause) -> Ending:
        """The handler was stopped, whatever it returned."""
        if cause is Cause.CANCELED:
            return Over(Status.CANCELED, Result(error="Canceled"))
        if cause is Cause.TIMEOUT:
            return self._failed(job, f"Stopped after {self.timeout_ms} ms", None)
        if cause is Cause.OVERFLOW:
            return Over(Status.FAILED, Result(error="Stopped because its output was too much"))
        if job.requeue is RequeueRule.ALLOWED:
            return Back()
        return Over(Status.FAILED, Result(error="Stopped because the runner is shutting down"))

    def _failed(self, job: RunnerJob, error: str, after_ms: int | None) -> Ending:
        pause_ms = self.retries.pause_ms(job.attempts)
        if pause_ms is None or job.requeue is RequeueRule.NEVER:
            return Over(Status.FAILED, Result(error=error))
        return Back(pause_ms if after_ms is None else Ms(after_ms))


def result_of(value: Any) -> Result:
    """What a handler may return."""
    if value is None:
        return Result()
    if isinstance(value, bytes):
        return Result(body=value)
    if isinstance(value, Result):
        return value
    raise MisuseError(f"a handler must return bytes, a Result or None, got {shown(value)}")


def _told(error: BaseException) -> str:
    return str(error) if isinstance(error, Retry) else f"{type(error).__name__}: {error}"
