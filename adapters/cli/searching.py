"""What the parts of `unswept explore` share: searches in several processes, and the colours of what
they come to."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Final, TypeVar

from rich.console import Console

from unswept.adapters.cli.common import progress_bar

S = TypeVar("S")
T = TypeVar("T")

COLOURS: Final = {"exhausted": "green", "refuted": "red", "undetermined": "yellow"}
"""By verdict."""


def in_processes(
    run: Callable[[S], T], tasks: Sequence[S], workers: int, console: Console, what: str
) -> list[T]:
    """What each task came to, in their order, so that no report depends on `workers`."""
    with progress_bar(console) as progress:
        bar = progress.add_task(what, total=len(tasks))
        if workers == 1 or len(tasks) == 1:
            return [run(task) for task in progress.track(tasks, task_id=bar)]
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            try:
                running = [pool.submit(run, task) for task in tasks]
                for _ in as_completed(running):
                    progress.advance(bar)
                return [each.result() for each in running]
            finally:
                pool.shutdown(cancel_futures=True)


@contextmanager
def without_collector() -> Iterator[None]:
    """A search only grows, and makes no cycles: looking for garbage takes a fifth of its time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
