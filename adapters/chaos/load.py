"""The jobs that a gateway of a chaos run is given: many short ones and some long, of both kinds.

A long process job outlives its gateway's death, so that it can be evidence. It waits on a pipe that
the driver holds open: when the driver is gone, however it went, so are they.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from attrs import frozen

from unswept.adapters.gateway import Answer, CallWork, ProcessWork

_WAIT: Final = (
    "import select, sys\n"
    "pipe = open(sys.argv[1])\n"
    "print('begun', flush=True)\n"
    "gone, _, _ = select.select([pipe], [], [], float(sys.argv[2]))\n"
    "sys.exit(1 if gone else 0)\n"
)
_SHORT_MS: Final = (50, 500)
_LONG_MS: Final = (3_000, 8_000)
LONGEST_MS: Final = _LONG_MS[1]


@frozen
class Task:
    """One job to submit."""

    work: ProcessWork | CallWork
    lasts_ms: int
    """How long a process surely lives, whatever becomes of its gateway; 0: not known, or a call."""


def tasks(draw: random.Random, pipe: Path) -> Iterator[Task]:
    """Jobs without end; long ones first, so that a gateway that has just begun holds something."""
    yield _long_process(draw, pipe)
    yield _long_call(draw)
    while True:
        kind = draw.random()
        if kind < 0.30:
            yield Task(ProcessWork(argv=("sh", "-c", f"echo {draw.random()}")), 0)
        elif kind < 0.40:
            yield Task(ProcessWork(argv=("sh", "-c", f"exit {draw.randrange(1, 100)}")), 0)
        elif kind < 0.80:
            yield Task(_call(draw.uniform(*_SHORT_MS), draw.random() < 0.1), 0)
        else:
            yield _long_process(draw, pipe) if kind < 0.90 else _long_call(draw)


def _long_process(draw: random.Random, pipe: Path) -> Task:
    lasts_ms = draw.uniform(*_LONG_MS)
    wait = (sys.executable, "-I", "-S", "-c", _WAIT, str(pipe), str(lasts_ms / 1000))
    return Task(ProcessWork(argv=wait), round(lasts_ms))


def _long_call(draw: random.Random) -> Task:
    return Task(_call(draw.uniform(*_LONG_MS), False), 0)


def _call(lasts_ms: float, fails: bool) -> CallWork:
    async def call() -> Answer:
        await asyncio.sleep(lasts_ms / 1000)
        return Answer(b"done", http_status=503 if fails else 200)

    return CallWork(call=call)
