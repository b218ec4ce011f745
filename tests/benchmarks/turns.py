"""How benchmarks compare: the store and the plain alternative take turns in one run."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

from pytest_benchmark.fixture import BenchmarkFixture


def taking_turns(
    benchmark: BenchmarkFixture,
    plain: Callable[[], None],
    store: Callable[[], None],
    rounds: int,
    prepare: Callable[[], None] = lambda: None,
) -> float:
    """The plain alternative's median time over the store's: 1 is as fast as the alternative.

    They take turns, so that whatever else the machine does slows both.
    """
    times: dict[str, list[float]] = {"plain": [], "store": []}
    for _ in range(rounds):
        for name, work in (("plain", plain), ("store", store)):
            prepare()
            begin = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - begin)
    prepare()
    benchmark.pedantic(store, rounds=1)  # type: ignore[no-untyped-call]
    ratio = median(times["plain"]) / median(times["store"])
    benchmark.extra_info["ratio"] = round(ratio, 2)
    print(
        f"\n{benchmark.name}: plain {median(times['plain']) * 1000:.2f} ms,"
        f" store {median(times['store']) * 1000:.2f} ms, ratio {ratio:.2f}"
    )
    return ratio
