"""The lines of evidence: what a gateway and the driver write down, each before its next action.

All times are of the host's boot clock, which all processes of a run share, but where a name says
that it is the store's.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from attrs import field, frozen

from unswept.adapters.chaos.books import parsed, read_book
from unswept.core.units import MonoMs, StoreMs

T = TypeVar("T")


class HoldName(NamedTuple):
    """A hold, or a target of a sweep."""

    job_id: str
    epoch: int


class Stamp(NamedTuple):
    """One acknowledged grant, start or renewal; it was stamped at the reply's store time."""

    job_id: str
    epoch: int
    deadline: int


class End(NamedTuple):
    """One acknowledged terminal write; `fresh`: not a repetition of one that had landed before."""

    job_id: str
    epoch: int
    status: str
    exit_code: int | None
    fresh: bool


def _each(kind: type[T]) -> Any:
    """Rows of JSON, as named tuples of this kind."""
    return field(factory=tuple, converter=lambda rows: tuple(kind(*row) for row in rows))


# What a gateway writes --------------------------------------------------------------------------


@frozen
class Born:
    """A gateway has its id."""

    at: MonoMs
    instance: str


@frozen
class Sent:
    """A command is about to be sent."""

    at: MonoMs
    number: int
    command: str
    holds: tuple[HoldName, ...] = _each(HoldName)
    """What it would stamp, end or sweep."""


@frozen
class Answered:
    """The command of this number was answered, and what the answer acknowledges."""

    at: MonoMs
    number: int
    store_at: StoreMs
    granted: tuple[str, ...] = field(factory=tuple, converter=tuple[str, ...])
    """The job that this admit, perhaps by an earlier sending, has brought into the store."""
    stamps: tuple[Stamp, ...] = _each(Stamp)
    ends: tuple[End, ...] = _each(End)
    withdrawn: tuple[str, ...] = field(factory=tuple, converter=tuple[str, ...])
    chunks: tuple[int, ...] = field(factory=tuple, converter=tuple[int, ...])
    """The chunk of output that was taken, of the one hold that the command names."""


@frozen
class Failed:
    """The command of this number got no answer; whether it took effect is unknown."""

    at: MonoMs
    number: int
    error: str


@frozen
class Work:
    """A job whose work goes on for so long, whatever becomes of its gateway."""

    at: MonoMs
    job_id: str
    lasts_ms: int


@frozen
class Stalled:
    """No thread of the gateway ran between these times: it was stopped, or got no CPU."""

    at: MonoMs
    since: MonoMs


@frozen
class LoopStood:
    """The event loop did not turn between these times; `at` is None as long as it stands still."""

    since: MonoMs
    at: MonoMs | None = None


@frozen
class Drained:
    """The drain is over, and with it the heart; `clean`: all was written."""

    at: MonoMs
    clean: bool


# What the driver writes -------------------------------------------------------------------------


class Act(StrEnum):
    """What the driver does, or sees."""

    START = "start"
    KILL = "kill"
    STOP = "stop"
    CONTINUE = "continue"
    TERM = "term"
    BLOCK = "block"
    CUT = "cut"
    """The connections of one gateway were killed."""
    ENDED = "ended"
    """A process is gone."""
    LOCK = "lock"
    """From here on nobody can renew."""
    UNLOCK = "unlock"
    DOWN = "down"
    """From here on the server may be down."""
    UP = "up"
    REST = "rest"
    """No more work is given, and nothing more is done to anybody."""


@frozen
class Deed:
    """One act: it took place between `since` and `at`."""

    since: MonoMs
    at: MonoMs
    act: Act = field(converter=Act)
    gateway: int | None = None
    """The gateway's number; None: it befalls all."""
    detail: int | None = None
    """Milliseconds of a stop or a block, the exit code of a process that ended."""


@frozen
class Slots:
    """What one gateway's limiter said at rest, and what the store had of its jobs just then."""

    at: MonoMs
    gateway: int
    running: int
    queued: int
    finishing: int
    active: int
    orphaned: int
    final: bool
    """All work is over: nothing may be left on either side."""

    @property
    def balanced(self) -> bool:
        """Is it at rest, and are the slots the live rows? A job that was orphaned while its owner
        works on it still has its slot."""
        taken = self.running + self.queued
        if self.finishing:
            return False
        if self.final:
            return taken == self.active == 0
        return self.active <= taken <= self.active + self.orphaned


Line = Born | Sent | Answered | Failed | Work | Stalled | LoopStood | Drained | Deed | Slots
_KINDS: Final[Mapping[str, type[Line]]] = {
    kind.__name__: kind
    for kind in (Born, Sent, Answered, Failed, Work, Stalled, LoopStood, Drained, Deed, Slots)
}


def read(path: Path) -> list[Line]:
    """All whole lines, in the order in which they were written."""
    return read_book(path, _KINDS)


def instance_of(path: Path) -> str:
    """The id of the gateway whose file this is; it is the first thing that it writes."""
    with path.open("rb") as book:
        [born] = parsed([book.readline()], _KINDS)
    assert isinstance(born, Born)
    return born.instance
