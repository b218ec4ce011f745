"""Carries commands from the event loop to the store on threads of its own, what waits at the same
time in one transaction.

That divides the wait for the disk, and the price of waking a thread and the loop, by their number.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar, runtime_checkable

from attrs import define, field, frozen

from unswept.adapters.gateway.clock import boot_ms
from unswept.adapters.gateway.to_loop import tell
from unswept.core.commands import Command, Store
from unswept.core.errors import OutcomeUnknownError, StoreUnavailableError
from unswept.core.heart import Act
from unswept.core.units import MonoMs

R = TypeVar("R")

MOST_TOGETHER: Final = 32
"""A longer transaction would keep heartbeats waiting for the file."""
THREADS: Final = 4
"""For a store that carries out one command at a time on each of its connections."""


@runtime_checkable
class Batching(Protocol):
    """A store that can carry out several writes in one transaction: all of them or none."""

    def execute_all(self, commands: Sequence[Command[Any]]) -> Sequence[Any]:
        """Carry them out in their order, and reply to each."""
        ...


@frozen
class Sent(Generic[R]):
    """An answer, and when the command was first sent."""

    reply: R
    first_sent_at: MonoMs


@define(eq=False)
class Call(Generic[R]):
    """A command, through all its tries."""

    command: Command[R]
    act: Act | None
    on_reply: Callable[[Sent[R]], None] | None
    first_sent_at: MonoMs | None = None
    answer: asyncio.Future[Sent[R]] = field(init=False)
    """To the present try."""


class NotNowError(Exception):
    """The heart does not allow the command now."""


class Lane:
    """The way of one instance's writes to its store."""

    def __init__(self, store: Store, may: Callable[[Act], bool]) -> None:
        """Of the running loop; `may` says what the heart allows."""
        self._store = store
        self._batching = store if isinstance(store, Batching) else None
        self._may = may
        self._loop = asyncio.get_running_loop()
        self._gathered: list[Call[Any]] = []
        self._posted: queue.SimpleQueue[Call[Any] | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name="unswept-send", daemon=True)
            for _ in range(1 if self._batching else THREADS)
        ]
        for thread in self._threads:
            thread.start()

    def post(self, call: Call[R]) -> asyncio.Future[Sent[R]]:
        """Send it once, soon; who cancels the answer in time takes it back."""
        call.answer = self._loop.create_future()
        # At the end of this turn of the loop, with what else is posted in it: a thread that was
        # woken by the first of them would share the interpreter lock with the rest of the turn.
        if not self._gathered:
            self._loop.call_soon(self._hand_over)
        self._gathered.append(call)
        return call.answer

    async def close(self) -> None:
        """Post nothing more; returns when all that was posted has been answered."""
        self._hand_over()
        self._posted.put(None)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)

    def _hand_over(self) -> None:
        gathered, self._gathered = self._gathered, []
        for call in gathered:
            self._posted.put(call)

    # On the threads -------------------------------------------------------------------------

    def _work(self) -> None:
        while calls := self._next():
            self._carry(calls)

    def _next(self) -> list[Call[Any]]:
        """What waits now, or the first that comes; empty once the lane is closed."""
        calls: list[Call[Any]] = []
        most = MOST_TOGETHER if self._batching else 1
        while len(calls) < most:
            try:
                call = self._posted.get(block=not calls)
            except queue.Empty:
                break
            if call is None:
                self._posted.put(None)  # for this thread's next look, and for the others
                break
            calls.append(call)
        return calls

    def _carry(self, calls: list[Call[Any]]) -> None:
        answers: list[_Answer] = []
        going = []
        for call in calls:
            if call.answer.cancelled():
                continue
            if call.act is not None and not self._may(call.act):
                answers.append((call.answer, NotNowError()))
                continue
            call.first_sent_at = call.first_sent_at or boot_ms()
            going.append(call)
        replies = self._execute([call.command for call in going])
        for call, reply in zip(going, replies, strict=True):
            answers.append((call.answer, _heard(call, reply)))
        tell(self._loop, _deliver, answers)

    def _execute(self, commands: list[Command[Any]]) -> Sequence[Any]:
        """The reply to each, or its error."""
        if self._batching is not None and len(commands) > 1:
            try:
                return self._batching.execute_all(commands)
            except (StoreUnavailableError, OutcomeUnknownError) as error:
                return [error] * len(commands)  # each would only wait for the same once more
            except Exception:
                pass  # one of them spoils the others: below it has the error for itself
        return [self._execute_one(command) for command in commands]

    def _execute_one(self, command: Command[Any]) -> Any:
        try:
            return self._store.execute(command)
        except Exception as error:
            return error


_Answer = tuple[asyncio.Future[Sent[Any]], Sent[Any] | Exception]


def _heard(call: Call[Any], reply: Any) -> Sent[Any] | Exception:
    """What is told of the reply; who has to know before the loop does is told here."""
    if isinstance(reply, Exception):
        return reply
    assert call.first_sent_at is not None
    sent = Sent(reply, call.first_sent_at)
    try:
        if call.on_reply is not None:
            call.on_reply(sent)
    except Exception as error:
        return error
    return sent


def _deliver(answers: list[_Answer]) -> None:
    for future, answer in answers:
        if future.done():
            continue
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
