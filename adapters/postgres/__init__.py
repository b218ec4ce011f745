"""The shared store: one Postgres schema for many instances on many machines."""

from unswept.adapters.postgres.aio import AsyncPostgresStore
from unswept.adapters.postgres.store import PostgresStore

__all__ = ["AsyncPostgresStore", "PostgresStore"]
