"""Spreads a function over whoever can run it, here or elsewhere, and gives the results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent import futures
from contextlib import contextmanager
from multiprocessing import get_context
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

from attrs import frozen

T = TypeVar("T")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Future(Protocol[R_co]):
    """What is asked of a result on its way: `concurrent.futures` and Dask both have it."""

    def done(self) -> bool:
        """Is it there?"""
        ...

    def result(self) -> R_co:
        """The result; what its function raised is raised here."""
        ...

    def cancel(self) -> object:
        """Let it be, if it has not begun."""
        ...

    def add_done_callback(self, fn: Callable[[Any], object], /) -> object:
        """Call `fn` when the result is there, in any thread."""
        ...


@frozen
class Workers:
    """Whoever runs tasks: `submit(function, task)` begins one and returns its future."""

    submit: Callable[[Callable[[Any], Any], Any], Future[Any]]
    at_once: int
    """How many tasks they run at a time."""


def in_order(
    workers: Workers, function: Callable[[T], R], tasks: Iterable[T]
) -> Generator[R, None, None]:
    """The results of `function` in the order of the tasks, whoever was done first.

    A task is drawn from `tasks` when there is a worker for it, so that `tasks` may end early;
    closing the iterator cancels what has not begun.
    """
    waiting = iter(tasks)
    begun: deque[Future[R]] = deque()
    ended: SimpleQueue[object] = SimpleQueue()
    try:
        while True:
            while sum(not future.done() for future in begun) < workers.at_once:
                try:
                    task = next(waiting)
                except StopIteration:
                    break
                future: Future[R] = workers.submit(function, task)
                begun.append(future)
                future.add_done_callback(ended.put)
                if begun[0].done():
                    break
            if not begun:
                return
            if not begun[0].done():
                ended.get()
            while begun and begun[0].done():
                yield begun.popleft().result()
    finally:
        for future in begun:
            future.cancel()


def here() -> Workers:
    """This very process: each task is run when it is asked for."""
    return Workers(_at_once, 1)


def _at_once(function: Callable[[T], R], task: T) -> futures.Future[R]:
    future: futures.Future[R] = futures.Future()
    future.set_result(function(task))
    return future


@contextmanager
def processes(count: int) -> Iterator[Workers]:
    """So many processes, started as they are needed; one is this very process."""
    if count == 1:
        yield here()
        return
    with futures.ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        yield Workers(pool.submit, count)
