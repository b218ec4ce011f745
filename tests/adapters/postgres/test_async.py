"""The asynchronous store drives the same scripts; its own is how it waits, fails and stops."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import pytest

from tests.adapters.postgres.conftest import Connect
from tests.adapters.postgres.helpers import PATIENT_MS, TERMS, Observer, Session
from tests.postgres_server import PostgresServer
from unswept.adapters.postgres import AsyncPostgresStore
from unswept.core import commands as c
from unswept.core.errors import OutcomeUnknownError, StoreReadOnlyError, StoreUnavailableError
from unswept.core.lease import Kind, Status
from unswept.core.replies import Accepted, Answer, Found

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


async def until_waits(observer: Observer, holder: Session) -> list[int]:
    """The backends that wait for `holder`, as soon as there are any."""
    while True:
        waiting = observer.waiting_for(holder) or observer.pausing()
        if waiting:
            return waiting
        await asyncio.sleep(0.005)


async def status_of(store: AsyncPostgresStore, job_id: str) -> Status:
    found = await store.execute(c.Find(job_id))
    assert isinstance(found, Found)
    return found.job.lease.status


@pytest.fixture
def stranger(connect: Connect) -> Session:
    return connect()


def test_one_row_that_is_locked_makes_one_hold_busy(
    postgres_url: str, postgres_schema: str, stranger: Session
) -> None:
    """The others are renewed in the same beat, and commands go on beside it. (L8)"""

    async def story() -> None:
        async with AsyncPostgresStore(
            postgres_url, schema=postgres_schema, operation_timeout_ms=800
        ) as store:
            for job_id in "jk":
                await store.execute(c.Admit(job_id, "a", TERMS))
            stranger.begin()
            stranger.run(f"SELECT FROM {postgres_schema}.jobs WHERE id = 'j' FOR UPDATE")
            beat = c.Heartbeat("a", TERMS, (c.Hold("j", 1), c.Hold("k", 1)))
            beaten, started = await asyncio.gather(
                store.execute(beat), store.execute(c.Start("k", "a", 1, TERMS))
            )
            assert isinstance(started, Accepted)
            assert [each.answer for each in beaten.answers] == [Answer.BUSY, Answer.RENEWED]
            with pytest.raises(StoreUnavailableError):
                await store.execute(c.Start("j", "a", 1, TERMS))
            stranger.rollback()
            beaten = await store.execute(beat)
            assert [each.answer for each in beaten.answers] == [Answer.RENEWED, Answer.RENEWED]

    run(story())


def test_a_backend_that_is_killed_before_its_commit_costs_nothing(
    postgres_url: str, postgres_schema: str, stranger: Session, observer: Observer
) -> None:
    """The command is carried out anew, on another connection."""

    async def story() -> None:
        async with AsyncPostgresStore(
            postgres_url, schema=postgres_schema, operation_timeout_ms=PATIENT_MS
        ) as store:
            await store.execute(c.Admit("j", "a", TERMS))
            stranger.begin()
            stranger.run(f"SELECT FROM {postgres_schema}.jobs FOR UPDATE")
            starting = asyncio.create_task(execute(store, c.Start("j", "a", 1, TERMS)))
            (pid,) = await until_waits(observer, stranger)
            observer.session.run("SELECT pg_terminate_backend(%(pid)s)", pid=pid)
            while pid in observer.waiting_for(stranger):
                await asyncio.sleep(0.005)
            await until_waits(observer, stranger)
            stranger.rollback()
            done = await starting
            assert isinstance(done, Accepted)
            assert done.transition is Kind.START

    run(story())


async def execute(store: AsyncPostgresStore, command: c.Command[T]) -> T:
    return await store.execute(command)


def test_a_caller_that_gives_up_leaves_the_store_usable(
    postgres_url: str, postgres_schema: str, stranger: Session, observer: Observer
) -> None:
    """A task that is cancelled while its command waits ends at once; the command takes no effect
    later, and its connection, of which there is one, serves the next."""

    async def story() -> None:
        async with AsyncPostgresStore(
            postgres_url,
            schema=postgres_schema,
            operation_timeout_ms=PATIENT_MS,
            max_connections=1,
        ) as store:
            await store.execute(c.Admit("j", "a", TERMS))
            commands: list[c.Command[Any]] = [
                c.Start("j", "a", 1, TERMS),
                c.Heartbeat("a", TERMS, (c.Hold("j", 1),)),
            ]
            for command in commands:
                for _ in range(3):
                    stranger.begin()
                    stranger.run(f"SELECT FROM {postgres_schema}.jobs FOR UPDATE")
                    asked = asyncio.create_task(execute(store, command))
                    await until_waits(observer, stranger)
                    asked.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await asyncio.wait_for(asked, 20)
                    stranger.rollback()
                    assert await status_of(store, "j") is Status.QUEUED
            beaten = await store.execute(c.Heartbeat("a", TERMS, (c.Hold("j", 1),)))
            assert beaten.answers[0].answer is Answer.RENEWED
            done = await store.execute(c.Start("j", "a", 1, TERMS))
            assert isinstance(done, Accepted)
            assert done.standing.beats == 3

    run(story())


def test_a_server_that_restarts_and_then_only_reads(own_server: PostgresServer) -> None:
    """The store goes on by itself, and says what a replica refuses."""

    async def story() -> None:
        async with AsyncPostgresStore(own_server.url, operation_timeout_ms=500) as store:
            await store.execute(c.Admit("j", "a", TERMS))
            own_server.stop(crash=True)
            for command in (c.Find("j"), c.Heartbeat("a", TERMS, (c.Hold("j", 1),))):
                with pytest.raises(StoreUnavailableError):
                    await store.execute(command)
            own_server.start()
            beaten = await repeated(lambda: store.execute(c.Heartbeat("a", TERMS)))
            assert beaten.answers == ()
            own_server.stop()
            own_server.start(standby=True)
            found = await repeated(lambda: store.execute(c.Find("j")))
            assert isinstance(found, Found)
            with pytest.raises(StoreReadOnlyError):
                await store.execute(c.Heartbeat("a", TERMS, (c.Hold("j", 1),)))

    run(story())


async def repeated(ask: Callable[[], Awaitable[T]]) -> T:
    """Asks again, as a runtime does, while the server is out of reach."""
    while True:
        try:
            return await ask()
        except (StoreUnavailableError, OutcomeUnknownError):
            await asyncio.sleep(0.05)
