-- The store clock: every lease decision reads it, once its locks are held. Whole milliseconds since
-- the epoch. VOLATILE and clock_timestamp(): now() would be the transaction's start, which lies
-- before the wait for a lock.
CREATE FUNCTION {schema}.now_ms() RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL SAFE
RETURN floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;

-- The lease row. Narrow: a heartbeat rewrites nothing else. Half of each page stays free, so that
-- the new version of a renewed row lies on the same page and no index is touched (HOT).
--
-- The CHECKs are `well_formed` of unswept.core.lease, and what follows for the facts beside it.
-- Texts are compared by code point, as Python does: in another collation a page of suspects would
-- have another order than its cursor.
--
-- No index contains the deadline, nor names it in its WHERE.
CREATE TABLE {schema}.jobs (
    id text COLLATE "C" PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 200),
    status text COLLATE "C" NOT NULL CHECK (status IN (
        'queued', 'running', 'completed', 'failed', 'canceled', 'expired', 'orphaned'
    )),
    owner text COLLATE "C",
    epoch bigint NOT NULL CHECK (epoch >= 0),
    beats bigint NOT NULL CHECK (beats >= 0),
    deadline bigint,
    cancel_requested_at bigint,
    delayed_at bigint,
    ttl_ms bigint,
    confirm_ms bigint,
    requeue text COLLATE "C" NOT NULL CHECK (requeue IN ('never', 'allowed')),
    transport text COLLATE "C" NOT NULL CHECK (transport IN ('process', 'http')),
    admitted_at bigint NOT NULL,
    partition text COLLATE "C" NOT NULL DEFAULT '',
    label_set bigint NOT NULL DEFAULT 0,
    priority bigint NOT NULL DEFAULT 0,
    attempts bigint NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    max_attempts bigint CHECK (max_attempts >= 1),
    on_orphan text COLLATE "C" NOT NULL DEFAULT 'mark' CHECK (on_orphan IN (
        'mark', 'requeue', 'fail', 'hold'
    )),
    queue_deadline bigint,
    not_before bigint,
    claim_no bigint,
    beat_at bigint,
    started_at bigint,
    finished_at bigint,
    orphaned_at bigint,
    pid bigint,
    process_start bigint,
    boot_id text COLLATE "C",
    -- Makes the epoch part of a key: whoever holds the row FOR KEY SHARE, as an append of output
    -- does, is waited for by what moves the epoch, and passed by renewals.
    UNIQUE (id, epoch),
    CHECK ((status IN ('queued', 'running') AND owner IS NOT NULL) = (deadline IS NOT NULL)),
    CHECK (status NOT IN ('running', 'orphaned') OR owner IS NOT NULL),
    CHECK (owner IS NULL OR epoch >= 1),
    CHECK ((owner IS NOT NULL) = (ttl_ms IS NOT NULL)),
    CHECK ((owner IS NOT NULL) = (confirm_ms IS NOT NULL)),
    CHECK (delayed_at IS NULL OR owner IS NOT NULL),
    CHECK (
        (status IN ('completed', 'failed', 'canceled', 'expired')) = (finished_at IS NOT NULL)
    ),
    CHECK (status <> 'orphaned' OR orphaned_at IS NOT NULL),
    CHECK (on_orphan <> 'requeue' OR (requeue = 'allowed' AND max_attempts IS NOT NULL)),
    CHECK ((pid IS NULL) = (process_start IS NULL) AND (pid IS NULL) = (boot_id IS NULL))
) WITH (fillfactor = 50);

-- Suspects and sweeps: their cost does not grow with the jobs that are over.
CREATE INDEX jobs_owned ON {schema}.jobs (id)
    WHERE status IN ('queued', 'running') AND owner IS NOT NULL;

-- Claims, in the order in which they take.
CREATE INDEX jobs_waiting ON {schema}.jobs (partition, label_set, priority, admitted_at, id)
    WHERE status = 'queued' AND owner IS NULL;

-- Queued jobs that may be expired.
CREATE INDEX jobs_expirable ON {schema}.jobs (queue_deadline, id)
    WHERE status = 'queued' AND owner IS NULL AND queue_deadline IS NOT NULL;

-- Repeats of a claim: the jobs that it took and that are still held. No admitted job is in it.
CREATE INDEX jobs_claimed ON {schema}.jobs (owner, claim_no, id)
    WHERE status IN ('queued', 'running') AND owner IS NOT NULL AND claim_no IS NOT NULL;

-- Retention, the oldest first: what has finished is terminal.
CREATE INDEX jobs_ended ON {schema}.jobs (finished_at, id)
    WHERE finished_at IS NOT NULL;

-- Orphans, for whoever counts and judges them.
CREATE INDEX jobs_orphaned ON {schema}.jobs (orphaned_at, id)
    WHERE status = 'orphaned';

