"""Runs a campaign's seeds on a Dask cluster, in place of processes on this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from unswept.adapters.extras import need
from unswept.core.errors import MisuseError, UnsweptError
from unswept.simulations.workers import Future, Workers

TIMEOUT_S: Final[float] = 10
"""How long a scheduler may take to answer."""
_RUN_BY: Final = ("unswept.core", "unswept.spec", "unswept.simulations")


class ClusterError(UnsweptError):
    """The cluster cannot be reached, or its workers cannot run what they are sent."""


@contextmanager
def on_cluster(address: str) -> Iterator[Workers]:
    """The workers of the cluster whose scheduler is at `address`, like tcp://host:8786."""
    need("--scheduler needs Dask", "dask", "distributed")
    from distributed import Client

    try:
        client: Any = Client(  # type: ignore[no-untyped-call]
            address, timeout=TIMEOUT_S, set_as_default=False
        )
    except (OSError, TimeoutError) as error:
        raise ClusterError(
            f"the Dask scheduler at {address} did not answer within {TIMEOUT_S:g} s: {error}"
        ) from None
    except ValueError as error:
        raise MisuseError(f"--scheduler must be an address like tcp://host:8786: {error}") from None
    with client:
        at_once = _at_once(client, address)
        _check_code(client)
        yield Workers(_submit_to(client), at_once)


def _at_once(client: Any, address: str) -> int:
    threads = sum(client.nthreads().values())
    if not threads:
        raise ClusterError(f"the Dask scheduler at {address} has no workers")
    return int(threads)


def code() -> str:
    """A name for the code that runs a seed here: other code may give another run."""
    digest = blake2b(digest_size=8)
    digest.update(sys.version.split()[0].encode())
    for package in _RUN_BY:
        for folder in import_module(package).__path__:
            for file in sorted(Path(folder).glob("*.py")):
                digest.update(file.read_bytes())
    return digest.hexdigest()


def _check_code(client: Any) -> None:
    try:
        found = client.run(code)
    except Exception as error:  # whatever a worker raises, it cannot run a seed
        raise ClusterError(f"the cluster's workers cannot run unswept: {error!r}") from None
    others = sorted(worker for worker, name in found.items() if name != code())
    if others:
        raise ClusterError(
            f"these workers run another version of unswept or Python: {', '.join(others)}"
        )


def _submit_to(client: Any) -> Callable[[Callable[[Any], Any], Any], Future[Any]]:
    def submit(function: Callable[[Any], Any], task: Any) -> Future[Any]:
        # Two equal tasks are two runs: a result that Dask remembers would prove nothing.
        future: Future[Any] = client.submit(function, task, pure=False)
        return future

    return submit
