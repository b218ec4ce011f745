"""The process that beats while an extension keeps the interpreter lock. (C32)"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.adapters.gateway.helpers import (
    PATIENCE_S,
    environment,
    eventually,
    find,
    open_store,
    policy,
    run,
    sh,
)
from unswept.adapters.gateway import Gateway, evidence
from unswept.adapters.gateway.guard import Charge
from unswept.adapters.gateway.guard_process import Watch
from unswept.core import commands as c
from unswept.core.commands import Hold
from unswept.core.errors import MisuseError
from unswept.core.lease import Status
from unswept.core.units import MonoMs, Ms


def test_an_extension_that_keeps_the_interpreter_lock_loses_no_job(tmp_path: Path) -> None:
    """No thread of this process runs for three ttls; the guard beats for the job's process."""

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            url = f"sqlite:{tmp_path}/jobs.db"
            async with Gateway(store, policy=policy(), guard_url=url) as gateway:
                job = await gateway.submit(sh("sleep 100"), provider="shell")
                await eventually(lambda: find(store, job.id).job.lease.status is Status.RUNNING)
                await eventually(lambda: any(map(has_store_open, guards_of(os.getpid()))))
                before = find(store, job.id).job.lease.beats
                # PyDLL keeps the lock while it calls; CDLL would let go of it.
                stood_still = time.monotonic()
                ctypes.PyDLL(None).usleep(3 * policy().lease_ttl_ms * 1000)
                assert time.monotonic() - stood_still > 4
                job_then = find(store, job.id).job
                assert job_then.lease.beats >= before + 3
                assert job_then.beat_at is not None
        assert guards_of(os.getpid()) == []

    run(scenario)


def test_a_guard_ends_with_its_gateway(tmp_path: Path) -> None:
    """However that ends: a guard of its own would keep the jobs of a dead gateway alive."""
    script = f"""
import asyncio, os
from tests.adapters.gateway.helpers import open_store, policy
from unswept.adapters.gateway import Gateway
from pathlib import Path
async def main():
    gateway = Gateway(open_store(Path({str(tmp_path)!r})), policy=policy(),
                      guard_url="sqlite:{tmp_path}/jobs.db")
    await gateway.start()
    print(os.getpid(), flush=True)
    await asyncio.sleep(100)
asyncio.run(main())
"""
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
        cwd=Path(__file__).parents[3],
    ) as gateway:
        assert gateway.stdout is not None
        pid = int(gateway.stdout.readline())
        [guard] = guards_of(pid)
        gateway.kill()
    give_up_at = time.monotonic() + PATIENCE_S
    while evidence.process_of(guard) is not None:
        assert time.monotonic() < give_up_at
        time.sleep(0.02)


def test_a_guard_that_dies_is_noticed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """The gateway goes on without it, and says so; nothing of it is left."""

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            url = f"sqlite:{tmp_path}/jobs.db"
            async with Gateway(store, policy=policy(), guard_url=url) as gateway:
                assert gateway.health().guarded is True
                [guard] = guards_of(os.getpid())
                os.kill(guard, signal.SIGKILL)
                await eventually(lambda: gateway.health().guarded is False)
                await eventually(lambda: not Path(f"/proc/{guard}").exists())
                job = await gateway.submit(sh("true"), provider="shell")
                assert (await job.wait()).status is Status.COMPLETED

    run(scenario)
    assert "the guard has ended" in caplog.text
    assert "Traceback" not in capfd.readouterr().err


def test_a_guard_without_a_store_says_why(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """In a line; and what no store can be opened by is refused before."""

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            with pytest.raises(MisuseError, match="expected sqlite:PATH or postgresql"):
                Gateway(store, policy=policy(), guard_url="foo:bar")
            url = f"sqlite:{tmp_path}/nowhere/jobs.db"
            async with Gateway(store, policy=policy(), guard_url=url) as gateway:
                await eventually(lambda: gateway.health().guarded is False)
        assert guards_of(os.getpid()) == []

    run(scenario)
    [line] = capfd.readouterr().err.splitlines()
    assert line.startswith("unswept: the guard ends: ")


def test_a_guard_is_silent_while_the_gateway_beats() -> None:
    """And vouches for a process as long as it lives, for other holds until the stall limit."""
    settings = policy()
    charge = Charge("", "me", settings.terms(), Ms(200), Ms(150), Ms(3_000))
    watch = Watch(charge, MonoMs(0))
    mine = evidence.process_of(os.getpid())
    assert mine is not None
    gone = {"pid": mine.pid, "start": mine.start + 1, "boot_id": mine.boot_id}
    living = {"pid": mine.pid, "start": mine.start, "boot_id": mine.boot_id}
    watch.hear({"hold": "call", "epoch": 1, "process": None}, MonoMs(0))
    watch.hear({"hold": "living", "epoch": 1, "process": living}, MonoMs(0))
    watch.hear({"hold": "dead", "epoch": 1, "process": gone}, MonoMs(0))
    watch.hear({"hold": "over", "epoch": 1, "process": None}, MonoMs(0))
    watch.hear({"end": "over"}, MonoMs(0))
    assert watch.due_at() == 400
    watch.hear({"stalled_ms": 1_000}, MonoMs(300))
    assert watch.due_at() == 700
    assert {hold.job_id for hold in watch.beat(MonoMs(700)).holds} == {"call", "living", "dead"}
    assert watch.due_at() == 1_100
    watch.failed()
    assert watch.due_at() == 900
    assert watch.beat(MonoMs(2_301)).holds == (Hold("living", 1),)
    watch.ended("living")
    assert watch.beat(MonoMs(2_600)) == c.Heartbeat("me", settings.terms())


def has_store_open(pid: int) -> bool:
    try:
        return any(os.readlink(fd).endswith("jobs.db") for fd in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def guards_of(pid: int) -> list[int]:
    """The guards among the children of a process."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            parent = int(each.joinpath("stat").read_text().rpartition(")")[2].split()[1])
            command = each.joinpath("cmdline").read_bytes()
        except OSError:
            continue
        if parent == pid and b"unswept.adapters.gateway.guard_process" in command:
            found.append(int(each.name))
    return found
