"""One gateway process of the tests with real processes.

    python -m tests.adapters.gateway.worker FOLDER

Each line on its standard input is a shell script to run; each line on its standard output is the
id of a job, in the same order, and last what the drain that a signal asks for came to.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.adapters.gateway.helpers import open_store, policy, sh
from unswept.adapters.gateway import Gateway, drain_when_signaled


async def main(folder: Path) -> None:
    with open_store(folder) as store:
        gateway = Gateway(store, policy=policy())
        await gateway.start()
        draining = asyncio.ensure_future(drain_when_signaled(gateway, finish_ms=2_000))
        reading = asyncio.ensure_future(run_scripts(gateway))
        clean = await draining
        reading.cancel()
        print("clean" if clean else "not clean", flush=True)


async def run_scripts(gateway: Gateway) -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    while line := await reader.readline():
        job = await gateway.submit(sh(line.decode()), provider="shell", force_refresh=True)
        print(job.id, flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
