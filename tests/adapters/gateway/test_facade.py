"""The gateway for programs without asyncio: any number of threads, also at its end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.adapters.gateway.helpers import PATIENCE_S, Faulty, open_store, policy, sh
from unswept.adapters.gateway import DrainingError, Gateway, SyncGateway
from unswept.core import commands as c
from unswept.core.errors import MisuseError


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Faulty]:
    with open_store(tmp_path) as real:
        yield Faulty(real)


def test_all_that_drain_at_once_get_the_same_verdict(store: Faulty) -> None:
    """The first drains, the others wait for it; and again there is nothing to do."""
    gateway = SyncGateway(store, policy=policy())
    gateway.submit(sh("sleep 100"), provider="shell")
    with ThreadPoolExecutor(6) as threads:
        drains = [threads.submit(gateway.drain) for _ in range(6)]
        assert [drain.result(PATIENCE_S) for drain in drains] == [True] * 6
    assert gateway.drain()
    assert store.count(c.Deregister) == 1


def test_who_waits_when_the_loop_ends_is_told(store: Faulty) -> None:
    """And so is whoever asks anything afterwards: nobody waits for ever."""
    gateway = SyncGateway(store, policy=policy())
    job = gateway.submit(sh("sleep 100"), provider="shell")
    store.down = (c.Find, c.Complete)  # the end can neither be written nor read
    with ThreadPoolExecutor(2) as threads:
        waits = [threads.submit(gateway.wait, job.id) for _ in range(2)]
        assert not gateway.drain(timeout_ms=300)
        for wait in waits:
            with pytest.raises(DrainingError):
                wait.result(PATIENCE_S)
    for ask in (
        lambda: gateway.submit(sh("true"), provider="shell"),
        lambda: gateway.snapshot(job.id),
        lambda: gateway.wait(job.id),
        lambda: gateway.cancel(job.id),
    ):
        with pytest.raises(DrainingError, match="has been drained"):
            ask()
    assert not gateway.drain()


def test_a_gateway_stays_on_its_own_loop(store: Faulty) -> None:
    """A job that another loop began could be beaten for by nobody's task, for ever."""

    async def elsewhere(gateway: Gateway) -> None:
        for ask in (
            gateway.submit(sh("true"), provider="shell"),
            gateway.wait("job"),
            gateway.cancel("job"),
            gateway.drain(),
            gateway.slot("shell").__aenter__(),
        ):
            with pytest.raises(MisuseError, match="the event loop on which this gateway was made"):
                await ask

    async def scenario() -> None:
        async with Gateway(store, policy=policy()) as gateway:
            await asyncio.to_thread(lambda: asyncio.run(elsewhere(gateway)))
            assert gateway.health().held == 0
        assert store.count(c.Admit) == 0

    asyncio.run(scenario())
