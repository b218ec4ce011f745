"""The laws a second time, as SQL over a trace: each SELECT yields the offences against one law.

Written from the laws' sentences over what the trace holds, so that two judgements that share no
code can be compared. Schema `trace` has the tables, `law` what `law_helpers` makes of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from unswept.adapters.traces.fleet_law_sql import F1, F2, F3, F4, F5

_ACTIVE: Final = "('queued', 'running')"
_TERMINAL: Final = "('completed', 'failed', 'canceled', 'expired')"

_L1: Final = """
    SELECT o.seed, o.n, o.job, format('orphaned at {}, stamped at {} for {} ms', o.store_at,
        law.shown(s.at_store), law.shown(s.ttl_ms)) AS offence
    FROM law.orphaned o ASOF LEFT JOIN law.stamps s
        ON s.seed = o.seed AND s.job = o.job AND o.n > s.n
    WHERE s.epoch IS DISTINCT FROM o.before.epoch OR o.store_at <= s.at_store + s.ttl_ms
"""

_L2: Final = f"""
    WITH seen AS (
        SELECT seed, n, unnest(from_json(command -> 'targets', '[{{"job_id": "VARCHAR",
            "epoch": "BIGINT", "beats": "BIGINT"}}]')) AS target
        FROM trace.commands WHERE verb = 'Sweep')
    SELECT o.seed, o.n, o.job, format('orphaned by a {{}} at {{}}: {{}}, epoch {{}}, beat {{}}, '
        'deadline {{}}', o.verb, o.store_at, o.before.status, o.before.epoch, o.before.beats,
        law.shown(o.before.deadline)) AS offence
    FROM law.orphaned o
    WHERE o.verb <> 'Sweep' OR o.before.owner IS NULL OR o.before.status NOT IN {_ACTIVE}
        OR o.before.deadline IS NULL OR o.before.deadline >= o.store_at
        OR NOT EXISTS (
            FROM seen t WHERE t.seed = o.seed AND t.n = o.n AND t.target.job_id = o.job
                AND t.target.epoch = o.before.epoch AND t.target.beats = o.before.beats)
