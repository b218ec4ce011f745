"""What a live database can show besides its events: its rows against them and each other."""

from __future__ import annotations

from typing import Final

from unswept.adapters.audit.check import Check

_LAST: Final = "moves AS m JOIN jobs AS j ON j.id = m.job_id AND m.n_seq IS NULL"
"""Each job's row beside its last event."""
_OWNER: Final = """
    CASE WHEN m.kind NOT IN ('release', 'requeue', 'settle', 'cancel', 'expire') THEN m.owner END
"""

ROW_CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "L3",
        "each output against the epochs under which somebody held the job",
        """
        SELECT o.job_id, [NULL::BIGINT], 'has output of epoch ' || o.epoch
            || ', in which nobody held it'
        FROM output AS o JOIN jobs AS j ON j.id = o.job_id
        WHERE NOT EXISTS (
            FROM moves AS m
            WHERE m.job_id = o.job_id AND m.epoch = o.epoch AND m.kind IN ('admit', 'claim'))
        """,
        ("jobs", "output"),
    ),
    Check(
        "L4",
        "the row of each job that is over against the event of its end",
        f"""
        SELECT m.job_id, [m.seq], 'ended at ' || m.at_ms || ', and its row says '
            || coalesce(j.finished_at::VARCHAR, 'that it has not')
        FROM {_LAST}
        WHERE terminal(m.status) AND m.kind <> 'evict' AND j.status = m.status::VARCHAR
            AND j.finished_at IS DISTINCT FROM m.at_ms
        """,
        ("jobs",),
    ),
    Check(
        "L4",
        "each release and requeue of a job that may not be requeued: the latter by force alone",
        """
        SELECT e.job_id, [e.seq], 'may not be requeued, and was let go by a ' || e.kind
        FROM events AS e JOIN jobs AS j ON j.id = e.job_id
        WHERE j.requeue = 'never' AND e.kind IN ('release', 'requeue') AND e.forced = 0
        """,
        ("jobs",),
    ),
    Check(
        "L5",
        "each job's row against its last event: status, epoch, owner, beats",
        f"""
        SELECT m.job_id, [m.seq], 'is ' || j.status || ', epoch ' || j.epoch || ', beat '
            || j.beats || ', of ' || coalesce(j.owner, 'nobody') || ', and its last event says '
            || m.status || ', epoch ' || m.epoch || ', beat ' || m.beats || ', of '
            || coalesce({_OWNER}, 'nobody')
        FROM {_LAST}
        WHERE m.kind <> 'evict' AND (j.status <> m.status::VARCHAR OR j.epoch <> m.epoch
            OR j.owner IS DISTINCT FROM ({_OWNER}) OR j.beats < m.beats)
        UNION ALL
        SELECT m.job_id, [m.seq], 'was evicted, and has a row' FROM {_LAST} WHERE m.kind = 'evict'
        UNION ALL
        SELECT j.id, [NULL], 'is ' || j.status || ', epoch ' || j.epoch || ', and has no event'
        FROM jobs AS j ANTI JOIN moves AS m ON m.job_id = j.id
        """,
        ("jobs",),
    ),
    Check(
        "L6",
        "each id that was spent on a twin, or that another bore first, against what was born",
        """
        SELECT m.job_id, [m.seq], 'had been used, and was born by an ' || m.kind || ' of '
            || coalesce(m.owner, 'nobody')
        FROM moves AS m JOIN job_ids AS i ON i.id = m.job_id
        WHERE m.p_seq IS NULL AND m.kind IN ('admit', 'enqueue')
            AND (i.joined_to IS NOT NULL OR i.first_owner IS DISTINCT FROM m.owner)
        """,
        ("job_ids",),
    ),
    Check(
        "L7",
        "the first cancel request of each job against its row",
        """
        SELECT j.id, [a.seq], 'was first asked to end '
            || coalesce('at ' || a.at_ms, 'by nobody') || ', and its row says '
            || coalesce(j.cancel_requested_at::VARCHAR, 'never')
        FROM jobs AS j LEFT JOIN (
            SELECT job_id, min(seq) AS seq, arg_min(at_ms, seq) AS at_ms FROM moves
            WHERE kind IN ('request_cancel', 'cancel') GROUP BY job_id
        ) AS a ON a.job_id = j.id
        WHERE j.cancel_requested_at IS DISTINCT FROM a.at_ms
        """,
        ("jobs",),
    ),
    Check(
        "L9",
        "the delay on each row against the event of it",
        """
        SELECT j.id, [d.seq], 'was delayed at ' || coalesce(d.at_ms::VARCHAR, 'no time')
            || ' in epoch ' || j.epoch || ', and its row says '
            || coalesce(j.delayed_at::VARCHAR, 'never')
        FROM jobs AS j LEFT JOIN (SELECT * FROM moves WHERE kind = 'delay') AS d
            ON d.job_id = j.id AND d.epoch = j.epoch
        WHERE j.delayed_at IS DISTINCT FROM d.at_ms
        """,
        ("jobs",),
    ),
    Check(
        "L12a",
        "the time from a sweeper's first sight to its sweep, by the store clock, against the"
        " owner's window, where the row still has it and no event shows a clock set back",
        """
        SELECT m.job_id, [m.seq], 'was first seen as a suspect at '
            || coalesce(m.first_seen_at::VARCHAR, 'no time') || ' and swept at ' || m.at_ms
            || ', its window is ' || j.confirm_ms || ' ms'
        FROM moves AS m JOIN jobs AS j ON j.id = m.job_id AND j.epoch = m.epoch
        WHERE m.kind = 'orphan' AND j.confirm_ms IS NOT NULL AND (m.first_seen_at IS NULL OR (
            -- Clocks drift: a five-hundredth is allowed.
            m.at_ms - m.first_seen_at BETWEEN 0 AND j.confirm_ms - j.confirm_ms // 500 - 2
            AND NOT EXISTS (
                FROM events AS e
                WHERE e.seq < m.seq AND e."at" > m.at_ms)))
        """,
        ("jobs",),
    ),
    Check(
        "L14",
        "each job of the events against its row, its id, its request and its result",
        """
        SELECT m.job_id, [m.seq], 'is ' || m.status || ' by its last event, and has no row'
        FROM moves AS m ANTI JOIN jobs AS j ON j.id = m.job_id
        WHERE m.n_seq IS NULL AND m.kind <> 'evict'
        UNION ALL
        SELECT m.job_id, [m.seq], 'was born, and its id is not remembered as used'
        FROM moves AS m ANTI JOIN job_ids AS i ON i.id = m.job_id WHERE m.p_seq IS NULL
        UNION ALL
        SELECT j.id, [NULL], 'has a row, and no request'
        FROM jobs AS j ANTI JOIN requests AS r ON r.job_id = j.id
        UNION ALL
        SELECT m.job_id, [m.seq], 'was ended by its owner, and has no result'
        FROM moves AS m JOIN jobs AS j ON j.id = m.job_id ANTI JOIN results AS r
            ON r.job_id = m.job_id
        WHERE m.n_seq IS NULL AND m.kind IN ('complete', 'heal')
        """,
        ("job_ids", "jobs", "requests", "results"),
    ),
    Check(
        "L14",
        "each request, result and output against the row of its job",
        """
        SELECT DISTINCT job_id, [NULL::BIGINT], 'has no row, and its ' || what || ' is there'
        FROM (
            SELECT job_id, 'request' AS what FROM requests
            UNION ALL SELECT job_id, 'result' FROM results
            UNION ALL SELECT job_id, 'output' FROM output) AS r
        ANTI JOIN jobs AS j ON j.id = r.job_id
        -- Of a job that was never evicted it is the row that is missing.
        ANTI JOIN moves AS m ON m.job_id = r.job_id AND m.n_seq IS NULL AND m.kind <> 'evict'
        """,
        ("jobs", "output", "requests", "results"),
    ),
    Check(
        "L3",
        "each result against the completion that it came with",
        """
        SELECT r.job_id, [m.seq], 'has a result, and was not ended by its owner'
        FROM results AS r JOIN moves AS m ON m.job_id = r.job_id AND m.n_seq IS NULL
        WHERE m.kind NOT IN ('complete', 'heal', 'evict')
        """,
        ("results",),
    ),
    Check(
        "L15",
        "each request key against the request of the job that it names, and each id that was"
        " given a twin against what the twin had come to",
        """
        SELECT job_id, [NULL::BIGINT], 'is the newest of ' || principal || ', ' || request_key
            || ', and its request says ' || coalesce(own_principal, 'nobody') || ', '
            || coalesce(own_request_key, 'no key')
        FROM dedup_keys
        WHERE principal IS DISTINCT FROM own_principal
            OR request_key IS DISTINCT FROM own_request_key
        UNION ALL
        SELECT i.id, [m.seq], 'was given ' || m.job_id || ' at ' || i.born_at || ', which was '
            || m.status || ' since ' || m.at_ms
        FROM job_ids AS i JOIN moves AS m ON m.job_id = i.joined_to
        WHERE m.at_ms < i.born_at AND m.kind <> 'evict'
            AND m.status IN ('failed', 'canceled', 'expired')
            -- Where the clock has gone back, it may have been given before, at a later time.
            AND NOT EXISTS (FROM events AS e WHERE e.seq < m.seq AND e."at" >= i.born_at)
        """,
        ("dedup_keys", "job_ids"),
    ),
    Check(
        "F1",
        "the attempts of each row against its grants, and its claim against its claimer's last",
        """
        SELECT j.id, g.seqs, 'was admitted or claimed ' || len(g.seqs)
            || ' times, and its row says ' || j.attempts
        FROM jobs AS j JOIN (
            SELECT job_id, list(seq ORDER BY seq) FILTER (kind IN ('admit', 'claim')) AS seqs
            FROM moves GROUP BY job_id
        ) AS g ON g.job_id = j.id
        WHERE coalesce(len(g.seqs), 0) <> j.attempts
        UNION ALL
        SELECT j.id, [NULL], 'was claimed by ' || i.id || ' under ' || j.claim_no
            || ', and its last number is ' || i.claim_no
        FROM jobs AS j JOIN instances AS i ON i.id = j.owner WHERE j.claim_no > i.claim_no
        """,
        ("instances", "jobs"),
    ),
    Check(
        "F2",
        "what followed each sweep against the policy on the job's row",
        """
        SELECT o.job_id, [o.seq, n.seq], 'was orphaned, its policy is ' || j.on_orphan
            || ', and what followed is '
            || coalesce(n.kind || ' because of ' || coalesce(n.cause, 'somebody'), 'nothing')
        FROM moves AS o JOIN jobs AS j ON j.id = o.job_id LEFT JOIN moves AS n ON n.seq = o.n_seq
        WHERE o.kind = 'orphan' AND (
            (j.on_orphan IN ('mark', 'hold') AND n.cause IS NOT NULL)
            OR (j.on_orphan = 'fail' AND (n.kind IS DISTINCT FROM 'settle' OR n.cause IS NULL
                OR n.status <> 'failed'))
            OR (j.on_orphan = 'requeue' AND (n.cause IS NULL OR n.kind IS DISTINCT FROM (
                CASE WHEN j.max_attempts <= (
                    SELECT count(*) FROM moves AS g
                    WHERE g.job_id = o.job_id AND g.seq < o.seq AND g.kind IN ('admit', 'claim')
                ) THEN 'settle' ELSE 'requeue' END))))
        """,
        ("jobs",),
    ),
    Check(
        "F5",
        "each consumer's position against the events, and each dead letter against the position and"
        " its event",
        """
        SELECT NULL::VARCHAR, [NULL::BIGINT], c.name || ' acknowledged up to event ' || c.position
            || ', and the newest is ' || coalesce((SELECT max(seq) FROM events), 0)
        FROM consumers AS c WHERE c.position > coalesce((SELECT max(seq) FROM events), 0)
        UNION ALL
        SELECT NULL, [d.number], d.consumer || ' gave up event ' || d.number
            || ', and has come to ' || coalesce(c.position::VARCHAR, 'none')
        FROM dead_letters AS d LEFT JOIN consumers AS c ON c.name = d.consumer
        WHERE d.number > coalesce(c.position, 0)
        UNION ALL
        SELECT NULL, [d.number], d.consumer || ' gave up event ' || d.number || ', which is gone'
        FROM dead_letters AS d ANTI JOIN events AS e ON e.seq = d.number
        """,
        ("consumers", "dead_letters"),
    ),
    Check(
        "WF",
        "each row against the shape that every transition keeps",
        """
        SELECT id, [NULL::BIGINT], 'is ' || status || ', epoch ' || epoch || ', of '
            || coalesce(owner, 'nobody') || ', with the deadline '
            || coalesce(deadline::VARCHAR, 'none')
        FROM jobs
        WHERE (owner IS NOT NULL AND status IN ('queued', 'running')) <> (deadline IS NOT NULL)
            OR (status IN ('running', 'orphaned') AND owner IS NULL)
            OR (owner IS NOT NULL AND epoch < 1) OR epoch < 0 OR beats < 0
            OR (owner IS NULL) <> (ttl_ms IS NULL) OR (owner IS NULL) <> (confirm_ms IS NULL)
            OR (delayed_at IS NOT NULL AND owner IS NULL)
            OR try_cast(status AS statuses) IS NULL
            OR (status = 'orphaned' AND orphaned_at IS NULL)
        """,
        ("jobs",),
    ),
)
