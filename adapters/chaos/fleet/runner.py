"""One runner process of a fleet's run: claims, works, writes down what it was told, until a signal.

Run as a program by `driver`, which gives it its charge on its input.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Final

from unswept.adapters.chaos.books import Notebook
from unswept.adapters.chaos.fleet.load import FAILS, LONG, LONG_MS, POLICY
from unswept.adapters.chaos.fleet.places import open_for
from unswept.adapters.chaos.fleet.records import Begun, Born, Done, Drained
from unswept.adapters.chaos.fleet.witness import witnessed
from unswept.adapters.chaos.worker import Charge, end_with
from unswept.adapters.runner import Retries, Runner, RunnerJob, Waker
from unswept.adapters.urls import is_postgres
from unswept.core.units import Ms

CONCURRENCY: Final = 16
FINISH_MS: Final = 500
DRAIN_MS: Final = 20_000
RETRIES: Final = Retries(max_attempts=1_000, first_pause_ms=Ms(200), factor=1.0)


async def run(charge: Charge) -> None:
    """Until a signal."""
    book = Notebook(Path(charge.book))

    async def handle(job: RunnerJob) -> bytes:
        book.write(Begun(job.id, job.epoch))
        if job.payload == LONG:
            await asyncio.sleep(LONG_MS / 1000)
        if job.payload == FAILS and job.attempts == 1:
            raise OSError("not at first")
        book.write(Done(job.id, job.epoch))
        return b"done"

    with open_for(charge) as store:
        runner = Runner(
            witnessed(store, book),
            handle,
            concurrency=CONCURRENCY,
            policy=POLICY,
            retries=RETRIES,
            waker=_ear(charge),
        )
        book.write(Born(runner.identity.instance))
        async with runner:
            clean = await runner.run(finish_ms=FINISH_MS, timeout_ms=DRAIN_MS)
        book.write(Drained(clean))


def _ear(charge: Charge) -> Waker | None:
    if not is_postgres(charge.url):
        return None
    from unswept.adapters.runner.listener import Listener

    assert charge.schema is not None
    return Listener(charge.url, schema=charge.schema)


if __name__ == "__main__":
    end_with(int(sys.argv[1]))
    asyncio.run(run(Charge(**json.loads(sys.stdin.readline()))))
