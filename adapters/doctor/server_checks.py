"""What is asked of a Postgres server, by the settings that this database and role get."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Final

from unswept.adapters.doctor.check import Answer, Check, Verdict, judged
from unswept.adapters.doctor.postgres_look import PostgresLook
from unswept.adapters.doctor.store_checks import latency, schema_version, write_lock
from unswept.adapters.postgres.schema import OLDEST_SERVER
from unswept.adapters.sqlite.store import system_clock
from unswept.core.policy import LeasePolicy

MOST_APART_MS: Final = 1_000
"""How far the clocks may be apart before somebody who compares logs is misled."""


def version(look: PostgresLook, policy: LeasePolicy) -> Answer:
    """Is it new enough?"""
    ((number, said),) = look.rows(
        "SELECT current_setting('server_version_num')::int, current_setting('server_version')"
    )
    oldest = OLDEST_SERVER // 10_000
    return judged(
        Verdict.BAD if number < OLDEST_SERVER else None,
        f"Postgres {said}",
        f"{oldest} or newer",
        f"Upgrade the server to {oldest} or newer.",
    )


def writes(look: PostgresLook, policy: LeasePolicy) -> Answer:
    """Is it the primary, and does it take writes?"""
    ((standby, read_only),) = look.rows(
        "SELECT pg_is_in_recovery(), current_setting('default_transaction_read_only') = 'on'"
    )
    words = "a standby" if standby else "read-only" if read_only else "the primary, takes writes"
    return judged(
        Verdict.BAD if standby or read_only else None,
        words,
        "a primary that takes writes",
        "Name the primary: nobody can renew here."
        if standby
        else "default_transaction_read_only is on for the server, the database or this role.",
    )


def privileges(look: PostgresLook, policy: LeasePolicy) -> Answer:
    """May this role do what an instance does?"""
    rows = look.rows(
        "SELECT c.relname::text, wanted.name FROM pg_catalog.pg_class AS c"
        " JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace"
        " CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) AS wanted (name)"
        f" WHERE n.nspname = '{look.schema}' AND c.relkind = 'r' AND c.relname <> 'migrations'"
        " AND NOT has_table_privilege(c.oid, wanted.name) ORDER BY 1, 2"
    )
    missing = [f"{privilege} on {table}" for table, privilege in rows]
    return judged(
        Verdict.WARN if missing else None,
        f"{len(missing)} missing: {', '.join(missing[:3])}" if missing else "all",
        "SELECT, INSERT, UPDATE, DELETE on all tables",
        "An instance under this role could not work, and suspects, whose rows are locked to be"
        " looked at, cannot be read. Grant them, or ask as the role that the instances use.",
    )


def durability(look: PostgresLook, policy: LeasePolicy) -> Answer:
    """Does what was acknowledged survive a crash of the server?"""
    fsync, commit = (_setting(look, name) for name in ("fsync", "synchronous_commit"))
    verdict = Verdict.BAD if fsync == "off" else Verdict.WARN if commit == "off" else None
    return judged(
        verdict,
        f"fsync {fsync}, synchronous_commit {commit}",
        "fsync on, synchronous_commit not off",
        "Turn fsync on: a crash may damage the database."
        if fsync == "off"
        else "A crash may lose the last acknowledged writes, and so let an epoch come twice: turn"
        " synchronous_commit on for the instances' role.",
    )


def idle_transactions(look: PostgresLook, policy: LeasePolicy) -> Answer:
    """Can a stranger keep rows locked for as long as it likes?"""
    limit = _setting(look, "idle_in_transaction_session_timeout")
    return judged(
        Verdict.WARN if limit == "0" else None,
        f"idle_in_transaction_session_timeout {limit}",
        "a limit",
        "unswept limits its own. Set one for other programs that touch these tables: a row that"
        " one of them has locked can be neither renewed nor swept.",
    )


def autovacuum(look: PostgresLook, policy: LeasePolicy) -> Answer:
    """Are the old versions of rows that heartbeats leave behind taken away?"""
    found = _setting(look, "autovacuum")
    return judged(
        None if found == "on" else Verdict.WARN,
        f"autovacuum {found}",
        "on",
        "Turn it on: each heartbeat leaves an old version of its rows, and sweeps grow slow.",
    )


def clock(look: PostgresLook, policy: LeasePolicy) -> Answer:
    """How far is the store's clock from this machine's? No lease is decided by the latter."""
    began = perf_counter()
    before = system_clock()
    ((store,),) = look.rows("SELECT {0}now_ms()")
    trip = (perf_counter() - began) * 1000
    apart = store - (before + trip / 2)
    return judged(
        Verdict.WARN if abs(apart) > MOST_APART_MS + trip / 2 else None,
        f"{apart:+.0f} ms from this machine's, within {trip / 2:.0f} ms",
        f"at most {MOST_APART_MS} ms apart",
        "No lease depends on it, but logs of the two cannot be compared. Set the clock that is"
        " wrong; the store's own with care: a step makes all leases look lapsed.",
    )


CHECKS: Final[Sequence[Check[PostgresLook]]] = (
    Check("server", version),
    Check("writes", writes),
    Check("durability", durability),
    Check("idle transactions", idle_transactions),
    Check("autovacuum", autovacuum),
    Check("schema", schema_version),
    Check("privileges", privileges),
    Check("write lock", write_lock),
    Check("clock", clock),
    Check("latency", latency),
)


def _setting(look: PostgresLook, name: str) -> str:
    ((value,),) = look.rows(f"SELECT current_setting('{name}')")
    return str(value)
