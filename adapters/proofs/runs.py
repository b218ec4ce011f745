"""Runs many theorems in several processes; each answer comes as soon as it is there."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from functools import cache, partial
from multiprocessing import get_context
from typing import Final, TypeVar

from unswept.adapters.proofs import prover
from unswept.adapters.proofs.catalogue import theorems
from unswept.adapters.proofs.prover import Finding, Shown, Verdict
from unswept.spec.theorems.theorem import Theorem, by_name

T = TypeVar("T")

_NEEDED: Final = {
    "crosshair": "crosshair-tool",
    "sqlglot": "sqlglot",
    "psycopg_pool": "psycopg[binary,pool]",
}


def missing() -> tuple[str, ...]:
    """The packages that proving needs and that are not installed."""
    return tuple(
        package for module, package in _NEEDED.items() if importlib.util.find_spec(module) is None
    )


def prove_all(names: Iterable[str], workers: int) -> Iterator[tuple[str, Finding]]:
    """Each theorem's name and what became of it."""
    yield from _each(_prove, _stopped, names, workers)


def show_all(names: Iterable[str], workers: int) -> Iterator[tuple[str, Shown]]:
    """Each theorem's name, and what its witness and its twin came to."""
    yield from _each(_show, _both_stopped, names, workers)


def _each(
    run: Callable[[str], T],
    stopped: Callable[[Exception], T],
    names: Iterable[str],
    workers: int,
) -> Iterator[tuple[str, T]]:
    """Whatever stops a proof, also the end of its process, leaves it undetermined."""

    def outcome(result: Callable[[], T]) -> T:
        try:
            return result()
        except Exception as error:
            return stopped(error)

    if workers == 1:
        yield from ((name, outcome(partial(run, name))) for name in names)
        return
    # Spawned: a prover's state must not be copied into another process halfway.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        running: dict[Future[T], str] = {pool.submit(run, name): name for name in names}
        try:
            for future in as_completed(running):
                yield running[future], outcome(future.result)
        finally:
            pool.shutdown(cancel_futures=True)


def _prove(name: str) -> Finding:
    return prover.prove(_named()[name])


def _show(name: str) -> Shown:
    return prover.show(_named()[name])


def _stopped(error: Exception) -> Finding:
    return Finding(Verdict.UNDETERMINED, f"{type(error).__name__}: {error}", 0.0)


def _both_stopped(error: Exception) -> Shown:
    return Shown(_stopped(error), _stopped(error))


@cache
def _named() -> Mapping[str, Theorem]:
    return by_name(theorems())
