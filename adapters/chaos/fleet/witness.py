"""Stands between a runner and its store, and writes down what was claimed and what was ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from unswept.adapters.chaos.books import Notebook
from unswept.adapters.chaos.fleet.records import Taken, Wrote
from unswept.adapters.chaos.witness import BatchingStore
from unswept.core import commands as c
from unswept.core.replies import Accepted, Claimed, Refused

R = TypeVar("R")


class Witness:
    """A store whose claims and last writes are written down before the runner hears of them."""

    def __init__(self, store: c.Store, book: Notebook) -> None:
        """Write into this book."""
        self._store = store
        self._book = book

    def execute(self, command: c.Command[R]) -> R:
        """As the store does."""
        reply = self._store.execute(command)
        self._note(command, reply)
        return reply

    def _note(self, command: c.Command[Any], reply: Any) -> None:
        if isinstance(command, c.Claim) and isinstance(reply, Claimed) and reply.grants:
            standings = [grant.standing for grant in reply.grants]
            holds = tuple((standing.job_id, standing.epoch) for standing in standings)
            self._book.write(Taken(command.claim_no, reply.at, reply.repeated, holds))
        elif isinstance(command, (c.Complete, c.Release)):
            name = type(command).__name__
            self._book.write(Wrote(name, command.job_id, command.epoch, told(reply)))


class BatchingWitness(Witness):
    """The same of a store that carries out several writes in one transaction."""

    def __init__(self, store: BatchingStore, book: Notebook) -> None:
        """Write into this book."""
        super().__init__(store, book)
        self._batching = store

    def execute_all(self, commands: Sequence[c.Command[Any]]) -> Sequence[Any]:
        """As the store does."""
        replies = self._batching.execute_all(commands)
        for command, reply in zip(commands, replies, strict=True):
            self._note(command, reply)
        return replies


def witnessed(store: c.Store, book: Notebook) -> Witness:
    """The witness for a store."""
    if isinstance(store, BatchingStore):
        return BatchingWitness(store, book)
    return Witness(store, book)


def told(reply: Any) -> str:
    """An answer in a word."""
    if isinstance(reply, Refused):
        return reply.reason.value
    return "repeated" if isinstance(reply, Accepted) and reply.repeated else "fresh"
