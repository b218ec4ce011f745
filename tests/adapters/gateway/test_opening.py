"""A gateway by URL, and without asyncio: the examples of the page."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from tests.adapters.gateway.helpers import policy, run, sh
from unswept.adapters.gateway import (
    Gateway,
    ProcessWork,
    SyncGateway,
    Ticket,
    load,
    open_gateway,
)
from unswept.adapters.gateway.errors import ConfigError, DrainingError
from unswept.adapters.gateway.opening import open_store
from unswept.adapters.sqlite import SqliteStore
from unswept.core.errors import MisuseError, StoreError
from unswept.core.lease import Status
from unswept.core.units import Ms


def test_a_gateway_is_opened_from_its_settings(tmp_path: Path) -> None:
    """Store included; and both are closed at the end, whatever was going on."""
    settings = load(environment={"UNSWEPT_STORE_URL": f"sqlite:{tmp_path}/a.db"}, folder=tmp_path)

    async def scenario() -> None:
        async with open_gateway(settings) as gateway:
            job = await gateway.submit(ProcessWork(argv=["echo", "hello"]), provider="shell")
            assert (await job.wait()).status is Status.COMPLETED
            assert (await job.output()).stdout == "hello\n"
        with pytest.raises(DrainingError):
            await job.snapshot()

    run(scenario)


def test_what_the_settings_warn_of_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Who starts a gateway need not have asked `check-config` before."""
    url = f"sqlite:{tmp_path}/a.db"
    given = {"UNSWEPT_STORE_URL": url, "UNSWEPT_HEARTBEAT_INTERVAL_MS": "40000"}
    settings = load(environment=given, folder=tmp_path)

    async def opened() -> None:
        async with open_gateway(settings):
            pass

    asyncio.run(opened())
    assert "lease_ttl_ms (90000) is under 3 x" in caplog.text


def test_a_gateway_without_its_store_is_no_gateway(tmp_path: Path) -> None:
    """None is configured, it cannot be opened, or nobody knows the URL. (F-12)"""

    async def opened(url: str) -> None:
        settings = load(environment={"UNSWEPT_STORE_URL": url}, folder=tmp_path)
        async with open_gateway(settings):
            raise AssertionError("it was opened")

    off = tmp_path / "config.toml"
    off.write_text("[persistence]\nbackend = 'none'\n")

    async def nothing() -> None:
        async with open_gateway(load(off, environment={})):
            raise AssertionError("it was opened")

    with pytest.raises(ConfigError, match="name no store"):
        asyncio.run(nothing())
    with pytest.raises(StoreError):
        asyncio.run(opened(f"sqlite:{tmp_path}/no/such/folder/a.db"))
    with (
        pytest.raises(MisuseError, match="expected sqlite:PATH or postgresql"),
        open_store("mysql://", Ms(1_000)),
    ):
        pass


def test_a_program_without_asyncio_runs_jobs_from_many_threads(tmp_path: Path) -> None:
    """Each call blocks its own thread only."""
    with SqliteStore(tmp_path / "a.db") as store, SyncGateway(store, policy=policy()) as gateway:
        ended: list[Status] = []

        def work(number: int) -> None:
            job = gateway.submit(sh(f"exit {number % 2}"), provider="shell", force_refresh=True)
            ended.append(gateway.wait(job.id).status)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(ended) == 4 * [Status.COMPLETED] + 4 * [Status.FAILED]
        ticket = gateway.submit(sh("sleep 100"), provider="shell")
        assert isinstance(ticket, Ticket)
        with pytest.raises(TimeoutError):
            gateway.wait(ticket.id, timeout_s=0.05)
        assert gateway.health().running == 1
        assert gateway.drain()
        assert gateway.drain()
        assert gateway.health().running == 0


def test_a_gateway_that_was_never_started_can_be_drained(tmp_path: Path) -> None:
    """Whatever failed before its start."""

    async def scenario() -> None:
        with SqliteStore(tmp_path / "a.db") as store:
            assert await Gateway(store, policy=policy()).drain()

    run(scenario)
