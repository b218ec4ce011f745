"""The ready views over the tables of traces: jobs, leases, heartbeats, sweeps, faults and events as
a reader thinks of them."""

from __future__ import annotations

from typing import Final

from unswept.adapters.traces.relations import Relation
from unswept.adapters.traces.tables import TABLES

_RUN: Final = {"seed": "the run"}
_COMMAND: Final = {
    **_RUN,
    "n": "the command's number",
    "at_ms": "true milliseconds since the run began",
    "store_at": "the store clock",
}

_OWN: Final = (
    Relation(
        "jobs",
        "A job of a run: how it came, how it stands at the end, and what it went through.",
        {
            **_RUN,
            "job": "its id",
            "status": "as it stood last",
            "owner": "as it stood last",
            "epoch": "as it stood last",
            "beats": "how often its deadline was stamped",
            "attempts": "how often it was begun",
            "transport": "process or http",
            "requeue": "may another instance run it again?",
            "on_orphan": "its policy",
            "born_by": "admit or enqueue",
            "born_ms": "true time of that",
            "started_ms": "true time at which it first ran",
            "orphaned": "how often it was swept",
            "healed": "how often it healed",
            "requeued": "how often it went back to the queue from there",
            "ended_ms": "true time at which it was over",
            "evicted_ms": "true time at which its row went",
        },
        """
        SELECT seed, job, last(after.status ORDER BY n, i) FILTER (after IS NOT NULL) AS status,
            last(after.owner ORDER BY n, i) FILTER (after IS NOT NULL) AS owner,
            max(after.epoch) AS epoch, max(after.beats) AS beats, max(after.attempts) AS attempts,
            first(after.transport) AS transport, first(after.requeue) AS requeue,
            first(after.on_orphan) AS on_orphan, first(transition ORDER BY n, i) AS born_by,
            min(at_ms) AS born_ms, min(at_ms) FILTER (after.status = 'running') AS started_ms,
            count(*) FILTER (transition = 'orphan') AS orphaned,
            count(*) FILTER (transition = 'heal') AS healed,
            count(*) FILTER (transition = 'requeue') AS requeued,
            min(at_ms) FILTER (
                after.status IN ('completed', 'failed', 'canceled', 'expired')) AS ended_ms,
            max(at_ms) FILTER (after IS NULL) AS evicted_ms
        FROM trace.changes GROUP BY seed, job ORDER BY seed, born_ms, job
        """,
    ),
    Relation(
        "leases",
        "The time for which one owner held one job under one epoch.",
        {
            **_RUN,
            "job": "the job",
            "epoch": "the epoch",
            "owner": "the instance",
            "from_ms": "true time of the grant",
            "until_ms": "true time at which it ended; null: it stood when the run ended",
            "ended_by": "the transition that ended it",
            "stamps": "how often its deadline was stamped",
            "ttl_ms": "the greatest ttl stamped",
            "first_deadline": "on the store clock",
            "last_deadline": "on the store clock",
        },
        """
        SELECT seed, job, after.epoch AS epoch, after.owner AS owner, min(at_ms) AS from_ms,
            last(next_ms ORDER BY n, i) AS until_ms,
            last(next_transition ORDER BY n, i) AS ended_by,
            count(*) FILTER (before.beats IS DISTINCT FROM after.beats) AS stamps,
            max(after.ttl_ms) AS ttl_ms, first(after.deadline ORDER BY n, i) AS first_deadline,
            last(after.deadline ORDER BY n, i) AS last_deadline
        FROM (
            SELECT *, lead(at_ms) OVER w AS next_ms, lead(transition) OVER w AS next_transition
            FROM trace.changes WINDOW w AS (PARTITION BY seed, job ORDER BY n, i))
        WHERE after.deadline IS NOT NULL GROUP BY ALL ORDER BY seed, from_ms, job
        """,
    ),
    Relation(
        "heartbeats",
        "A heartbeat that the store carried out, and what it answered.",
        {
            **_COMMAND,
            "instance": "whose",
            "holds": "how many holds it named",
            "renewed": "how many of them were renewed",
            "orphaned": "how many had been swept",
            "ended": "how many were absent, fenced or terminal",
            "registered": "does the store know this instance?",
        },
        """
        SELECT seed, n, at_ms, store_at, command ->> 'instance' AS instance,
            json_array_length(command, 'holds') AS holds,
            len(list_filter(said, lambda x: x = 'renewed')) AS renewed,
            len(list_filter(said, lambda x: x = 'orphaned')) AS orphaned,
            len(list_filter(said, lambda x: x IN ('absent', 'fenced', 'terminal'))) AS ended,
            CAST(answer ->> 'registered' AS BOOLEAN) AS registered
        FROM (SELECT *, answer ->> '$.answers[*].answer' AS said
              FROM trace.commands WHERE verb = 'Heartbeat')
        ORDER BY seed, n
        """,
    ),
    Relation(
        "sweeps",
        "A target of a sweep that the store carried out.",
        {
            **_COMMAND,
            "sweeper": "who sent it",
            "job": "the target",
            "epoch": "the stamp that the sweeper saw",
            "beats": "the stamp that the sweeper saw",
            "first_seen_at": "the store clock when it first saw the suspect",
            "refusal": "why nothing was swept; null: it was, now or before",
            "swept": "by this very command",
            "owner": "who held it",
            "deadline": "that was past",
            "becomes": "the job's status after the sweep",
        },
        """
        WITH targets AS (
            SELECT *, unnest(from_json(command -> 'targets', '[{"job_id": "VARCHAR",
                "epoch": "BIGINT", "beats": "BIGINT", "first_seen_at": "BIGINT"}]')) AS target,
                unnest(from_json(answer -> 'answers', '[{"refusal": "VARCHAR"}]')) AS said
            FROM trace.commands WHERE verb = 'Sweep'),
        swept AS (
            SELECT seed, n, job, first(before.owner ORDER BY i) AS owner,
                first(before.deadline ORDER BY i) AS deadline,
                last(after.status ORDER BY i) AS becomes
            FROM trace.changes WHERE verb = 'Sweep' GROUP BY ALL)
        SELECT t.seed, t.n, t.at_ms, t.store_at, t.command ->> 'sweeper' AS sweeper,
            target.job_id AS job, target.epoch AS epoch, target.beats AS beats,
            target.first_seen_at AS first_seen_at, said.refusal AS refusal,
            s.job IS NOT NULL AS swept, s.owner AS owner, s.deadline AS deadline,
            s.becomes AS becomes
        FROM targets t LEFT JOIN swept s
            ON s.seed = t.seed AND s.n = t.n AND s.job = target.job_id
        ORDER BY t.seed, t.n
        """,
    ),
    Relation(
        "faults",
        "A fault while it lasts; one that only strikes begins and ends at once.",
        {
            **_RUN,
            "name": "which",
            "target": "the instance or job that it befalls; null: all",
            "begin_ms": "true time",
            "end_ms": "true time; null: it lasted until the run ended",
            "ms": "of a step of the store clock: by how much",
        },
        """
        WITH numbered AS (
            SELECT *, row_number() OVER (
                PARTITION BY seed, name, target, event ORDER BY line) AS nth
            FROM trace.faults)
        SELECT b.seed, b.name, b.target, b.at_ms AS begin_ms,
            CASE WHEN b.event = 'strikes' THEN b.at_ms ELSE e.at_ms END AS end_ms, b.ms
        FROM numbered b LEFT JOIN numbered e
            ON e.event = 'ends' AND b.event = 'begins' AND e.seed = b.seed AND e.name = b.name
            AND e.target IS NOT DISTINCT FROM b.target AND e.nth = b.nth
        WHERE b.event <> 'ends' ORDER BY b.seed, begin_ms
        """,
    ),
    Relation(
        "events",
        "An event that a command left, with the status before and after, and who sent the command.",
        {
            **_COMMAND,
            "job": "the job",
            "epoch": "its epoch after the change",
            "kind": "what happened",
            "was": "the status before",
            "status": "the status after",
            "owner": "whose hold it was",
            "sender": "who sent the command",
            "verb": "the command",
            "beats": "the beats of the stamp that stood",
            "deadline": "the deadline before it",
            "cause": "of a sweep: why",
        },
        """
        SELECT e.seed, e.n, e.at_ms, e.store_at, e.job, e.epoch, e.kind, c.before.status AS was,
            e.status, e.owner, k.sender, k.verb, e.beats, e.deadline, e.cause
        FROM trace.events e JOIN trace.commands k ON k.seed = e.seed AND k.n = e.n
        LEFT JOIN trace.changes c ON c.seed = e.seed AND c.n = e.n AND c.job = e.job
            AND c.transition = e.kind
        ORDER BY e.seed, e.n, e.i
        """,
    ),
)

_TAKEN: Final = frozenset(view.name for view in _OWN)

VIEWS: Final = (
    *_OWN,
    *(
        Relation(table.name, table.sentence, table.columns, f"SELECT * FROM trace.{table.name}")
        for table in TABLES
        if table.name not in _TAKEN
    ),
)
"""All that a query may name: six views, and the tables that no view covers. A table that shares its
name with a view is behind it as `trace.NAME`."""
