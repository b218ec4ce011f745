-- The lease row. Narrow: a heartbeat rewrites nothing else. The table keeps its rowid, so that rows
-- lie in the order of their admission: the jobs that are held now share few pages, whatever their
-- ids, and a heartbeat writes few.
--
-- The CHECKs are `well_formed` of unswept.core.lease, and what follows for the facts beside it. They
-- compare with = and OR where IN would have more than two values: for those SQLite builds a table at
-- each row that is written, and an update takes five times as long.
--
-- No index contains the deadline, nor names it in its WHERE: a renewal touches no index.
CREATE TABLE unswept_jobs (
    id TEXT NOT NULL PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 200),
    status TEXT NOT NULL CHECK (
        status = 'queued' OR status = 'running' OR status = 'completed' OR status = 'failed'
        OR status = 'canceled' OR status = 'expired' OR status = 'orphaned'
    ),
    owner TEXT,
    epoch INTEGER NOT NULL CHECK (epoch >= 0),
    beats INTEGER NOT NULL CHECK (beats >= 0),
    deadline INTEGER,
    cancel_requested_at INTEGER,
    delayed_at INTEGER,
    ttl_ms INTEGER,
    confirm_ms INTEGER,
    requeue TEXT NOT NULL CHECK (requeue IN ('never', 'allowed')),
    transport TEXT NOT NULL CHECK (transport IN ('process', 'http')),
    admitted_at INTEGER NOT NULL,
    partition TEXT NOT NULL DEFAULT '',
    label_set INTEGER NOT NULL DEFAULT 0,
    priority INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    max_attempts INTEGER CHECK (max_attempts >= 1),
    on_orphan TEXT NOT NULL DEFAULT 'mark' CHECK (
        on_orphan = 'mark' OR on_orphan = 'requeue' OR on_orphan = 'fail' OR on_orphan = 'hold'
    ),
    queue_deadline INTEGER,
    not_before INTEGER,
    claim_no INTEGER,
    beat_at INTEGER,
    started_at INTEGER,
    finished_at INTEGER,
    orphaned_at INTEGER,
    pid INTEGER,
    process_start INTEGER,
    boot_id TEXT,
    CHECK ((status IN ('queued', 'running') AND owner IS NOT NULL) = (deadline IS NOT NULL)),
    CHECK (status NOT IN ('running', 'orphaned') OR owner IS NOT NULL),
    CHECK (owner IS NULL OR epoch >= 1),
    CHECK ((owner IS NOT NULL) = (ttl_ms IS NOT NULL)),
    CHECK ((owner IS NOT NULL) = (confirm_ms IS NOT NULL)),
    CHECK (delayed_at IS NULL OR owner IS NOT NULL),
    CHECK ((
        status = 'completed' OR status = 'failed' OR status = 'canceled' OR status = 'expired'
    ) = (finished_at IS NOT NULL)),
    CHECK (status <> 'orphaned' OR orphaned_at IS NOT NULL),
    CHECK (on_orphan <> 'requeue' OR (requeue = 'allowed' AND max_attempts IS NOT NULL)),
    CHECK ((pid IS NULL) = (process_start IS NULL) AND (pid IS NULL) = (boot_id IS NULL))
) STRICT;

-- Suspects and sweeps: their cost does not grow with the jobs that are over.
CREATE INDEX unswept_jobs_owned ON unswept_jobs (id)
    WHERE status IN ('queued', 'running') AND owner IS NOT NULL;

-- Claims, in the order in which they take.
CREATE INDEX unswept_jobs_waiting
    ON unswept_jobs (partition, label_set, priority, admitted_at, id)
    WHERE status = 'queued' AND owner IS NULL;

-- Queued jobs that may be expired.
CREATE INDEX unswept_jobs_expirable ON unswept_jobs (queue_deadline, id)
    WHERE status = 'queued' AND owner IS NULL AND queue_deadline IS NOT NULL;

-- Repeats of a claim: the jobs that it took and that are still held. No admitted job is in it.
CREATE INDEX unswept_jobs_claimed ON unswept_jobs (owner, claim_no, id)
    WHERE status IN ('queued', 'running') AND owner IS NOT NULL AND claim_no IS NOT NULL;

-- Retention, the oldest first: what has finished is terminal.
CREATE INDEX unswept_jobs_ended ON unswept_jobs (finished_at, id)
    WHERE finished_at IS NOT NULL;

-- Orphans, for whoever counts and judges them.
CREATE INDEX unswept_jobs_orphaned ON unswept_jobs (orphaned_at, id)
    WHERE status = 'orphaned';