"""

_L3: Final = """
    WITH lease AS (
        SELECT seed, n, job, i, verb, before, after, before.owner AS owner, before.epoch AS epoch
        FROM trace.changes),
    written AS (
        SELECT k.*, coalesce(t.rows, 0) AS rows, coalesce(t.others, 0) AS others,
            was.owner IS NOT DISTINCT FROM (k.command ->> 'owner') AND was.epoch = k.epoch AS held
        FROM law.named k LEFT JOIN law.touched t ON t.seed = k.seed AND t.n = k.n
        WHERE k.verb IN ('Start', 'Output', 'Complete', 'Release'))
    SELECT seed, n, job, format('went from epoch {} to {}', before.epoch, after.epoch) AS offence
    FROM lease WHERE after.epoch < before.epoch
    UNION ALL
    SELECT l.seed, l.n, l.job, 'changed by a heartbeat that does not hold it'
    FROM lease l JOIN trace.commands c ON c.seed = l.seed AND c.n = l.n
    WHERE l.verb = 'Heartbeat' AND NOT coalesce(l.owner = (c.command ->> 'instance')
        AND list_contains(from_json(c.command -> 'holds',
            '[{"job_id": "VARCHAR", "epoch": "BIGINT"}]'), {'job_id': l.job, 'epoch': l.epoch}),
        false)
    UNION ALL
    SELECT seed, n, job, format('its {} changed another job', verb) FROM written WHERE others > 0
    UNION ALL
    SELECT w.seed, w.n, w.job, 'a repeated start stamped it again'
    FROM written w JOIN lease l ON l.seed = w.seed AND l.n = w.n AND l.job = w.job
    WHERE w.held AND w.verb = 'Start' AND w.was.status = 'running' AND l.after IS NOT NULL
        AND (l.after.status, l.after.owner, l.after.epoch, l.after.beats, l.after.deadline,
             l.after.cancel_requested_at, l.after.delayed_at, l.after.ttl_ms, l.after.confirm_ms)
        IS DISTINCT FROM
            (w.was.status, w.was.owner, w.was.epoch, w.was.beats, w.was.deadline,
             w.was.cancel_requested_at, w.was.delayed_at, w.was.ttl_ms, w.was.confirm_ms)
    UNION ALL
    SELECT seed, n, job, format('a {} under epoch {}, which does not hold it, took effect', verb,
        epoch)
    FROM written
    WHERE was IS NOT NULL AND NOT coalesce(held, false)
        AND (rows > 0 OR output OR ((answer ->> 'type') <> 'Refused' AND NOT coalesce(
            (answer ->> 'type') = 'Accepted' AND (answer ->> 'transition') IS NULL, false)))
    UNION ALL
    SELECT w.seed, w.n, w.job, format('the stale result of epoch {} left no event', w.epoch)
    FROM written w
    WHERE w.was IS NOT NULL AND NOT coalesce(w.held, false) AND w.verb = 'Complete'
        AND w.epoch BETWEEN 1 AND w.was.epoch - 1
        AND NOT EXISTS (FROM trace.events e WHERE e.seed = w.seed AND e.n < w.n AND e.job = w.job
            AND e.epoch = w.epoch AND e.kind = 'stale_result')
        AND coalesce((SELECT list(e.kind) FROM trace.events e
                      WHERE e.seed = w.seed AND e.n = w.n), []) <> ['stale_result']
    UNION ALL
    SELECT l.seed, l.n, l.job, format('a {} of {}, epoch {} changed it', l.verb, c.job, c.epoch)
    FROM lease l JOIN trace.commands c ON c.seed = l.seed AND c.n = l.n
    WHERE l.verb IN ('Requeue', 'Settle', 'Delay')
        AND (l.before IS NULL OR l.job <> c.job OR l.epoch <> c.epoch)
"""

_L4: Final = f"""
    SELECT seed, n, job,
        format('was {{}} and was changed by a {{}}', before.status, verb) AS offence
    FROM trace.changes
    WHERE before.status IN {_TERMINAL} AND NOT (after IS NULL AND verb = 'Evict')
    UNION ALL
    SELECT h.seed, h.n, h.job, format('was orphaned and was changed by a {{}}', h.verb)
    FROM trace.changes h
    WHERE h.before.status = 'orphaned'
        AND h.verb NOT IN ('Complete', 'Requeue', 'Settle', 'RequestCancel', 'Withdraw')
        AND NOT (h.verb = 'Sweep' AND h.before.on_orphan IN ('requeue', 'fail') AND EXISTS (
            FROM trace.changes f WHERE f.seed = h.seed AND f.n = h.n AND f.job = h.job
                AND f.i < h.i AND f.before.status IN {_ACTIVE}))
    UNION ALL
    SELECT seed, n, job, 'healed under another epoch' FROM trace.changes
    WHERE before.status = 'orphaned' AND verb = 'Complete' AND after.epoch <> before.epoch
    UNION ALL
    SELECT h.seed, h.n, h.job, format('may not be requeued, and was let go by {{}}', h.verb)
    FROM trace.changes h JOIN trace.commands c ON c.seed = h.seed AND c.n = h.n
    WHERE h.before.requeue = 'never' AND h.after IS NOT NULL
        AND (h.verb IN ('Release', 'Requeue')
            OR (h.after.status = 'queued' AND h.after.epoch > h.before.epoch))
        AND NOT coalesce(h.verb = 'Requeue' AND CAST(c.command ->> 'force' AS BOOLEAN), false)
    UNION ALL
    SELECT seed, n, job, format('output landed {{}} ms after its end', store_at - was.finished_at)
    FROM law.named
    WHERE verb = 'Output' AND output
        AND was.finished_at + CAST(command ->> 'late_output_ms' AS BIGINT) < store_at
