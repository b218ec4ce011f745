"""The producer process of a fleet's run: enqueues every job, cancels some, enqueues some again.

Run as a program by `driver`, which gives it its charge, and how many jobs in how much time. Every
command is repeated until it is answered.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from unswept.adapters.chaos.books import Notebook
from unswept.adapters.chaos.fleet.load import Task, Wish, tasks
from unswept.adapters.chaos.fleet.places import open_for
from unswept.adapters.chaos.fleet.records import Canceled, Enqueued
from unswept.adapters.chaos.fleet.witness import told
from unswept.adapters.chaos.worker import Charge, end_with
from unswept.core import commands as c
from unswept.core.errors import StoreError

R = TypeVar("R")

THREADS: Final = 8
LATER: Final = 100
"""After so many further jobs a job is enqueued again."""
_AGAIN_S: Final = 0.1


def produce(store: c.Store, book: Notebook, every: list[Task], least_s: float) -> None:
    """All of them, spread over no less than this time."""
    began = time.monotonic()

    def one(task: Task) -> None:
        due = began + least_s * task.number / len(every)
        time.sleep(max(0.0, due - time.monotonic()))
        if task.cancel is Wish.BEFORE:
            cancel(store, book, task)
        enqueue(store, book, task, again=False)
        if task.cancel is Wish.AFTER:
            cancel(store, book, task)
        earlier = every[task.number - 1 - LATER] if task.number > LATER else None
        if earlier is not None and earlier.again:
            enqueue(store, book, earlier, again=True)

    with ThreadPoolExecutor(THREADS) as threads:
        for _ in threads.map(one, every):
            pass


def enqueue(store: c.Store, book: Notebook, task: Task, *, again: bool) -> None:
    """And write down what came of it."""
    reply = answered(store, task.enqueue)
    book.write(Enqueued(task.job_id, told(reply), again))


def cancel(store: c.Store, book: Notebook, task: Task) -> None:
    """And write down when."""
    reply = answered(store, c.RequestCancel(task.job_id))
    book.write(Canceled(task.job_id, reply.at))


def answered(store: c.Store, command: c.Command[R]) -> R:
    """The answer, however often the command has to be sent."""
    while True:
        try:
            return store.execute(command)
        except StoreError:
            time.sleep(_AGAIN_S)


def order(lines: Iterator[str]) -> tuple[Charge, int, int, float]:
    """The charge, the seed, the number of jobs, and the least time."""
    charge = Charge(**json.loads(next(lines)))
    more = json.loads(next(lines))
    return charge, more["seed"], more["jobs"], more["least_s"]


def main() -> None:
    """Read the charge, and do what it says."""
    charge, seed, jobs, least_s = order(sys.stdin)
    with open_for(charge, connections=THREADS, announce=True) as store:
        produce(store, Notebook(Path(charge.book)), list(tasks(seed, jobs)), least_s)


if __name__ == "__main__":
    end_with(int(sys.argv[1]))
    main()