-- Ids that have been used, for ever: nothing is deleted from here.
CREATE TABLE unswept_job_ids (
    id TEXT NOT NULL PRIMARY KEY,
    first_owner TEXT,
    born_at INTEGER NOT NULL,
    joined_to TEXT
) STRICT;

-- The newest job of each request key. A row may name a job that is gone: then the key is free.
CREATE TABLE unswept_dedup_keys (
    principal TEXT NOT NULL,
    request_key TEXT NOT NULL,
    job_id TEXT NOT NULL,
    admitted_at INTEGER NOT NULL,
    PRIMARY KEY (principal, request_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX unswept_dedup_keys_aged ON unswept_dedup_keys (admitted_at);

-- What rides along.
CREATE TABLE unswept_requests (
    job_id TEXT NOT NULL PRIMARY KEY,
    payload BLOB NOT NULL,
    principal TEXT,
    request_key TEXT,
    CHECK (request_key IS NULL OR principal IS NOT NULL)
) STRICT;

CREATE TABLE unswept_results (
    job_id TEXT NOT NULL PRIMARY KEY,
    exit_code INTEGER,
    http_status INTEGER,
    error TEXT,
    body BLOB NOT NULL
) STRICT;

-- Numbered chunks, appended under an epoch and never rewritten.
CREATE TABLE unswept_output (
    job_id TEXT NOT NULL,
    epoch INTEGER NOT NULL CHECK (epoch >= 1),
    chunk INTEGER NOT NULL CHECK (chunk >= 0),
    stream TEXT NOT NULL CHECK (stream IN ('stdout', 'stderr')),
    data BLOB NOT NULL,
    PRIMARY KEY (job_id, epoch, chunk)
) STRICT;

-- For people and host checks, the greatest claim number and the budget of claims; no lease decision
-- reads it. An instance that has claimed keeps its row when it is gone, and with it that number.
CREATE TABLE unswept_instances (
    id TEXT NOT NULL PRIMARY KEY,
    role TEXT NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER,
    registered_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    claim_no INTEGER NOT NULL CHECK (claim_no >= 0),
    max_held INTEGER CHECK (max_held >= 1),
    gone_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX unswept_instances_here ON unswept_instances (id) WHERE gone_at IS NULL;

-- One event per transition, written in its transaction and numbered without a gap. The events of a
-- job that was evicted long ago may be removed, all of them together and never the newest of all. Their
-- numbers are not used again.
CREATE TABLE unswept_events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (
        kind = 'admit' OR kind = 'enqueue' OR kind = 'claim' OR kind = 'start' OR kind = 'delay'
        OR kind = 'orphan' OR kind = 'complete' OR kind = 'heal' OR kind = 'release'
        OR kind = 'request_cancel' OR kind = 'cancel' OR kind = 'requeue' OR kind = 'settle'
        OR kind = 'expire' OR kind = 'withdraw' OR kind = 'evict' OR kind = 'stale_result'
    ),
    at INTEGER NOT NULL,
    status TEXT NOT NULL,
    owner TEXT,
    actor TEXT,
    beats INTEGER NOT NULL,
    deadline INTEGER,
    beat_at INTEGER,
    first_seen_at INTEGER,
    forced INTEGER NOT NULL CHECK (forced IN (0, 1)),
    cause TEXT,
    UNIQUE (job_id, epoch, kind)
) STRICT;

-- Evictions, the oldest first: each tells of a job whose events may go.
CREATE INDEX unswept_events_evicted ON unswept_events (at, seq) WHERE kind = 'evict';

-- Who reads the events, and how far: a position, and the lease under which it moves.
CREATE TABLE unswept_consumers (
    name TEXT NOT NULL PRIMARY KEY,
    position INTEGER NOT NULL CHECK (position >= 0),
    token INTEGER NOT NULL CHECK (token >= 1),
    holder TEXT,
    expires_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL CHECK (attempts >= 0)
) STRICT, WITHOUT ROWID;

-- Events that a consumer gave up.
CREATE TABLE unswept_dead_letters (
    consumer TEXT NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    error TEXT NOT NULL,
    PRIMARY KEY (consumer, number)
) STRICT, WITHOUT ROWID;

-- Whether an event is anybody's dead letter.
CREATE INDEX unswept_dead_letters_number ON unswept_dead_letters (number);

-- Interned sets of labels, each a sorted JSON array; set 0 is the empty one. None is ever removed: a
-- claim looks for jobs set by set.
CREATE TABLE unswept_label_sets (
    id INTEGER PRIMARY KEY,
    labels TEXT NOT NULL UNIQUE
) STRICT;

INSERT INTO unswept_label_sets (id, labels) VALUES (0, '[]');
