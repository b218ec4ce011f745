"""Stands between a gateway and its store, and writes down what was sent and what was acknowledged.

What is about to be sent is written before it is sent, what was answered before the gateway hears of
it. So a gateway that is killed has acted on nothing that is not in its file.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

from unswept.adapters.chaos.books import Notebook
from unswept.adapters.chaos.records import Answered, End, Failed, HoldName, Sent, Stamp
from unswept.adapters.gateway.clock import boot_ms
from unswept.adapters.gateway.lane import Batching
from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.errors import StoreError
from unswept.core.lease import TERMINAL

R = TypeVar("R")


@runtime_checkable
class BatchingStore(c.Store, Batching, Protocol):
    """A store that carries out one command, or several in one transaction."""


_READS: Final = (c.Find, c.ReadRequest, c.ReadOutput)
"""They say nothing about a lease."""


class Witness:
    """A store whose commands, and their acknowledgements, are written down. For any thread."""

    def __init__(self, store: c.Store, book: Notebook) -> None:
        """Write into this book."""
        self._store = store
        self._book = book
        self._numbers = itertools.count(1)

    def execute(self, command: c.Command[R]) -> R:
        """Carry out one command and reply, as the store does."""
        if type(command) in _READS:
            return self._store.execute(command)
        (number,) = self._sent((command,))
        with self._failures((number,)):
            reply = self._store.execute(command)
        self._book.write(_answered(number, command, reply))
        return reply

    def _sent(self, commands: Sequence[c.Command[Any]]) -> list[int]:
        numbers = []
        for command in commands:
            numbers.append(next(self._numbers))
            name = type(command).__name__
            self._book.write(Sent(boot_ms(), numbers[-1], name, tuple(_holds(command))))
        return numbers

    @contextmanager
    def _failures(self, numbers: Sequence[int]) -> Iterator[None]:
        try:
            yield
        except StoreError as error:
            for number in numbers:
                self._book.write(Failed(boot_ms(), number, type(error).__name__))
            raise


class BatchingWitness(Witness):
    """The same for a store that carries out several commands in one transaction."""

    def __init__(self, store: BatchingStore, book: Notebook) -> None:
        """Write into this book."""
        super().__init__(store, book)
        self._batching = store

    def execute_all(self, commands: Sequence[c.Command[Any]]) -> Sequence[Any]:
        """Carry out all of them or none, and reply to each, as the store does."""
        numbers = self._sent(commands)
        with self._failures(numbers):
            replies = self._batching.execute_all(commands)
        for number, command, reply in zip(numbers, commands, replies, strict=True):
            self._book.write(_answered(number, command, reply))
        return replies


def witnessed(store: c.Store, book: Notebook) -> Witness:
    """The store, with all that it can do, under a witness."""
    if isinstance(store, BatchingStore):
        return BatchingWitness(store, book)
    return Witness(store, book)


def _holds(command: c.Command[Any]) -> Iterator[HoldName]:
    if isinstance(command, c.Admit | c.Withdraw):
        yield HoldName(command.job_id, 1)
    elif isinstance(command, c.Start | c.Complete | c.Output | c.Delay):
        yield HoldName(command.job_id, command.epoch)
    elif isinstance(command, c.Heartbeat):
        yield from (HoldName(hold.job_id, hold.epoch) for hold in command.holds)
    elif isinstance(command, c.Sweep):
        yield from (HoldName(target.job_id, target.epoch) for target in command.targets)


def _answered(number: int, command: c.Command[Any], reply: Any) -> Answered:
    granted: tuple[str, ...] = ()
    stamps: tuple[Stamp, ...] = ()
    ends: tuple[End, ...] = ()
    withdrawn: tuple[str, ...] = ()
    chunks: tuple[int, ...] = ()
    if isinstance(reply, r.Beaten):
        stamps = tuple(
            Stamp(answer.job_id, answer.epoch, answer.deadline)
            for answer in reply.answers
            if answer.answer is r.Answer.RENEWED and answer.deadline is not None
        )
    elif isinstance(reply, r.Withdrawn):
        withdrawn = (reply.job_id,)
    elif isinstance(reply, r.Accepted):
        standing = reply.standing
        if isinstance(command, c.Admit):
            granted = (standing.job_id,)
        stamped = isinstance(command, c.Admit | c.Start) and not reply.repeated
        if stamped and standing.deadline is not None:
            stamps = (Stamp(standing.job_id, standing.epoch, standing.deadline),)
        if isinstance(command, c.Complete):
            ends = (_end(command, reply),)
        if isinstance(command, c.Withdraw) and standing.status in TERMINAL:
            withdrawn = (standing.job_id,)
        if isinstance(command, c.Output):
            chunks = (command.chunk.chunk,)
    return Answered(boot_ms(), number, reply.at, granted, stamps, ends, withdrawn, chunks)


def _end(command: c.Complete, reply: r.Accepted) -> End:
    standing = reply.standing
    code = command.result.exit_code
    return End(standing.job_id, command.epoch, standing.status, code, not reply.repeated)
