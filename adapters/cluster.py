"""Runs a campaign's seeds on a Dask cluster, in place of processes on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from unswept.core.errors import MisuseError, UnsweptError
from unswept.simulations.workers import Future, Workers

TIMEOUT_S: Final = 10
"""How long a scheduler may take to answer."""


class ClusterError(UnsweptError):
    """The cluster cannot be reached, or its workers cannot run what they are sent."""


@contextmanager
def on_cluster(address: str, timeout_s: float = TIMEOUT_S) -> Iterator[Workers]:
    """The workers of the cluster whose scheduler is at `address`, like tcp://host:8786."""
    try:
        from distributed import Client
    except ImportError as error:
        raise MisuseError(
            f"--scheduler needs Dask: pip install 'unswept[dask]' ({error})"
        ) from None
    try:
        client: Any = Client(  # type: ignore[no-untyped-call]
            address, timeout=timeout_s, set_as_default=False
        )
    except (OSError, TimeoutError) as error:
        raise ClusterError(
            f"the Dask scheduler at {address} did not answer within {timeout_s:g} s: {error}"
        ) from None
    except ValueError as error:
        raise MisuseError(f"--scheduler must be an address like tcp://host:8786: {error}") from None
    with client:
        yield Workers(_submit_to(client), _at_once(client, address))


def _at_once(client: Any, address: str) -> int:
    threads = sum(client.nthreads().values())
    if not threads:
        raise ClusterError(f"the Dask scheduler at {address} has no workers")
    return int(threads)


def _submit_to(client: Any) -> Callable[[Callable[[Any], Any], Any], Future[Any]]:
    def submit(function: Callable[[Any], Any], task: Any) -> Future[Any]:
        # Two equal tasks are two runs: a result that Dask remembers would prove nothing.
        future: Future[Any] = client.submit(function, task, pure=False)
        return future

    return submit
