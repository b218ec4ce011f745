"""When a job that failed is tried again, and what a handler may say about it."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from unswept.core.checks import check_whole, shown
from unswept.core.errors import MisuseError, UnsweptError
from unswept.core.units import MAX_COUNT, MAX_MS, Ms
from unswept.core.values import Result

GREATEST_FACTOR: Final = 1_000


@frozen(kw_only=True)
class Retries:
    """How often a job that may be requeued is begun, and how long it pauses in between.

    Every claim counts as an attempt, whatever ended it: a failure, a drain, a dead runner. A job
    that may not be requeued is never tried again.
    """

    max_attempts: int = 3
    first_pause_ms: Ms = Ms(1_000)
    """After the first attempt; each further one pauses `factor` times as long."""
    factor: float = 2.0
    max_pause_ms: Ms = Ms(300_000)

    def __attrs_post_init__(self) -> None:
        """Bounds."""
        check_whole("max_attempts", self.max_attempts, 1, MAX_COUNT)
        check_whole("first_pause_ms", self.first_pause_ms, 0, MAX_MS)
        check_whole("max_pause_ms", self.max_pause_ms, 0, MAX_MS)
        if not 1 <= self.factor <= GREATEST_FACTOR:
            raise MisuseError(f"factor must be 1 to {GREATEST_FACTOR}, got {shown(self.factor)}")

    def pause_ms(self, attempts: int) -> Ms | None:
        """The pause after so many attempts, by the store's clock; None: that was the last."""
        if attempts >= self.max_attempts:
            return None
        pause = float(self.first_pause_ms)
        for _ in range(attempts - 1):
            pause *= self.factor
            if pause >= self.max_pause_ms:
                break
        return Ms(min(round(pause), self.max_pause_ms))


class Retry(UnsweptError):  # noqa: N818 - a handler raises it as an order, not as an error
    """This attempt has failed; the next one comes after this pause, if there is one left."""

    def __init__(self, after_ms: int | None = None, reason: str = "the handler asked for a retry"):
        """None: the pause of the runner's `Retries`."""
        if after_ms is not None:
            check_whole("after_ms", after_ms, 0, MAX_MS)
        super().__init__(reason)
        self.after_ms = after_ms


class Fail(UnsweptError):  # noqa: N818 - a handler raises it as an order, not as an error
    """The job has failed for good, whatever attempts are left."""

    def __init__(self, reason: str, *, body: bytes = b"", exit_code: int | None = None):
        """What the job's result will say."""
        super().__init__(reason)
        self.result = Result(exit_code=exit_code, error=reason, body=body)
