"""The laws of the fleet, F1 to F4, as SQL over a trace; see `law_sql`."""

from __future__ import annotations

from typing import Final

F1: Final = """
    WITH claims AS (
        SELECT seed, n, store_at, command ->> 'owner' AS owner,
            CAST(command ->> 'claim_no' AS BIGINT) AS claim_no, command ->> 'partition' AS part,
            CAST(command ->> 'limit' AS BIGINT) AS most, refusal,
            from_json(command -> 'labels', '["VARCHAR"]') AS offered
        FROM trace.commands WHERE verb = 'Claim'),
    taken AS (
        SELECT c.*, h.job, h.before, h.after
        FROM claims c JOIN trace.changes h ON h.seed = c.seed AND h.n = c.n
        WHERE h.before IS NOT NULL AND h.after IS NOT NULL),
    counted AS (
        SELECT seed, n, owner, most, count(*) AS jobs, list(job) AS ids,
            max((before.priority, before.admitted_at, job)) AS last_taken
        FROM taken GROUP BY ALL),
    budgets AS (
        SELECT seed, n, command ->> 'instance' AS instance,
            CAST(command ->> 'max_held' AS BIGINT) AS max_held
        FROM trace.commands WHERE verb = 'Register')
    SELECT t.seed, t.n, t.job, format('claim {} of {} was used before', t.claim_no, t.owner)
        AS offence
    FROM taken t
    WHERE EXISTS (FROM claims c WHERE c.seed = t.seed AND c.n < t.n AND c.owner = t.owner
        AND c.claim_no >= t.claim_no AND c.refusal IS DISTINCT FROM 'not_registered')
    UNION ALL
    SELECT seed, n, job, format('was not to be had for {}: {}', owner, before)
    FROM taken
    WHERE before.status <> 'queued' OR before.owner IS NOT NULL
        OR before.cancel_requested_at IS NOT NULL OR before.not_before > store_at
        OR before."partition" <> part OR NOT list_has_all(offered, before.labels)
    UNION ALL
    SELECT seed, n, job, format('was taken wrongly by {}: {}', owner, after)
    FROM taken
    WHERE (after.owner, after.claim_no, after.epoch, after.attempts) IS DISTINCT FROM
        (owner, claim_no, before.epoch + 1, before.attempts + 1)
    UNION ALL
    SELECT seed, n, ids[1], format('{} took {} jobs and had asked for {}', owner, jobs, most)
    FROM counted WHERE jobs > most
    UNION ALL
    SELECT k.seed, k.n, k.ids[1], format('{} took {} jobs beyond its budget of {}', k.owner, k.jobs,
        b.max_held)
    FROM counted k ASOF JOIN budgets b ON b.seed = k.seed AND b.instance = k.owner AND k.n > b.n
    WHERE b.max_held < k.jobs + (
        SELECT count(*) FROM law.versions v
        WHERE v.seed = k.seed AND v.n < k.n AND coalesce(v.next_n >= k.n, true)
            AND v."row".owner = k.owner AND v."row".claim_no IS NOT NULL
            AND v."row".status IN ('queued', 'running'))
    UNION ALL
    SELECT k.seed, k.n, v.job, format('it came before {}, which {} took', k.last_taken[3], k.owner)
    FROM counted k JOIN claims c ON c.seed = k.seed AND c.n = k.n
    JOIN law.versions v ON v.seed = k.seed AND v.n < k.n AND coalesce(v.next_n >= k.n, true)
    WHERE v."row".status = 'queued' AND v."row".owner IS NULL
        AND v."row".cancel_requested_at IS NULL
        AND NOT coalesce(v."row".not_before > c.store_at, false)
        AND v."row"."partition" = c.part AND list_has_all(c.offered, v."row".labels)
        AND NOT list_contains(k.ids, v.job)
        AND (v."row".priority, v."row".admitted_at, v.job) < k.last_taken
"""

F2: Final = """
    SELECT o.seed, o.n, o.job, format('attempt {} of {}, on_orphan = {}, became {}',
        o.before.attempts, law.shown(o.before.max_attempts), o.before.on_orphan,
        law.shown(v."row".status)) AS offence
    FROM law.orphaned o JOIN law.versions v ON v.seed = o.seed AND v.job = o.job AND v.n = o.n
    WHERE o.verb = 'Sweep' AND coalesce(v."row".status, 'orphaned') <> CASE
        WHEN o.before.on_orphan IN ('mark', 'hold') THEN 'orphaned'
        WHEN o.before.on_orphan = 'fail' OR o.before.attempts >= o.before.max_attempts THEN 'failed'
        WHEN o.before.cancel_requested_at IS NULL THEN 'queued'
        ELSE 'canceled' END
"""

F3: Final = """
    SELECT w.seed, w.n, w.job, format('{} began a step under epoch {}, the job has reached {}',
        w.instance, w.epoch, v."row".epoch) AS offence
    FROM trace.works w ASOF JOIN law.versions v ON v.seed = w.seed AND v.job = w.job AND w.n >= v.n
    WHERE w.requeue <> 'never' AND v."row".epoch > w.epoch
"""

F4: Final = """
    WITH progress AS (
        SELECT seed, line, n, consumer, number, number AS done, 'handled' AS deed
        FROM trace.deliveries
        UNION ALL
        SELECT seed, line, n, command ->> 'consumer', CAST(command ->> 'upto' AS BIGINT),
            CASE WHEN (command ->> 'error') IS NOT NULL THEN CAST(command ->> 'upto' AS BIGINT) END,
            'acknowledged'
        FROM trace.commands WHERE verb = 'Acknowledge' AND (answer ->> 'type') = 'Acknowledged'),
    judged AS (
        SELECT *, coalesce(max(done) OVER (PARTITION BY seed, consumer ORDER BY line
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before,
            coalesce(max(done) OVER (PARTITION BY seed, consumer ORDER BY line
                ROWS UNBOUNDED PRECEDING), 0) AS after
        FROM progress)
    SELECT seed, n, NULL AS job, format('{} {} event {}, and had handled them up to {}', consumer,
        deed, number, before) AS offence
    FROM judged
    WHERE number > CASE WHEN deed = 'handled' THEN before + 1 ELSE after END
"""
