"""The laws of the fleet, F1 to F5, as SQL over a trace; see `law_sql`."""

from __future__ import annotations

from typing import Final

from unswept.simulations.examiner import NAME as EXAMINER

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

F4: Final = f"""
    WITH progress AS (
        SELECT seed, line, n, consumer, number, number AS done, 'handled' AS deed
        FROM trace.deliveries
        UNION ALL
        SELECT seed, line, n, command ->> 'consumer', CAST(command ->> 'upto' AS BIGINT),
            CASE WHEN (command ->> 'error') IS NOT NULL THEN CAST(command ->> 'upto' AS BIGINT) END,
            'acknowledged'
        FROM trace.commands WHERE verb = 'Acknowledge' AND (answer ->> 'type') = 'Acknowledged'
            AND sender <> '{EXAMINER}'),
    judged AS (
        SELECT *, coalesce(max(done) OVER (PARTITION BY seed, consumer ORDER BY line
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before,
            coalesce(max(done) OVER (PARTITION BY seed, consumer ORDER BY line
                ROWS UNBOUNDED PRECEDING), 0) AS after
        FROM progress)
    SELECT seed, n, NULL AS job, format('{{}} {{}} event {{}}, and had handled them up to {{}}',
        consumer, deed, number, before) AS offence
    FROM judged
    WHERE number > CASE WHEN deed = 'handled' THEN before + 1 ELSE after END
"""