"""

_L5: Final = """
    WITH pairs AS (
        SELECT h.seed, h.n, h.job, h.before, h.after, e.kind, e.status,
            h.after.epoch - coalesce(h.before.epoch, 0) AS steps,
            h.before.epoch IS NOT DISTINCT FROM h.after.epoch
                AND h.before.status IS NOT DISTINCT FROM h.after.status AS stays
        FROM trace.changes h LEFT JOIN trace.events e
            ON e.seed = h.seed AND e.n = h.n AND e.job = h.job AND e.epoch = h.after.epoch
        WHERE h.after IS NOT NULL)
    SELECT seed, n, job, format('{} events for epoch {}', count(*), epoch) AS offence
    FROM trace.events GROUP BY seed, n, job, epoch HAVING count(*) > 1
    UNION ALL
    SELECT e.seed, e.n, e.job, 'more events than changes'
    FROM trace.events e GROUP BY e.seed, e.n, e.job
    HAVING count(*) > greatest(1, (SELECT count(*) FROM trace.changes h WHERE h.seed = e.seed
        AND h.n = e.n AND h.job = e.job AND h.after IS NOT NULL))
    UNION ALL
    SELECT seed, n, job, format('the event {} of epoch {} was written before', kind, epoch)
    FROM trace.events
    QUALIFY n > min(n) OVER (PARTITION BY seed, job, epoch, kind)
    UNION ALL
    SELECT seed, n, job, format('did not change and left the event {}', kind)
    FROM trace.events e ANTI JOIN trace.changes h USING (seed, n, job)
    WHERE kind <> 'stale_result'
    UNION ALL
    SELECT seed, n, job, format('stayed {} and left the event {}', after.status, kind)
    FROM pairs
    WHERE stays AND kind NOT IN ('delay', 'request_cancel', 'stale_result', 'evict')
    UNION ALL
    SELECT p.seed, p.n, p.job, format('went from {} to {} and left {}', law.shown(p.before.status),
        p.after.status, coalesce('the event ' || p.kind, 'no event'))
    FROM pairs p LEFT JOIN law.moves m ON m.kind = p.kind AND m.was = p.before.status
        AND m."now" = p.after.status AND m.epoch_step = p.steps
    WHERE NOT p.stays AND (
        p.kind IS NULL OR p.status <> p.after.status
        OR (p.before IS NOT NULL AND m.kind IS NULL)
        OR (p.before IS NULL AND NOT (p.after.status = 'queued'
            AND (p.kind, p.steps) IN (('admit', 1), ('enqueue', 0)))))
"""

_L6: Final = """
    SELECT h.seed, h.n, h.job, 'its id had been used, and it was born again' AS offence
    FROM trace.changes h JOIN law.used u ON u.seed = h.seed AND u.job = h.job AND u.n < h.n
    WHERE h.before IS NULL AND h.after IS NOT NULL
        AND h.verb IN ('Admit', 'Enqueue', 'Withdraw', 'RequestCancel')
    UNION ALL
    SELECT c.seed, c.n, c.job, format('its id had been used, and a late {} changed a job', c.verb)
    FROM trace.commands c JOIN law.used u ON u.seed = c.seed AND u.job = c.job AND u.n < c.n
    SEMI JOIN trace.changes h ON h.seed = c.seed AND h.n = c.n
    WHERE c.verb IN ('Admit', 'Enqueue')
