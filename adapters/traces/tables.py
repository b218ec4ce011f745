"""The tables that the lines of traces are sorted into, one per type of record: what Parquet keeps.

`at` and `on` are keywords of SQL, so that they are called `at_ms` and `target` here. `n` is the
number of the run's last command by then, and orders what happened in the same millisecond.
"""

from __future__ import annotations

from typing import Final

from unswept.adapters.traces.relations import Relation

_ROW: Final = """STRUCT(status VARCHAR, owner VARCHAR, epoch BIGINT, beats BIGINT, deadline BIGINT,
    cancel_requested_at BIGINT, delayed_at BIGINT, ttl_ms BIGINT, confirm_ms BIGINT,
    requeue VARCHAR, transport VARCHAR, admitted_at BIGINT, "partition" VARCHAR, labels VARCHAR[],
    priority BIGINT, attempts BIGINT, max_attempts BIGINT, on_orphan VARCHAR,
    queue_deadline BIGINT, not_before BIGINT, claim_no BIGINT, beat_at BIGINT, started_at BIGINT,
    finished_at BIGINT, orphaned_at BIGINT, pid BIGINT, process_start BIGINT, boot_id VARCHAR)"""

_EVENT: Final = """STRUCT(job VARCHAR, epoch BIGINT, kind VARCHAR, "at" BIGINT, status VARCHAR,
    owner VARCHAR, actor VARCHAR, beats BIGINT, deadline BIGINT, beat_at BIGINT,
    first_seen_at BIGINT, forced BOOLEAN, cause VARCHAR)"""

_SIGHT: Final = """STRUCT(job_id VARCHAR, window_ms BIGINT, stood_still_ms BIGINT,
    longest_gap_ms BIGINT, gap_ms BIGINT)"""

_OUTBOX: Final = """STRUCT("row" STRUCT(name VARCHAR, position BIGINT, token BIGINT, holder VARCHAR,
    expires_at BIGINT, attempts BIGINT), letters STRUCT(consumer VARCHAR, number BIGINT)[],
    forgotten VARCHAR[])"""

_KEYS: Final = {
    "type": "VARCHAR",
    "at": "BIGINT",
    "n": "BIGINT",
    "format": "INTEGER",
    "version": "VARCHAR",
    "seed": "BIGINT",
    "settings": "JSON",
    "store": "VARCHAR",
    "store_clock_ms": "BIGINT",
    "excused": "VARCHAR[]",
    "name": "VARCHAR",
    "kind": "VARCHAR",
    "host": "VARCHAR",
    "event": "VARCHAR",
    "heartbeat_interval_ms": "BIGINT",
    "lease_ttl_ms": "BIGINT",
    "phase": "VARCHAR",
    "on": "VARCHAR",
    "ms": "BIGINT",
    "sender": "VARCHAR",
    "verb": "VARCHAR",
    "store_at": "BIGINT",
    "job": "VARCHAR",
    "epoch": "BIGINT",
    "beats": "BIGINT",
    "command": "JSON",
    "reply": "VARCHAR",
    "refusal": "VARCHAR",
    "changes": f"STRUCT(job VARCHAR, transition VARCHAR, before {_ROW}, after {_ROW})[]",
    "answer": "JSON",
    "events": f"{_EVENT}[]",
    "output": "BOOLEAN",
    "used": "VARCHAR[]",
    "left_behind": "VARCHAR[]",
    "outbox": _OUTBOX,
    "instance": "VARCHAR",
    "repeat": "BOOLEAN",
    "sights": f"{_SIGHT}[]",
    "requeue": "VARCHAR",
    "now": "BIGINT",
    "stamped_from": "BIGINT",
    "ttl_ms": "BIGINT",
    "margin_ms": "BIGINT",
    "consumer": "VARCHAR",
    "number": "BIGINT",
    "law": "VARCHAR",
    "offence": "VARCHAR",
    "digest": "VARCHAR",
    "commands": "BIGINT",
    "checked": "MAP(VARCHAR, BIGINT)",
    "faults": "MAP(VARCHAR, BIGINT)",
    "sometimes": "MAP(VARCHAR, BIGINT)",
    "live_jobs_swept": "BIGINT",
}
"""Every key that a record may have; others are skipped."""

_COLUMNS: Final = ", ".join(f"'{key}': '{kind}'" for key, kind in _KEYS.items())

READ_LINES: Final = f"""
    CREATE TEMP TABLE lines AS
    SELECT * REPLACE (line - min(line) OVER (PARTITION BY filename) + 1 AS line)
    FROM (SELECT *, row_number() OVER () AS line
          FROM read_json($files, format = 'newline_delimited', filename = true,
                         columns = {{{_COLUMNS}}}))
"""
"""Reads the files of traces; takes their names as `$files`."""

FIRST_LINES: Final = """
    SELECT filename, arg_min(type, line), arg_min(format, line), arg_min(seed, line),
           arg_min(version, line)
    FROM lines GROUP BY filename ORDER BY filename
"""
"""What each file says that it is."""

