"""A process beside the gateway that beats when the gateway cannot: for extensions that keep the
interpreter lock, under which no thread of the gateway runs.

The gateway tells it each hold and each of its own accepted beats, one line of JSON each. While
those beats come, the guard is silent; when none has come for a heartbeat and a quarter, it sends
its own, under the same instance, for the holds whose process lives, and for others until the stall
limit. It ends with the gateway.

What the store answers is the gateway's to act on, as soon as it can; the guard only drops the holds
that have ended.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import subprocess
import sys
import threading
from typing import Any, Final

from attrs import asdict, frozen

from unswept.core.commands import Hold
from unswept.core.job import Process, Terms
from unswept.core.policy import LeasePolicy
from unswept.core.units import Ms

PROCESS: Final = "unswept.adapters.gateway.guard_process"

log: Final = logging.getLogger(__name__)


@frozen
class Charge:
    """What a guard is told first."""

    url: str
    instance: str
    terms: Terms
    heartbeat_interval_ms: Ms
    operation_timeout_ms: Ms
    stall_limit_ms: Ms


class Guard:
    """The gateway's end. No call of it waits for the other process."""

    def __init__(self, url: str, instance: str, policy: LeasePolicy) -> None:
        """Start the process; it opens the store that `url` names for itself."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", PROCESS],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # a signal to the gateway's own group is not for the guard
        )
        self.lives = True
        """Its process has not ended yet."""
        self._lines: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        charge = Charge(
            url,
            instance,
            policy.terms(),
            policy.heartbeat_interval_ms,
            policy.operation_timeout_ms,
            policy.stall_limit_ms,
        )
        self._lines.put(asdict(charge))
        self._writer = threading.Thread(target=self._write, name="unswept-guard", daemon=True)
        self._writer.start()

    def hold(self, hold: Hold, process: Process | None = None) -> None:
        """A hold has begun, or its process has."""
        told = None if process is None else asdict(process)
        self._tell({"hold": hold.job_id, "epoch": hold.epoch, "process": told})

    def end(self, job_id: str) -> None:
        """A hold has ended."""
        self._tell({"end": job_id})

    def beaten(self, stalled_ms: Ms) -> None:
        """The gateway's own beat was accepted; its loop has not turned for so long."""
        self._tell({"stalled_ms": stalled_ms})

    def close(self) -> None:
        """End the guard; it beats no more when this returns."""
        self._lines.put(None)
        self._writer.join()

    def _tell(self, line: dict[str, Any]) -> None:
        if self.lives:  # else nobody takes the lines any more
            self._lines.put(line)

    def _write(self) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        try:
            while (line := self._lines.get()) is not None:
                pipe.write(json.dumps(line).encode() + b"\n")
                pipe.flush()
        except BrokenPipeError:
            log.error("the guard has ended; heartbeats are the gateway's alone again")
        self.lives = False
        with contextlib.suppress(BrokenPipeError):  # what was not written is flushed once more
            pipe.close()
        self._process.wait()