-- Ids that have been used, for ever: nothing is deleted from here.
CREATE TABLE {schema}.job_ids (
    id text COLLATE "C" PRIMARY KEY,
    first_owner text COLLATE "C",
    born_at bigint NOT NULL,
    joined_to text COLLATE "C"
);

-- The newest job of each request key. A row may name a job that is gone: then the key is free.
CREATE TABLE {schema}.dedup_keys (
    principal text COLLATE "C" NOT NULL,
    request_key text COLLATE "C" NOT NULL,
    job_id text COLLATE "C",
    admitted_at bigint NOT NULL,
    PRIMARY KEY (principal, request_key)
);

CREATE INDEX dedup_keys_aged ON {schema}.dedup_keys (admitted_at);

-- What rides along.
CREATE TABLE {schema}.requests (
    job_id text COLLATE "C" PRIMARY KEY,
    payload bytea NOT NULL,
    principal text COLLATE "C",
    request_key text COLLATE "C",
    CHECK (request_key IS NULL OR principal IS NOT NULL)
);

CREATE TABLE {schema}.results (
    job_id text COLLATE "C" PRIMARY KEY,
    exit_code bigint,
    http_status bigint,
    error text COLLATE "C",
    body bytea NOT NULL
);

-- Numbered chunks, appended under an epoch and never rewritten.
CREATE TABLE {schema}.output (
    job_id text COLLATE "C" NOT NULL,
    epoch bigint NOT NULL CHECK (epoch >= 1),
    chunk bigint NOT NULL CHECK (chunk >= 0),
    stream text COLLATE "C" NOT NULL CHECK (stream IN ('stdout', 'stderr')),
    data bytea NOT NULL,
    PRIMARY KEY (job_id, epoch, chunk)
);

-- For people and host checks, the greatest claim number and the budget of claims; no lease decision
-- reads it. An instance that has claimed keeps its row when it is gone, and with it that number.
CREATE TABLE {schema}.instances (
    id text COLLATE "C" PRIMARY KEY,
    role text COLLATE "C" NOT NULL,
    host text COLLATE "C" NOT NULL,
    pid bigint,
    registered_at bigint NOT NULL,
    seen_at bigint NOT NULL,
    claim_no bigint NOT NULL CHECK (claim_no >= 0),
    max_held bigint CHECK (max_held >= 1),
    gone_at bigint
) WITH (fillfactor = 50);

CREATE INDEX instances_here ON {schema}.instances (id) WHERE gone_at IS NULL;

-- One event per transition, written in its transaction. Numbers are handed out before the commit: they
-- may have gaps, and a lower one may appear after a higher one. The events of a job that was evicted
-- long ago may be removed, all of them together and never the newest of all. Their numbers are not used
-- again.
CREATE TABLE {schema}.events (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id text COLLATE "C" NOT NULL,
    epoch bigint NOT NULL,
    kind text COLLATE "C" NOT NULL CHECK (kind IN (
        'admit', 'enqueue', 'claim', 'start', 'delay', 'orphan', 'complete', 'heal', 'release',
        'request_cancel', 'cancel', 'requeue', 'settle', 'expire', 'withdraw', 'evict',
        'stale_result'
    )),
    at bigint NOT NULL,
    status text COLLATE "C" NOT NULL,
    owner text COLLATE "C",
    actor text COLLATE "C",
    beats bigint NOT NULL,
    deadline bigint,
    beat_at bigint,
    first_seen_at bigint,
    forced smallint NOT NULL CHECK (forced IN (0, 1)),
    cause text COLLATE "C",
    UNIQUE (job_id, epoch, kind)
);

-- Evictions, the oldest first: each tells of a job whose events may go.
CREATE INDEX events_evicted ON {schema}.events (at, seq) WHERE kind = 'evict';

-- Who reads the events, and how far: a position, and the lease under which it moves.
CREATE TABLE {schema}.consumers (
    name text COLLATE "C" PRIMARY KEY,
    position bigint NOT NULL CHECK (position >= 0),
    token bigint NOT NULL CHECK (token >= 1),
    holder text COLLATE "C",
    expires_at bigint NOT NULL,
    attempts bigint NOT NULL CHECK (attempts >= 0)
) WITH (fillfactor = 50);

-- Events that a consumer gave up.
CREATE TABLE {schema}.dead_letters (
    consumer text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    at bigint NOT NULL,
    attempts bigint NOT NULL,
    error text COLLATE "C" NOT NULL,
    PRIMARY KEY (consumer, number)
);

-- Whether an event is anybody's dead letter.
CREATE INDEX dead_letters_number ON {schema}.dead_letters (number);

-- Interned sets of labels, each a sorted JSON array; set 0 is the empty one. None is ever removed: a
-- claim looks for jobs set by set.
CREATE TABLE {schema}.label_sets (
    id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    labels text COLLATE "C" NOT NULL UNIQUE
);

INSERT INTO {schema}.label_sets (id, labels) VALUES (0, '[]');
