"""The runner runtime: claims jobs of a shared queue, runs handlers, holds leases, drains."""

from unswept.adapters.runner.job import Aborted, AbortedError, Cause, RunnerJob
from unswept.adapters.runner.opening import open_queue, open_runner
from unswept.adapters.runner.retries import Fail, Retries, Retry
from unswept.adapters.runner.runner import Health, Runner
from unswept.adapters.runner.waking import Polling, Waker

__all__ = [
    "Aborted",
    "AbortedError",
    "Cause",
    "Fail",
    "Health",
    "Polling",
    "Retries",
    "Retry",
    "Runner",
    "RunnerJob",
    "Waker",
    "open_queue",
    "open_runner",
]