"""

_L7: Final = """
    WITH asked AS (
        SELECT k.*, CASE WHEN h.n IS NULL THEN k.was ELSE h."row" END AS stands
        FROM law.named k LEFT JOIN law.versions h
            ON h.seed = k.seed AND h.job = k.job AND h.n = k.n
        WHERE k.verb = 'RequestCancel')
    SELECT seed, n, job, format('the first cancel request was at {}, the row says {}',
        before.cancel_requested_at, law.shown(after.cancel_requested_at)) AS offence
    FROM trace.changes
    WHERE after IS NOT NULL AND before.cancel_requested_at IS NOT NULL
        AND after.cancel_requested_at IS DISTINCT FROM before.cancel_requested_at
    UNION ALL
    SELECT seed, n, job, format('became {} under a cancel request', after.status)
    FROM trace.changes
    WHERE before.cancel_requested_at IS NOT NULL
        AND ((before.status = 'queued' AND after.status = 'running')
            OR (after.status = 'queued' AND after.epoch > before.epoch))
    UNION ALL
    SELECT a.seed, a.n, a.job, 'a cancel request came before it and is not remembered'
    FROM asked a
    WHERE a.was IS NULL AND NOT EXISTS (
        FROM law.used u WHERE u.seed = a.seed AND u.job = a.job AND u.n <= a.n)
    UNION ALL
    SELECT seed, n, job, 'is nobody''s, and the request did not cancel it'
    FROM asked
    WHERE (was.status = 'orphaned' OR (was.status = 'queued' AND was.owner IS NULL))
        AND stands.status IS DISTINCT FROM 'canceled'
    UNION ALL
    SELECT seed, n, job, 'the cancel request did not stay on the row'
    FROM asked
    WHERE (was.status = 'running' OR (was.status = 'queued' AND was.owner IS NOT NULL))
        AND stands.cancel_requested_at IS NULL
    UNION ALL
    SELECT a.seed, a.n, a.job, 'the answer does not bear its cancel request'
    FROM law.answers a ASOF JOIN law.versions v
        ON v.seed = a.seed AND v.job = a.said.job_id AND a.n >= v.n
    WHERE a.said.answer IN ('renewed', 'orphaned') AND v."row" IS NOT NULL
        AND a.said.cancel_requested_at IS DISTINCT FROM v."row".cancel_requested_at
"""

_L8: Final = f"""
    WITH expected AS (
        SELECT *, CASE
            WHEN was IS NULL THEN 'absent'
            WHEN was.owner IS DISTINCT FROM instance OR was.epoch <> said.epoch THEN 'fenced'
            WHEN was.status IN {_TERMINAL} THEN 'terminal'
            WHEN was.status = 'orphaned' THEN 'orphaned'
            ELSE 'renewed' END AS due
        FROM law.answers),
    renewals AS (
        SELECT h.seed, h.n, h.job, h.before, h.after, h.store_at + CAST(c.command -> 'terms' ->>
            CASE WHEN h.before.transport = 'http' THEN 'http_grace_ms' ELSE 'lease_ttl_ms' END
            AS BIGINT) AS due
        FROM trace.changes h JOIN trace.commands c ON c.seed = h.seed AND c.n = h.n
        WHERE h.verb = 'Heartbeat' AND h.before IS NOT NULL AND h.after IS NOT NULL)
    SELECT seed, n, job,
        'the answers are not one per hold, in their order' AS offence
    FROM law.answers
    WHERE (hold.job_id, hold.epoch) IS DISTINCT FROM (said.job_id, said.epoch)
    UNION ALL
    SELECT seed, n, job, format('was answered {{}}, but it is {{}}', said.answer, due)
    FROM expected WHERE said.answer NOT IN ('busy', due)
    UNION ALL
    SELECT r.seed, r.n, r.job, format('the renewal stamped {{}} and said {{}}, not {{}}',
        law.shown(r.after.deadline), law.shown(a.said.deadline), r.due)
    FROM renewals r LEFT JOIN law.answers a
        ON a.seed = r.seed AND a.n = r.n AND a.job = r.job AND a.said.answer = 'renewed'
    WHERE r.after.beats <> r.before.beats + 1 OR r.after.deadline IS DISTINCT FROM r.due
        OR a.said.deadline IS DISTINCT FROM r.due
    UNION ALL
    SELECT a.seed, a.n, a.job, 'was answered renewed, and its row did not change'
    FROM law.answers a ANTI JOIN renewals r USING (seed, n, job)
    WHERE a.said.answer = 'renewed'
