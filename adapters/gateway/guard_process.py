"""The guard's own process: when to beat in the gateway's place, and for which holds.

Run as a script by `guard`, which says what it is for.
"""

from __future__ import annotations

import json
import logging
import os
import select
import sys
from typing import Any, Final

from unswept.adapters.gateway import evidence
from unswept.adapters.gateway.clock import boot_ms
from unswept.adapters.gateway.guard import Charge
from unswept.adapters.gateway.opening import open_store
from unswept.adapters.urls import without_password
from unswept.core.commands import Heartbeat, Hold, Store
from unswept.core.errors import StoreError, UnsweptError
from unswept.core.job import Process, Terms
from unswept.core.replies import Answer
from unswept.core.units import MonoMs

_ENDED: Final = frozenset({Answer.ABSENT, Answer.FENCED, Answer.TERMINAL})

log: Final = logging.getLogger(__name__)


class Watch:
    """The guard's end: when to beat, and for which holds."""

    def __init__(self, charge: Charge, now: MonoMs) -> None:
        """The gateway is taken to beat, until it has not for too long."""
        self._charge = charge
        self._heard_at = now
        self._stalled_ms = 0
        self._beaten_at = now
        self._holds: dict[str, tuple[Hold, Process | None]] = {}

    def hear(self, line: dict[str, Any], now: MonoMs) -> None:
        """One line from the gateway."""
        if "hold" in line:
            told = line["process"]
            process = None if told is None else Process(**told)
            self._holds[line["hold"]] = Hold(line["hold"], line["epoch"]), process
        elif "end" in line:
            self._holds.pop(line["end"], None)
        else:
            self._heard_at = self._beaten_at = now
            self._stalled_ms = line["stalled_ms"]

    def due_at(self) -> MonoMs:
        """When the guard has to beat, if it hears nothing before."""
        charge = self._charge
        silent = charge.heartbeat_interval_ms + charge.heartbeat_interval_ms // 4
        return MonoMs(self._beaten_at + silent + charge.operation_timeout_ms)

    def beat(self, now: MonoMs) -> Heartbeat:
        """The beat in the gateway's place."""
        self._beaten_at = now
        stalled_ms = self._stalled_ms + now - self._heard_at
        patient = stalled_ms <= self._charge.stall_limit_ms
        holds = tuple(
            hold
            for hold, process in self._holds.values()
            if (process is not None and evidence.lives(process)) or patient
        )
        return Heartbeat(self._charge.instance, self._charge.terms, holds)

    def failed(self) -> None:
        """The beat did not arrive: the next one is due in a quarter."""
        self._beaten_at = MonoMs(self._beaten_at - self._charge.heartbeat_interval_ms)

    def ended(self, job_id: str) -> None:
        """The store says that a hold has ended."""
        self._holds.pop(job_id, None)


class Lines:
    """What comes on a pipe, line by line, without ever waiting for longer than asked."""

    def __init__(self, descriptor: int) -> None:
        """Nothing has been read yet."""
        self._descriptor = descriptor
        self._rest = b""

    def read(self, wait_ms: int | None) -> list[dict[str, Any]] | None:
        """The lines that come within that time (None: whenever they come); None at the end."""
        wait_s = None if wait_ms is None else wait_ms / 1000
        readable, _, _ = select.select([self._descriptor], [], [], wait_s)
        if not readable:
            return []
        data = os.read(self._descriptor, 65536)
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(line) for line in lines]


def main() -> None:
    """Guard the gateway whose lines come on the standard input, until they end."""
    gateway = os.getppid()
    lines = Lines(sys.stdin.fileno())
    told: list[dict[str, Any]] | None = []
    while told == []:
        told = lines.read(None)
    if told is None:
        return
    charge = Charge(**{**told[0], "terms": Terms(**told[0]["terms"])})
    try:
        _guard(charge, told[1:], lines, gateway)
    except UnsweptError as error:
        sys.exit(f"unswept: the guard ends: {without_password(str(error))}")


def _guard(charge: Charge, told: list[dict[str, Any]] | None, lines: Lines, gateway: int) -> None:
    watch = Watch(charge, boot_ms())
    with open_store(charge.url, charge.operation_timeout_ms) as store:
        # A child that the gateway has forked may hold the other end of the pipe after its death.
        while told is not None and os.getppid() == gateway:
            for line in told:
                watch.hear(line, boot_ms())
            if boot_ms() >= watch.due_at():
                _beat(store, watch)
            told = lines.read(max(0, watch.due_at() - boot_ms()))


def _beat(store: Store, watch: Watch) -> None:
    try:
        beaten = store.execute(watch.beat(boot_ms()))
    except StoreError as error:
        log.warning("the guard's beat failed: %s", error)
        watch.failed()
        return
    for answer in beaten.answers:
        if answer.answer in _ENDED:
            watch.ended(answer.job_id)


if __name__ == "__main__":
    main()
