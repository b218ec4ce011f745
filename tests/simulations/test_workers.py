"""Tasks over workers: results come in the order of the tasks, and no task is begun in vain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from threading import Event
from typing import Any

import pytest

from unswept.simulations.workers import Workers, here, in_order, processes


def times_ten(number: int) -> int:
    return 10 * number


def test_results_come_in_the_order_of_the_tasks() -> None:
    """Whoever is done first waits for those before it, and its worker goes on meanwhile."""
    third = Event()
    ended: list[int] = []

    def task(number: int) -> int:
        if number == 1:
            assert third.wait(10)
        if number == 3:
            third.set()
        ended.append(number)
        return 10 * number

    with ThreadPoolExecutor(2) as pool:
        workers = Workers(pool.submit, 2)
        assert list(in_order(workers, task, (1, 2, 3, 4))) == [10, 20, 30, 40]
    assert ended[0] == 2


@pytest.mark.parametrize("count", [1, 2])
def test_real_processes_give_what_a_loop_gives(count: int) -> None:
    """One process or two, the same results."""
    with processes(count) as workers:
        assert list(in_order(workers, times_ten, range(7))) == [10 * n for n in range(7)]


def test_a_task_is_drawn_only_when_there_is_a_worker_for_it() -> None:
    """So that a time budget ends what is begun, not what is waiting."""
    drawn: list[int] = []

    def todo() -> Iterator[int]:
        for number in range(100):
            drawn.append(number)
            yield number

    with closing(in_order(here(), times_ten, todo())) as results:
        assert next(results) == 0
        assert drawn == [0]


def test_closing_cancels_what_has_not_begun() -> None:
    """The first violation ends a campaign, whatever was handed out."""
    begun: list[Future[int]] = []

    def submit(function: Callable[[Any], Any], task: Any) -> Future[int]:
        begun.append(Future())
        if len(begun) == 3:
            begun[0].set_result(10)
        return begun[-1]

    results = in_order(Workers(submit, 3), times_ten, (1, 2, 3, 4))
    assert next(results) == 10
    results.close()
    assert [future.cancelled() for future in begun[1:]] == [True, True]


def test_what_a_task_raises_is_raised() -> None:
    """A harness that fails has found nothing out."""
    with pytest.raises(ValueError, match="nonsense"):
        list(in_order(here(), int, ["nonsense"]))
