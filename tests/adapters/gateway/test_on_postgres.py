"""The same runtime on a real Postgres: nothing in it knows which store it has."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.adapters.gateway.helpers import eventually, find, policy, run, sh
from unswept.adapters.gateway import CancelVerdict, Gateway
from unswept.core import commands as c
from unswept.core.heart import Phase
from unswept.core.lease import Kind, Status

psycopg = pytest.importorskip("psycopg")
pytest.importorskip("psycopg_pool")

from unswept.adapters.postgres import PostgresStore  # noqa: E402


def test_two_instances_share_the_work(
    tmp_path: Path, postgres_url: str, postgres_schema: str
) -> None:
    """Joined across them, canceled from afar, read by either."""

    async def scenario() -> None:
        with PostgresStore(postgres_url, schema=postgres_schema) as store:
            async with (
                Gateway(store, policy=policy()) as one,
                Gateway(store, policy=policy()) as two,
            ):
                work = sh(f"echo x >> {tmp_path}/runs; echo done; sleep 0.5")
                jobs = await asyncio.gather(
                    *(each.submit(work, provider="shell") for each in (one, two, one, two))
                )
                assert len({job.id for job in jobs}) == 1
                assert (await two.wait(jobs[0].id)).status is Status.COMPLETED
                assert (await two.output(jobs[0].id)).stdout == "done\n"
                long = await one.submit(sh("sleep 100"), provider="shell")
                assert await two.cancel(long.id) is CancelVerdict.REQUESTED
                assert (await two.wait(long.id)).status is Status.CANCELED
        assert (tmp_path / "runs").read_text() == "x\n"

    run(scenario)


def test_connections_that_are_killed_lose_no_job(postgres_url: str, postgres_schema: str) -> None:
    """Again and again for longer than the ttl; then the hearts recover, and the job ends well."""

    async def scenario() -> None:
        with (
            PostgresStore(postgres_url, schema=postgres_schema) as store,
            PostgresStore(postgres_url, schema=postgres_schema) as other,
        ):
            async with Gateway(store, policy=policy()) as one, Gateway(other, policy=policy()):
                job = await one.submit(sh("sleep 5"), provider="shell")
                await eventually(lambda: find(store, job.id).job.lease.status is Status.RUNNING)
                with psycopg.connect(postgres_url, autocommit=True) as killer:
                    for _ in range(40):
                        killer.execute(
                            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                            " WHERE application_name = 'unswept' AND pid <> pg_backend_pid()"
                            " AND query LIKE %s",
                            [f"%{postgres_schema}%"],
                        )
                        await asyncio.sleep(0.05)
                await eventually(lambda: one.health().phase is Phase.STEADY)
                assert (await job.wait()).status is Status.COMPLETED
                events = store.execute(c.ReadEvents()).events
                assert Kind.ORPHAN not in [event.kind for event in events]

    run(scenario)