_NEEDED: Final = {
    "run": ("version", "seed", "settings", "store", "store_clock_ms", "excused"),
    "instance": ("at", "name", "kind", "host", "event"),
    "fault": ("at", "name", "event"),
    "command": (
        *("at", "n", "sender", "verb", "store_at", "command", "reply"),
        *("changes", "answer", "events", "output", "used"),
    ),
    "sight": ("at", "instance", "job", "epoch", "beats", "event"),
    "send": ("at", "n", "instance", "verb", "phase", "repeat", "sights"),
    "work": ("at", "n", "instance", "job", "epoch", "requeue", "now", "margin_ms"),
    "delivery": ("at", "n", "consumer", "number"),
    "violation": ("at", "n", "law", "offence"),
    "end": ("at", "digest", "commands", "checked", "faults", "sometimes", "live_jobs_swept"),
}
"""What every record of a type has. Where a key is gone there would be nulls, which the laws would
take for what happened."""


def _first_missing(keys: tuple[str, ...]) -> str:
    return " ".join(f"WHEN \"{key}\" IS NULL THEN '{key}'" for key in keys)


_MISSING: Final = " ".join(
    f"WHEN '{type_}' THEN CASE {_first_missing(keys)} END" for type_, keys in _NEEDED.items()
)

INCOMPLETE_LINES: Final = f"""
    SELECT filename, line, type,
           CASE WHEN type IS NULL THEN 'type' ELSE CASE type {_MISSING} END END AS missing
    FROM lines WHERE missing IS NOT NULL ORDER BY filename, line LIMIT 1
"""
"""The first line that lacks a key, and which."""

_RUN = {"seed": "the run"}
_AT = {**_RUN, "line": "its line in the trace", "at_ms": "true milliseconds since the run began"}
_ORDERED = {**_AT, "n": "how many commands the store had carried out by then, this one included"}


def _table(
    name: str,
    sentence: str,
    columns: dict[str, str],
    type_: str,
    picked: str,
    source: str = "lines",
) -> Relation:
    seeds = "(SELECT filename, seed AS of_seed FROM lines WHERE type = 'run')"
    sql = f"SELECT of_seed AS seed, {picked} FROM {source} JOIN {seeds} USING (filename)"
    return Relation(name, sentence, columns, f"{sql} WHERE type = '{type_}' ORDER BY seed, line")


def _each(key: str) -> str:
    """One row per member of a list of the record, as `each`, at its place `i`."""
    return f"(SELECT *, generate_subscripts({key}, 1) AS i, unnest({key}) AS each FROM lines)"


