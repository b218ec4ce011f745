"""Behind a real PgBouncer in transaction mode, where each transaction may have another session."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import psycopg
import pytest

from tests.adapters.postgres.helpers import PATIENCE_S, TERMS
from tests.postgres_server import running
from unswept.adapters.postgres import PostgresStore
from unswept.adapters.urls import SimulatedStore
from unswept.core import commands as c
from unswept.core.lease import Status
from unswept.core.replies import Answer
from unswept.simulations.campaign import run_seed
from unswept.simulations.run import Settings

PROGRAM: Final = shutil.which("pgbouncer")
SESSIONS: Final = 2
"""Of the server, for all clients together."""

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="PgBouncer is not installed")


@pytest.fixture(scope="module")
def pooled_url() -> Iterator[str]:
    """The server of this module's tests, through the pooler."""
    with (
        running() as server,
        tempfile.TemporaryDirectory(prefix="unswept-") as name,
    ):
        folder = Path(name)
        # On a socket file alone, the port is no more than a part of its name.
        config = folder / "pgbouncer.ini"
        config.write_text(
            f"""
            [databases]
            postgres = host={server.folder} dbname=postgres user=postgres
            [pgbouncer]
            listen_addr =
            listen_port = 6432
            unix_socket_dir = {folder}
            auth_type = any
            pool_mode = transaction
            default_pool_size = {SESSIONS}
            ignore_startup_parameters = options
            """.replace("            ", "")
        )
        command = [str(PROGRAM), str(config)]
        if os.geteuid() == 0:  # which it refuses to run as
            shutil.chown(folder, "nobody")
            command[1:1] = ["-u", "nobody"]
        url = f"postgresql://postgres@/postgres?host={folder}&port=6432"
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _wait_for(url)
            yield url
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def _wait_for(url: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            return psycopg.connect(url).close()
        except psycopg.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


def test_naive_prepared_statements_clash(pooled_url: str) -> None:
    """What psycopg prepares by itself belongs to a session, which the next transaction may lack:
    so the pooler of these tests is one that would show it. (C83)"""
    with (
        psycopg.connect(pooled_url, autocommit=True, prepare_threshold=0) as one,
        psycopg.connect(pooled_url, autocommit=True, prepare_threshold=0) as other,
    ):
        one.execute("SELECT 1")
        with pytest.raises(psycopg.errors.DuplicatePreparedStatement):
            other.execute("SELECT 1")


def test_a_store_behind_pgbouncer_keeps_step(pooled_url: str) -> None:
    """Under faults every reply equals the pure store's. (C83)"""
    outcome = run_seed(Settings(2, hours=0.1), SimulatedStore(pooled_url))
    assert outcome.violation is None
    assert outcome.checked["LOCKSTEP"] > outcome.commands


def test_more_clients_than_sessions_are_all_served(pooled_url: str) -> None:
    """Heartbeats too, beside commands that use up the sessions. (C42, C83)"""
    with PostgresStore(pooled_url, schema="unswept_pooled", max_connections=4) as store:

        def life(number: int) -> Answer:
            job_id = f"j{number}"
            store.execute(c.Admit(job_id, "a", TERMS))
            store.execute(c.Start(job_id, "a", 1, TERMS))
            beaten = store.execute(c.Heartbeat("a", TERMS, (c.Hold(job_id, 1),)))
            store.execute(c.Complete(job_id, "a", 1, Status.COMPLETED))
            return beaten.answers[0].answer

        with ThreadPoolExecutor(2 * SESSIONS + 2) as threads:
            assert set(threads.map(life, range(30))) == {Answer.RENEWED}
        ended = [
            event for event in store.execute(c.ReadEvents()).events if event.kind == "complete"
        ]
        assert len(ended) == 30
