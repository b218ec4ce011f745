"""The simulator on Postgres: in lockstep with the pure store."""

from __future__ import annotations

import psycopg

from unswept.adapters.urls import SimulatedStore
from unswept.simulations.campaign import run_seed
from unswept.simulations.run import Settings


def test_postgres_keeps_step(postgres_url: str) -> None:
    """Under faults every reply of Postgres equals the pure store's, and so do all rows at the end;
    nothing of the run is left on the server."""
    outcome = run_seed(Settings(2, hours=0.5), SimulatedStore(postgres_url))
    assert outcome.violation is None
    assert outcome.checked["LOCKSTEP"] > outcome.commands
    with psycopg.connect(postgres_url) as connection:
        left = connection.execute(
            "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'unswept\\_%\\_seed\\_2'"
        ).fetchone()
    assert left == (0,)