"""

_L9: Final = """
    SELECT seed, n, job, format('was delayed from {} to {} at {}; the delay before: {}',
        law.shown(before.deadline), law.shown(after.deadline), store_at,
        law.shown(before.delayed_at)) AS offence
    FROM trace.changes
    WHERE before.epoch = after.epoch AND (
        (before.delayed_at IS DISTINCT FROM after.delayed_at
            AND (before.delayed_at IS NOT NULL OR NOT coalesce(
                after.deadline >= before.deadline AND before.deadline < store_at, false)))
        OR (before.delayed_at IS NOT NULL AND verb = 'Delay'))
"""

_L10: Final = """
    SELECT seed, n, NULL AS job, format('{} is {} and sent a {}', instance, phase, verb) AS offence
    FROM trace.sends
    WHERE NOT repeat AND phase <> 'steady'
        AND (verb IN ('Delay', 'Sweep')
            OR (verb IN ('Admit', 'Claim', 'Start') AND phase <> 'faint'))
"""

_L11: Final = """
    SELECT seed, n, job, format('{} began a step {} ms after its last stamp was sent, of {} ms',
        instance, law.shown(now - stamped_from), law.shown(ttl_ms)) AS offence
    FROM trace.works
    WHERE stamped_from IS NULL OR (requeue <> 'never' AND now >= stamped_from + ttl_ms - margin_ms)
"""

_L12A: Final = """
    SELECT seed, n, sight.job_id AS job, format('the {} of {}: it had stood for {} of {} ms, '
        'the longest gap in the beats was {} of {} ms', verb, instance, sight.stood_still_ms,
        sight.window_ms, sight.longest_gap_ms, sight.gap_ms) AS offence
    FROM (SELECT *, unnest(sights) AS sight FROM trace.sends)
    WHERE sight.stood_still_ms < sight.window_ms OR sight.longest_gap_ms > sight.gap_ms
"""

_L14: Final = f"""
    SELECT h.seed, h.n, h.job, 'was born, and its id is not remembered' AS offence
    FROM trace.changes h
    WHERE h.before IS NULL AND h.after IS NOT NULL AND NOT EXISTS (
        FROM law.used u WHERE u.seed = h.seed AND u.job = h.job AND u.n <= h.n)
    UNION ALL
    SELECT h.seed, h.n, h.job, format('was {{}}, ended at {{}}, and is gone by a {{}}',
        h.before.status, law.shown(h.before.finished_at), h.verb)
    FROM trace.changes h JOIN trace.commands c ON c.seed = h.seed AND c.n = h.n
    WHERE h.before IS NOT NULL AND h.after IS NULL AND (
        h.verb <> 'Evict' OR h.before.status NOT IN {_TERMINAL} OR NOT coalesce(
            h.before.finished_at + CAST(c.command ->> 'retention_ms' AS BIGINT) < h.store_at, false)
        OR NOT EXISTS (FROM law.used u WHERE u.seed = h.seed AND u.job = h.job AND u.n < h.n))
    UNION ALL
    SELECT h.seed, h.n, h.job, format('expired, and its queue deadline was {{}}',
        law.shown(h.before.queue_deadline))
    FROM trace.changes h
    WHERE h.after.status = 'expired' AND h.before.status <> 'expired'
        AND NOT coalesce(h.before.queue_deadline < h.store_at, false)
    UNION ALL
    SELECT seed, n, job, 'is gone, and its request, result or output is not' FROM trace.left_behind
