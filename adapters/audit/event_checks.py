"""What the events alone can show, law by law.

Each event stands beside the one before it of the same job; see `unswept.adapters.audit.history`.
A store clock that was set back makes times fall: no check takes that for an offence.
"""

from __future__ import annotations

from typing import Final

from unswept.adapters.audit.check import Check

_STEP: Final = "job_id, [p_seq, seq]"
"""Two events in a row show it."""
_WENT: Final = "'went from ' || p_status || ', epoch ' || p_epoch || ', to '"
_TO: Final = "coalesce(status, 'an unknown status') || ', epoch ' || epoch || ', by ' || kind"
_FOLLOWS: Final = "p_seq IS NOT NULL AND p_kind <> 'evict' AND kind NOT IN ('admit', 'enqueue')"
_ALIVE: Final = f"{_FOLLOWS} AND NOT terminal(p_status)"
"""Of what follows an end or an eviction other checks speak."""
_DELAYS: Final = "SELECT * FROM moves WHERE kind = 'delay'"

EVENT_CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "L1",
        "each sweep against the last stamp of the owner's: the deadline before the sweep, or before"
        " the delay where process evidence had stamped it once more",
        f"""
        SELECT o.job_id, [d.seq, o.seq],
            'was orphaned at ' || o.at_ms || ', and its owner''s lease ran to '
            || coalesce(d.deadline, o.deadline)
        FROM moves AS o LEFT JOIN ({_DELAYS}) AS d
            ON d.job_id = o.job_id AND d.epoch = o.epoch AND d.beats = o.beats
        WHERE o.kind = 'orphan' AND o.at_ms <= coalesce(d.deadline, o.deadline)
        """,
    ),
    Check(
        "L2",
        "each sweep against its own event: the job had a deadline (after a delay: one that was"
        " past), and bore no older beat than the event before",
        f"""
        SELECT o.job_id, [o.p_seq, o.seq],
            CASE WHEN o.deadline IS NULL THEN 'was orphaned and had no deadline'
                WHEN o.beats < o.p_beats THEN 'was orphaned at beat ' || o.beats
                    || ', and had reached beat ' || o.p_beats
                ELSE 'was orphaned at ' || o.at_ms || ', its deadline was ' || o.deadline END
        FROM moves AS o
        WHERE o.kind = 'orphan' AND (o.deadline IS NULL OR o.beats < o.p_beats
            OR (o.at_ms <= o.deadline AND EXISTS (
                FROM ({_DELAYS}) AS d
                WHERE d.job_id = o.job_id AND d.epoch = o.epoch AND d.beats = o.beats)))
        """,
    ),
    Check(
        "L3",
        "the epoch of each event against that of the one before",
        f"SELECT {_STEP}, {_WENT} || {_TO} FROM moves WHERE epoch < p_epoch AND {_ALIVE}",
    ),
    Check(
        "L3",
        "each event's owner against whoever held the job, and what only a holder may do",
        f"""
        SELECT {_STEP},
            CASE WHEN owner IS DISTINCT FROM holder
                THEN 'was held by ' || coalesce(holder, 'nobody') || ', and the event of its '
                    || kind || ' says ' || coalesce(owner, 'nobody')
                WHEN holder IS NULL THEN 'was nobody''s, and left the event of a ' || kind
                WHEN kind = 'expire' OR kind = 'cancel'
                THEN 'was held by ' || holder || ', and left the event of a ' || kind
                ELSE 'was held by ' || holder || ', and ' || actor || ' did the ' || kind END
        FROM moves
        WHERE {_ALIVE} AND kind NOT IN ('admit', 'enqueue', 'claim', 'evict') AND (
            owner IS DISTINCT FROM holder
            OR (holder IS NULL AND kind IN
                ('start', 'complete', 'heal', 'release', 'orphan', 'delay', 'withdraw'))
            OR (holder IS NOT NULL AND p_status IN ('queued', 'running')
                AND kind IN ('expire', 'cancel'))
            OR (actor <> holder AND kind IN ('start', 'complete', 'heal', 'release', 'withdraw')))
        """,
    ),
    Check(
        "L3",
        "each late result against the epochs that the job had reached",
        """
        SELECT l.job_id, [l.seq],
            'left the event of a late result of epoch ' || l.epoch
            || ', and had not gone beyond it'
        FROM events AS l
        WHERE l.kind = 'stale_result' AND NOT EXISTS (
            FROM moves AS m WHERE m.job_id = l.job_id AND m.seq < l.seq AND m.epoch > l.epoch)
        """,
    ),
    Check(
        "L4",
        "what follows the end of a job, and what an orphan became",
        f"""
        SELECT {_STEP}, {_WENT} || {_TO} FROM moves
        WHERE {_FOLLOWS} AND kind <> 'evict' AND (terminal(p_status)
            OR (p_status = 'orphaned' AND kind NOT IN ('heal', 'requeue', 'settle', 'cancel')))
        """,
    ),
    Check(
        "L5",
        "the first event of each job: an admit or an enqueue, in its status and epoch",
        """
        SELECT job_id, [seq], 'begins with the event of a ' || kind || ', as ' || status
            || ' in epoch ' || epoch || ' of ' || coalesce(owner, 'nobody')
        FROM moves
        WHERE p_seq IS NULL AND NOT (status = 'queued' AND (
            (kind = 'admit' AND epoch = 1 AND owner IS NOT NULL)
            OR (kind = 'enqueue' AND epoch = 0 AND owner IS NULL)))
        """,
    ),
    Check(
        "L5",
        "each event against the one before, by the core's table of moves: a step that the table"
        " has not is a change without its event, or an event without its change",
        f"""
        SELECT {_STEP}, {_WENT} || {_TO}
        FROM moves JOIN table_of_moves AS t USING (kind)
        WHERE {_FOLLOWS} AND epoch >= p_epoch AND NOT terminal(p_status)
            AND NOT (p_status = 'orphaned' AND kind NOT IN ('heal', 'requeue', 'settle', 'cancel'))
            AND kind <> 'evict' AND NOT (
                epoch = p_epoch + t.epoch_step AND list_contains(t.leaves, p_status)
                AND list_contains(t.reaches, status)
                AND (status = p_status OR kind NOT IN ('delay', 'request_cancel')))
        """,
    ),
    Check(
        "L5",
        "what follows an eviction",
        """
        SELECT job_id, [p_seq, seq], 'was evicted, and left the event of a ' || kind FROM moves
        WHERE p_kind = 'evict' AND kind NOT IN ('admit', 'enqueue', 'evict')
        UNION ALL
        SELECT l.job_id, [e.seq, l.seq], 'was evicted, and left the event of a late result'
        FROM events AS l JOIN moves AS e
            ON e.job_id = l.job_id AND e.kind = 'evict' AND e.seq < l.seq
        WHERE l.kind = 'stale_result'
        UNION ALL
        SELECT job_id, [p_seq, seq], 'was evicted in epoch ' || p_epoch || ' as ' || p_status
            || ', and its event says ' || epoch || ', ' || status
        FROM moves
        WHERE kind = 'evict' AND p_kind <> 'evict' AND terminal(p_status)
            AND (epoch <> p_epoch OR status <> p_status)
        """,
    ),
    Check(
        "L5",
        "how often a late result or an eviction was told",
        """
        SELECT job_id, list(seq ORDER BY seq), 'left the event of a ' || kind || ', epoch ' || epoch
            || ', ' || count(*) || ' times'
        FROM events WHERE kind IN ('stale_result', 'evict')
        GROUP BY job_id, epoch, kind HAVING count(*) > 1
        """,
    ),
    Check(
        "L6",
        "how often a job was born",
        f"""
        SELECT {_STEP}, 'had been used, and was born again by an ' || kind
        FROM moves WHERE p_seq IS NOT NULL AND kind IN ('admit', 'enqueue')
        """,
    ),
    Check(
        "L7",
        "what followed a cancel request: no start, no claim, no way back to the queue, and no"
        " second request",
        """
        SELECT m.job_id, [a.seq, m.seq], 'was asked to end at ' || a.at_ms || ', and left the '
            || 'event of a ' || m.kind || ' to ' || m.status
        FROM moves AS m JOIN asked AS a ON a.job_id = m.job_id AND a.seq < m.seq
        WHERE m.kind IN ('start', 'claim', 'request_cancel')
            OR (m.kind IN ('release', 'requeue') AND m.status = 'queued')
        """,
    ),
    Check(
        "L7",
        "each cancel request against whoever held the job: nobody's is canceled at once",
        f"""
        SELECT {_STEP}, 'was nobody''s as it was asked to end, and was not canceled' FROM moves
        WHERE kind = 'request_cancel' AND {_FOLLOWS} AND holder IS NULL AND p_status = 'queued'
        """,
    ),
    Check(
        "L9",
        "each delay: of a suspect, once in an epoch",
        f"""
        SELECT {_STEP}, 'was delayed at ' || at_ms || ', its deadline was '
            || coalesce(deadline::VARCHAR, 'not set')
        FROM moves WHERE kind = 'delay' AND coalesce(at_ms <= deadline, true)
        UNION ALL
        SELECT job_id, list(seq ORDER BY seq), 'was delayed ' || count(*) || ' times in epoch '
            || epoch
        FROM moves WHERE kind = 'delay' GROUP BY job_id, epoch HAVING count(*) > 1
        """,
    ),
    Check(
        "L9",
        "the deadline that a delay stamped against the one before it",
        f"""
        SELECT o.job_id, [d.seq, o.seq], 'was delayed from ' || d.deadline || ' to ' || o.deadline
        FROM moves AS o JOIN ({_DELAYS}) AS d
            ON d.job_id = o.job_id AND d.epoch = o.epoch AND d.beats = o.beats
        WHERE o.kind = 'orphan' AND o.deadline < d.deadline
        """,
    ),
    Check(
        "L14",
        "the status of what was evicted",
        f"""
        SELECT {_STEP}, 'was ' || p_status || ' and was evicted' FROM moves
        WHERE kind = 'evict' AND p_kind <> 'evict' AND NOT terminal(p_status)
        """,
    ),
    Check(
        "F1",
        "each claim against whoever held the job",
        f"""
        SELECT {_STEP}, 'was held by ' || holder || ', and was claimed by ' || owner FROM moves
        WHERE kind = 'claim' AND p_status = 'queued' AND holder IS NOT NULL
        """,
    ),
    Check(
        "F2",
        "each requeue and each settlement by policy against the sweep that must stand before it",
        """
        SELECT m.job_id, [m.p_seq, m.seq], 'left the event of a ' || m.kind || ' because of '
            || m.cause || ', and no sweep in the same step'
        FROM moves AS m JOIN moves AS o ON o.seq = m.p_seq
        WHERE m.kind IN ('requeue', 'settle') AND m.cause IS NOT NULL
            AND o.kind = 'orphan' AND (o.at_ms <> m.at_ms OR o.actor IS DISTINCT FROM m.actor)
        """,
    ),
    Check(
        "WF",
        "the words of each event, and the owner of what runs or is orphaned",
        """
        SELECT job_id, [seq], 'bears the kind ' || kind || ', the status ' || status
            || ' and the epoch ' || epoch || ' of ' || coalesce(owner, 'nobody')
        FROM events
        WHERE try_cast(kind AS kinds) IS NULL OR try_cast(status AS statuses) IS NULL
            OR epoch < 0 OR beats < 0
            OR (owner IS NULL AND kind IN ('claim', 'start', 'orphan'))
        """,
    ),
)
