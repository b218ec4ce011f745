"""What the laws as SQL need beside a trace's tables: rows as they were before a command, the last
accepted stamps, the ids that had been used."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from unswept.core.lease import MOVES

_MOVES: Final = ", ".join(
    f"('{kind}', '{was}', '{now}', {move.epoch_step})"
    for kind, move in MOVES.items()
    for was in sorted(move.leaves)
    for now in sorted(move.reaches)
)

_TABLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        # A job's row from command `n` on, until command `next_n`; no row: it is gone.
        "versions": """
            SELECT seed, job, n, "row", lead(n) OVER (PARTITION BY seed, job ORDER BY n) AS next_n
            FROM (SELECT seed, job, n, last(after ORDER BY i) AS "row"
                  FROM trace.changes GROUP BY ALL)""",
        # Each command with the row, before it, of the job that it names.
        "named": """
            SELECT c.*, v."row" AS was
            FROM trace.commands c ASOF LEFT JOIN law.versions v
                ON v.seed = c.seed AND v.job = c.job AND c.n > v.n""",
        # How many rows each command changed, and how many of them were other jobs'.
        "touched": """
            SELECT h.seed, h.n, count(*) AS rows,
                count(*) FILTER (h.after IS NOT NULL AND h.job <> c.job) AS others
            FROM trace.changes h JOIN trace.commands c ON c.seed = h.seed AND c.n = h.n
            GROUP BY ALL""",
        # The first command that used each id.
        "used": """
            SELECT seed, job, min(n) AS n
            FROM (SELECT seed, n, unnest(used) AS job FROM trace.commands) GROUP BY ALL""",
        # Accepted grants, starts and renewals: when, and with which ttl.
        "stamps": """
            SELECT h.seed, h.job, h.n, h.after.epoch AS epoch, h.store_at AS at_store,
                CAST(c.command -> 'terms' ->> CASE
                    WHEN h.verb = 'Claim' THEN 'first_beat_ttl_ms'
                    WHEN h.after.transport = 'http' THEN 'http_grace_ms'
                    ELSE 'lease_ttl_ms' END AS BIGINT) AS ttl_ms
            FROM trace.changes h JOIN trace.commands c ON c.seed = h.seed AND c.n = h.n
            WHERE h.verb IN ('Admit', 'Claim', 'Start', 'Heartbeat') AND h.after IS NOT NULL
                AND h.before.beats IS DISTINCT FROM h.after.beats""",
        # Jobs that were orphaned.
        "orphaned": """
            SELECT * FROM trace.changes
            WHERE after.status = 'orphaned' AND before.status <> 'orphaned'""",
        # What a heartbeat was answered, hold by hold, with the row before it.
        "answers": """
            SELECT a.*, v."row" AS was
            FROM (SELECT *, coalesce(hold.job_id, said.job_id) AS job FROM (
                SELECT seed, n, store_at, command, command ->> 'instance' AS instance,
                    unnest(from_json(command -> 'holds',
                        '[{"job_id": "VARCHAR", "epoch": "BIGINT"}]')) AS hold,
                    unnest(from_json(answer -> 'answers', '[{"job_id": "VARCHAR",
                        "epoch": "BIGINT", "answer": "VARCHAR", "deadline": "BIGINT",
                        "cancel_requested_at": "BIGINT"}]')) AS said
                FROM trace.commands WHERE verb = 'Heartbeat')) a
            ASOF LEFT JOIN law.versions v ON v.seed = a.seed AND v.job = a.job AND a.n > v.n""",
        # Each event and its number; written again, it keeps that.
        "told": """
            SELECT *, row_number() OVER (PARTITION BY seed ORDER BY n, i) AS number
            FROM (SELECT seed, job, epoch, kind, min(n) AS n, arg_min(i, (n, i)) AS i
                  FROM trace.events GROUP BY seed, job, epoch, kind)""",
        # What each consumer was answered: `life` counts how often it was forgotten before.
        "answered": """
            SELECT *, count(*) FILTER (verb = 'ForgetConsumer' AND took) OVER (
                PARTITION BY seed, consumer ORDER BY n
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS life
            FROM (
                SELECT o.seed, o.n, o.store_at, o.verb, o.consumer, o."row", o.letters, k.answer,
                    (k.answer ->> 'type') <> 'Refused' AS took, k.command ->> 'holder' AS asker,
                    CAST(k.command ->> 'lease_ms' AS BIGINT) AS lease_ms,
                    CAST(k.command ->> 'token' AS BIGINT) AS token,
                    CAST(k.command ->> 'upto' AS BIGINT) AS upto,
                    CAST(k.command ->> 'last' AS BOOLEAN) AS last,
                    (k.command ->> 'error') IS NOT NULL AS gives_up,
                    CASE WHEN k.verb = 'LeaseEvents' THEN CAST(k.answer ->> 'token' AS BIGINT) END
                        AS granted
                FROM trace.outbox o JOIN trace.commands k ON k.seed = o.seed AND k.n = o.n
                WHERE o.consumer IS NOT NULL)""",
        # The same, with the consumer before it as the answers until then have it.
        "readers": """
            WITH came AS (
                SELECT *, coalesce(max(granted) OVER before, 0) AS token_was,
                    coalesce(max(upto) FILTER (took) OVER before, 0) AS position_was,
                    last_value(CASE WHEN took AND (granted IS NOT NULL OR last)
                        THEN {'name': asker} END IGNORE NULLS) OVER before AS holder_was,
                    coalesce(last_value(CASE WHEN granted IS NOT NULL THEN store_at + lease_ms END
                        IGNORE NULLS) OVER before, 0) AS expired_at
                FROM law.answered
                WINDOW before AS (PARTITION BY seed, consumer, life ORDER BY n
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)),
            moved AS (
                SELECT * REPLACE (holder_was.name AS holder_was),
                    coalesce(granted > token_was, false) AS anew,
                    coalesce(took AND upto > position_was, false) AS moves
                FROM came),
            stretched AS (
                SELECT *, count(*) FILTER (moves) OVER (PARTITION BY seed, consumer, life
                    ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS stretch
                FROM moved)
            SELECT *, count(*) FILTER (anew) OVER (PARTITION BY seed, consumer, life, stretch
                    ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS attempts_were,
                coalesce(holder_was IS NOT NULL AND store_at <= expired_at, false) AS alive
            FROM stretched""",
        # What each transition leaves, reaches, and does to the epoch.
        "moves": f'SELECT * FROM (VALUES {_MOVES}) AS m(kind, was, "now", epoch_step)',
    }
)
"""In the order in which they are made."""

PREPARATION: Final = (
    "CREATE SCHEMA IF NOT EXISTS law",
    "CREATE MACRO IF NOT EXISTS law.shown(x) AS coalesce(CAST(x AS VARCHAR), 'none')",
    *(f"CREATE TABLE IF NOT EXISTS law.{name} AS {sql}" for name, sql in _TABLES.items()),
)
"""What makes schema `law`; `shown` is for a value in a sentence, which one that is null would
swallow."""