TABLES: Final = (
    _table(
        "runs",
        "One run, and what makes the same one again.",
        {
            **_RUN,
            "version": "the version that wrote the trace",
            "design": "the design under test",
            "store": "the store under test",
            "store_clock_ms": "the store clock when the run began",
            "settings": "all settings, as JSON",
            "excused": "laws that this design is not held to",
        },
        "run",
        "version, settings ->> 'design' AS design, store, store_clock_ms, settings, excused",
    ),
    _table(
        "instances",
        "Something that an instance, or another process, does or suffers.",
        {
            **_AT,
            "name": "whose",
            "kind": "gateway, runner, producer, authority, consumer or stranger",
            "host": "where it runs",
            "event": "boots, phase, stands_still, goes_on, drains, stopped or killed",
            "phase": "of event = phase: the phase of its heart from now on",
            "heartbeat_interval_ms": "of event = boots: its policy's",
            "lease_ttl_ms": "of event = boots: its policy's",
        },
        "instance",
        'line, "at" AS at_ms, name, kind, host, event, phase, heartbeat_interval_ms, lease_ttl_ms',
    ),
    _table(
        "faults",
        "A fault that strikes, begins or ends.",
        {
            **_AT,
            "name": "which",
            "event": "strikes, begins or ends",
            "target": "the instance or job that it befalls; null: all",
            "ms": "of a step of the store clock: by how much",
        },
        "fault",
        'line, "at" AS at_ms, name, event, "on" AS target, ms',
    ),
    _table(
        "commands",
        "A command that the store carried out.",
        {
            **_ORDERED,
            "sender": "who sent it",
            "verb": "which",
            "store_at": "the store clock",
            "job": "the one job that it names",
            "epoch": "the epoch that it names",
            "command": "all that it says, as JSON",
            "reply": "the reply in a few words",
            "refusal": "why it was refused",
            "answer": "the reply, as JSON",
            "output": "it stored a chunk of output",
            "used": "the ids that it used up",
        },
        "command",
        'line, "at" AS at_ms, n, sender, verb, store_at, job, epoch, command, reply, refusal, '
        "answer, output, used",
    ),
    _table(
        "changes",
        "A job's row that a command changed.",
        {
            **_ORDERED,
            "i": "its place among the changes of that command",
            "sender": "whose command",
            "verb": "which command",
            "store_at": "the store clock",
            "job": "the job",
            "transition": "what happened to it",
            "before": "the row as it was, a struct: before.status, before.deadline, ...; or null",
            "after": "the row as it is, likewise",
        },
        "command",
        'line, "at" AS at_ms, n, i, sender, verb, store_at, each.job, each.transition, '
        "each.before, each.after",
        _each("changes"),
    ),
    _table(
        "events",
        "An event that a command left in the store.",
        {
            **_ORDERED,
            "i": "its place among the events of that command",
            "job": "the job",
            "epoch": "its epoch after the change",
            "kind": "what happened",
            "store_at": "the store clock",
            "status": "the job's status after it",
            "owner": "whose hold it was",
            "actor": "the instance that asked for it",
            "beats": "the beats of the stamp that stood",
            "deadline": "the deadline before it",
            "beat_at": "the last accepted stamp before it",
            "first_seen_at": "of a sweep: when the sweeper first saw the suspect",
            "forced": "of a requeue: requeue = never was overridden",
            "cause": "of a sweep: why",
        },
        "command",
        'line, "at" AS at_ms, n, i, each.job, each.epoch, each.kind, each."at" AS store_at, '
        "each.status, each.owner, each.actor, each.beats, each.deadline, each.beat_at, "
        "each.first_seen_at, each.forced, each.cause",
        _each("events"),
    ),
    _table(
        "outbox",
        "What a command left of a consumer, or took of the events.",
        {
            **_ORDERED,
            "verb": "which command",
            "store_at": "the store clock",
            "consumer": "the consumer that it names",
            "row": "that consumer's row after it, a struct: row.position, ...; or null",
            "letters": "the dead letters that it left, as structs",
            "forgotten": "the jobs whose events it took",
        },
        "command",
        "line, \"at\" AS at_ms, n, verb, store_at, command ->> 'consumer' AS consumer, "
        'outbox."row" AS "row", outbox.letters AS letters, outbox.forgotten AS forgotten',
        "(FROM lines WHERE outbox IS NOT NULL)",
    ),
    _table(
        "left_behind",
        "A job that was evicted, and whose request, result or output is still there.",
        {**_ORDERED, "job": "the job"},
        "command",
        'line, "at" AS at_ms, n, each AS job',
        _each("left_behind"),
    ),
    _table(
        "sights",
        "A suspicion of an instance that begins, leads to a sweep, or is dropped.",
        {
            **_AT,
            "instance": "whose",
            "job": "of which job",
            "epoch": "under which stamp",
            "beats": "under which stamp",
            "event": "suspected, confirmed or dropped",
        },
        "sight",
        'line, "at" AS at_ms, instance, job, epoch, beats, event',
    ),
    _table(
        "sends",
        "An admit, claim, start, delay, sweep or clean-up that an instance sends.",
        {
            **_ORDERED,
            "instance": "who sends it",
            "verb": "what",
            "phase": "the phase of its heart",
            "repeat": "it is a claim that was sent before and not answered",
            "sights": "of a sweep or clean-up: what the simulator measured of each target's "
            "window, as structs",
        },
        "send",
        'line, "at" AS at_ms, n, instance, verb, phase, repeat, sights',
    ),
    _table(
        "works",
        "A step of work that an instance begins.",
        {
            **_ORDERED,
            "instance": "who works",
            "job": "on what",
            "epoch": "under which epoch",
            "requeue": "may somebody else run it too?",
            "now": "its own clock",
            "stamped_from": "the first send of the last stamp that it heard of, on its own clock",
            "ttl_ms": "the ttl of that stamp",
            "margin_ms": "its policy's local margin",
        },
        "work",
        'line, "at" AS at_ms, n, instance, job, epoch, requeue, now, stamped_from, ttl_ms, '
        "margin_ms",
    ),
    _table(
        "deliveries",
        "An event that a consumer has handled.",
        {**_ORDERED, "consumer": "for which consumer", "number": "the event's number"},
        "delivery",
        'line, "at" AS at_ms, n, consumer, number',
    ),
    _table(
        "violations",
        "A law that the simulator found broken; it ends the run.",
        {
            **_ORDERED,
            "law": "the law",
            "offence": "how it was broken",
            "job": "the job that the offence names",
        },
        "violation",
        'line, "at" AS at_ms, n, law, offence, job',
    ),
    _table(
        "ends",
        "What a run came to; a run that was cut short has none.",
        {
            **_RUN,
            "at_ms": "how long it lasted, in true milliseconds",
            "digest": "a name for all that happened: the same seed gives the same",
            "commands": "how many the store carried out",
            "checked": "how often each law judged, a map",
            "faults": "how often each fault struck, a map",
            "sometimes": "how often each rare event happened, a map",
            "live_jobs_swept": "jobs that were swept while their owners lived",
        },
        "end",
        '"at" AS at_ms, digest, commands, checked, faults, sometimes, live_jobs_swept',
    ),
)
