"""One runner process of the tests with real processes.

    python -m tests.adapters.runner.worker URL SCHEMA

Each job writes a line on the standard output when it begins, and sleeps for as many seconds as its
payload says; last comes what the drain that a signal asks for came to.
"""

from __future__ import annotations

import asyncio
import sys

from tests.adapters.gateway.helpers import policy
from tests.adapters.runner.helpers import POLLING
from unswept.adapters.runner import RunnerJob, open_runner


async def handle(job: RunnerJob) -> bytes:
    print(f"{job.id}/{job.epoch}", flush=True)
    await asyncio.sleep(float(job.payload))
    return b"done"


async def main(url: str, schema: str) -> None:
    async with open_runner(
        url, handle, schema=schema or None, policy=policy(), polling=POLLING, concurrency=2
    ) as runner:
        clean = await runner.run(finish_ms=2_000)
        print("clean" if clean else "not clean", flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
