"""The store on one SQLite file."""

from unswept.adapters.sqlite.opening import Durability
from unswept.adapters.sqlite.schema import schema_sql
from unswept.adapters.sqlite.store import SqliteStore, system_clock

__all__ = ["Durability", "SqliteStore", "schema_sql", "system_clock"]
