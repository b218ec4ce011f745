"""What runners, their producer and the driver write down, each line before the next action.

A line is appended by one write, so that a process which is killed leaves whole lines, but perhaps
for the last, and has acted on nothing that is not in its file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from attrs import asdict, field, frozen


def _holds(rows: Any) -> tuple[tuple[str, int], ...]:
    return tuple((job_id, epoch) for job_id, epoch in rows)


# A runner's --------------------------------------------------------------------------------------


@frozen
class Born:
    """A runner has its id."""

    instance: str


@frozen
class Taken:
    """A claim was answered, and the runner is about to hear of it."""

    claim_no: int
    store_at: int
    repeated: bool
    holds: tuple[tuple[str, int], ...] = field(converter=_holds)


@frozen
class Begun:
    """A handler has begun."""

    job_id: str
    epoch: int


@frozen
class Done:
    """A handler is about to return: from here on the job may complete."""

    job_id: str
    epoch: int


@frozen
class Wrote:
    """The last write of a hold was answered."""

    command: str
    job_id: str
    epoch: int
    answer: str
    """`fresh`: it took effect just then; `repeated`: it had before; else the refusal."""


@frozen
class Drained:
    """The drain is over; `clean`: all was written."""

    clean: bool


# The producer's, and the driver's for what comes at the end ---------------------------------------


@frozen
class Enqueued:
    """An enqueue was answered."""

    job_id: str
    answer: str
    """As of `Wrote`."""
    again: bool


@frozen
class Canceled:
    """A cancel request was answered."""

    job_id: str
    store_at: int


# The driver's -------------------------------------------------------------------------------------


@frozen
class Deed:
    """Something was done to a runner, or it was seen to have ended."""

    at: int
    """By the host's boot clock."""
    act: str
    runner: int


@frozen
class Settled:
    """An orphan that nobody may run again was settled as failed, by authority."""

    job_id: str
    epoch: int
    answer: str


Line = Born | Taken | Begun | Done | Wrote | Drained | Enqueued | Canceled | Deed | Settled
_KINDS: Final = {
    kind.__name__: kind
    for kind in (Born, Taken, Begun, Done, Wrote, Drained, Enqueued, Canceled, Deed, Settled)
}


class Book:
    """A file that only grows. For any number of threads: one line is one write."""

    def __init__(self, path: Path) -> None:
        """Append to this file, made where there is none."""
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, line: Line) -> None:
        """Returns when the line is where no death of this process can take it back."""
        told = {"is": type(line).__name__, **asdict(line, recurse=False)}
        os.write(self._file, json.dumps(told).encode() + b"\n")

    def close(self) -> None:
        """Nothing more is written."""
        os.close(self._file)


def read(path: Path) -> Iterator[Line]:
    """All whole lines, in the order in which they were written."""
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    for line in whole.splitlines():
        told = json.loads(line)
        yield _KINDS[told.pop("is")](**told)