"""

_L15: Final = f"""
    WITH admits AS (
        SELECT *, command -> 'request' ->> 'principal' AS principal,
            command -> 'request' ->> 'request_key' AS request_key
        FROM trace.commands WHERE verb = 'Admit'),
    births AS (
        SELECT a.seed, a.n, a.principal, a.request_key, a.job AS twin, a.store_at
        FROM admits a JOIN trace.changes h ON h.seed = a.seed AND h.n = a.n AND h.job = a.job
        WHERE a.request_key IS NOT NULL AND h.before IS NULL AND h.after IS NOT NULL),
    forgotten AS (
        SELECT seed, n, store_at, CAST(command ->> 'dedup_window_ms' AS BIGINT) AS window_ms,
            unnest(from_json(command -> 'seen', '[["VARCHAR"]]')) AS key
        FROM trace.commands WHERE verb = 'ForgetKeys'),
    named AS (
        SELECT a.seed, a.n, a.store_at, a.job, a.answer, b.n AS twin_n, b.twin AS twin,
            b.principal AS principal, b.request_key AS request_key, b.store_at AS twin_at,
            CAST(a.command ->> 'fresh' AS BOOLEAN) AS fresh,
            CAST(a.command ->> 'dedup_window_ms' AS BIGINT) AS window_ms
        FROM admits a ASOF LEFT JOIN births b ON b.seed = a.seed AND b.principal = a.principal
            AND b.request_key = a.request_key AND a.n > b.n
        WHERE NOT EXISTS (FROM law.used u WHERE u.seed = a.seed AND u.job = a.job AND u.n < a.n)),
    known AS (
        SELECT m.*, NOT EXISTS (
            FROM forgotten f WHERE f.seed = m.seed AND f.n > m.twin_n AND f.n < m.n
                AND f.key = [m.principal, m.request_key, m.twin]
                AND m.twin_at + f.window_ms < f.store_at) AS remembered
        FROM named m),
    judged AS (
        SELECT k.*, coalesce(k.remembered AND NOT k.fresh AND k.window_ms > 0
            AND k.store_at - v."row".admitted_at <= k.window_ms
            AND (v."row".status = 'completed' OR (v."row".status IN {_ACTIVE}
                AND (v."row".deadline IS NULL OR v."row".deadline >= k.store_at))), false) AS fits,
            (k.answer ->> 'type') = 'Joined' AS joined,
            k.answer -> 'standing' ->> 'job_id' AS given
        FROM known k ASOF LEFT JOIN law.versions v
            ON v.seed = k.seed AND v.job = k.twin AND k.n > v.n)
    SELECT seed, n, job, format('its twin is {{}}, it was given {{}}', law.shown(twin),
        law.shown(given)) AS offence
    FROM judged
    WHERE joined <> fits OR (joined AND given <> twin)
"""

_WF: Final = f"""
    SELECT seed, n, job, format('is malformed: {{}}', after) AS offence
    FROM trace.changes
    WHERE after IS NOT NULL AND NOT (
        (after.owner IS NOT NULL AND after.status IN {_ACTIVE}) = (after.deadline IS NOT NULL)
        AND (after.status NOT IN ('running', 'orphaned') OR after.owner IS NOT NULL)
        AND (after.owner IS NULL OR after.epoch >= 1)
        AND (after.owner IS NULL) = (after.ttl_ms IS NULL)
        AND (after.ttl_ms IS NULL) = (after.confirm_ms IS NULL)
        AND (after.delayed_at IS NULL OR after.owner IS NOT NULL)
        AND after.epoch >= 0 AND after.beats >= 0)
"""

OFFENCES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "L1": _L1,
        "L2": _L2,
        "L3": _L3,
        "L4": _L4,
        "L5": _L5,
        "L6": _L6,
        "L7": _L7,
        "L8": _L8,
        "L9": _L9,
        "L10": _L10,
        "L11": _L11,
        "L12a": _L12A,
        "L14": _L14,
        "L15": _L15,
        "F1": F1,
        "F2": F2,
        "F3": F3,
        "F4": F4,
        "F5": F5,
        "WF": _WF,
    }
)
"""By law: a SELECT of (seed, n, job, offence), in no order."""

_TRUTH: Final = "it takes the truth about who lives and who could renew, which no store is told"

NOT_JUDGED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "L12": _TRUTH,
        "L13": _TRUTH,
        "L16": "it is about the source, which a test reads",
    }
)
"""By law: why no trace can show it."""