F5: Final = """
    WITH met AS (
        SELECT r.*, coalesce(t.number, 0) AS newest,
            alive AND holder_was IS DISTINCT FROM asker AS others
        FROM law.readers r ASOF LEFT JOIN (
            SELECT seed, n, max(number) AS number FROM law.told GROUP BY ALL) t
            ON t.seed = r.seed AND r.n > t.n),
    judged AS (
        SELECT *, CASE verb
                WHEN 'LeaseEvents' THEN NOT others
                WHEN 'Acknowledge' THEN token = token_was AND upto <= newest
                    AND (holder_was IS NOT NULL OR upto <= position_was)
                ELSE NOT alive END AS may,
            CASE WHEN took AND verb = 'ForgetConsumer' THEN (0, 0, NULL, 0, 0) ELSE (
                greatest(token_was, coalesce(granted, 0)),
                CASE WHEN moves THEN upto ELSE position_was END,
                CASE WHEN granted IS NOT NULL THEN asker WHEN took AND last THEN NULL
                    ELSE holder_was END,
                CASE WHEN granted IS NOT NULL THEN store_at + lease_ms ELSE expired_at END,
                CASE WHEN moves THEN 0 ELSE attempts_were + CAST(anew AS BIGINT) END) END AS due,
            (coalesce("row".token, 0), coalesce("row".position, 0), "row".holder,
                coalesce("row".expires_at, 0), coalesce("row".attempts, 0)) AS is_so,
            [{'consumer': consumer, 'number': upto}] AS own_letter
        FROM met),
    came AS (
        SELECT seed, consumer, life, n, greatest(position_was, coalesce(upto, 0)) AS position,
            CASE WHEN moves AND gives_up THEN upto END AS given_up
        FROM law.readers WHERE took AND verb <> 'ForgetConsumer'),
    ends AS (
        SELECT seed, consumer, life, n FROM law.answered WHERE took AND verb = 'ForgetConsumer'),
    went AS (
        SELECT o.seed, o.n, o.store_at, o.job,
            CAST(k.command ->> 'event_retention_ms' AS BIGINT) AS retention_ms
        FROM (SELECT *, unnest(forgotten) AS job FROM trace.outbox) o
        JOIN trace.commands k ON k.seed = o.seed AND k.n = o.n),
    evicted AS (
        SELECT w.seed, w.n, w.job, arg_max(e.store_at, (t.number, e.n)) AS evicted_at
        FROM went w JOIN trace.events e
            ON e.seed = w.seed AND e.job = w.job AND e.n < w.n AND e.kind = 'evict'
        JOIN law.told t ON (t.seed, t.job, t.epoch, t.kind) = (e.seed, e.job, e.epoch, e.kind)
        GROUP BY ALL),
    own AS (
        SELECT w.seed, w.n, w.job, t.number
        FROM went w JOIN law.told t ON t.seed = w.seed AND t.job = w.job AND t.n < w.n),
    readers AS (
        SELECT w.seed, w.n, w.job, c.consumer, max(c.position) AS position, list(c.given_up)
            FILTER (c.given_up IS NOT NULL) AS given_up
        FROM went w JOIN came c ON c.seed = w.seed AND c.n < w.n
        WHERE NOT EXISTS (FROM ends e WHERE e.seed = c.seed AND e.consumer = c.consumer
            AND e.life = c.life AND e.n < w.n)
        GROUP BY ALL)
    SELECT seed, n, NULL AS job, format('{} of {}, token {}, {}: it was {}, {}, token {}, up to {}',
        verb, consumer, law.shown(token), CASE WHEN took THEN 'taken' ELSE 'refused' END,
        law.shown(holder_was), position_was, token_was, expired_at) AS offence
    FROM judged WHERE took <> may
    UNION ALL
    SELECT seed, n, NULL, format('{} was granted token {} after {}', consumer, granted, token_was)
    FROM judged WHERE NOT CASE WHEN alive THEN granted = token_was ELSE granted > token_was END
    UNION ALL
    SELECT seed, n, NULL, format('the row of {} is {}, by what was answered {}', consumer, is_so,
        due)
    FROM judged WHERE is_so IS DISTINCT FROM due
    UNION ALL
    SELECT seed, n, NULL, format('the holder of {} was told what its row does not say', consumer)
    FROM judged
    WHERE granted IS NOT NULL AND "row" IS NOT NULL AND (granted,
        CAST(answer ->> 'position' AS BIGINT), CAST(answer ->> 'expires_at' AS BIGINT),
        CAST(answer ->> 'attempts' AS BIGINT)) IS DISTINCT FROM
        ("row".token, "row".position, "row".expires_at, "row".attempts)
    UNION ALL
    SELECT seed, n, NULL, format('{} left {} dead letters', consumer, len(letters))
    FROM judged
    WHERE verb = 'Acknowledge' AND list_sort(letters) IS DISTINCT FROM
        CASE WHEN moves AND gives_up THEN own_letter ELSE [] END
    UNION ALL
    SELECT w.seed, w.n, w.job, 'was not evicted, and its events went'
    FROM went w ANTI JOIN evicted e ON (e.seed, e.n, e.job) = (w.seed, w.n, w.job)
    UNION ALL
    SELECT w.seed, w.n, w.job, 'has a row, and its events went'
    FROM went w ASOF JOIN law.versions v ON v.seed = w.seed AND v.job = w.job AND w.n > v.n
    WHERE v."row" IS NOT NULL
    UNION ALL
    SELECT w.seed, w.n, w.job, format('was evicted at {}, and its events went', e.evicted_at)
    FROM went w JOIN evicted e ON (e.seed, e.n, e.job) = (w.seed, w.n, w.job)
    WHERE NOT coalesce(e.evicted_at + w.retention_ms < w.store_at, false)
    UNION ALL
    SELECT seed, n, job, format('its events went, and {} was the newest of all', number)
    FROM own o
    WHERE NOT EXISTS (FROM law.told t WHERE t.seed = o.seed AND t.n < o.n AND t.number > o.number)
    UNION ALL
    SELECT o.seed, o.n, o.job, format('its events went, and {} had come to {} and given up {}',
        r.consumer, r.position, law.shown(r.given_up))
    FROM own o JOIN readers r ON (r.seed, r.n, r.job) = (o.seed, o.n, o.job)
    WHERE r.position < o.number OR coalesce(list_contains(r.given_up, o.number), false)
"""
