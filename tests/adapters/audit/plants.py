"""One offence each, planted by hand into the rows of the story; `{}` stands before a table's name.

The text is what the audit's first offence must say.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import NamedTuple


class Plant(NamedTuple):
    """What to do to the rows, and which law must be found broken."""

    law: str
    sql: tuple[str, ...]
    says: str
    only_sqlite: bool = False
    """Postgres's own constraints forbid it."""


_EVENT = "(job_id, epoch, kind, at, status, owner, beats, forced)"

PLANTS = MappingProxyType(
    {
        "swept on the deadline": Plant(
            "L1",
            (
                "UPDATE {}events SET at = deadline, first_seen_at = deadline - 60"
                " WHERE job_id = 'healed' AND kind = 'orphan'",
            ),
            "its owner's lease ran to",
        ),
        "swept on the deadline of a delay": Plant(
            "L2",
            (
                "UPDATE {}events SET at = deadline, first_seen_at = deadline - 60"
                " WHERE job_id = 'orphan' AND kind = 'orphan'",
            ),
            "its deadline was",
        ),
        "swept an older beat": Plant(
            "L2",
            ("UPDATE {}events SET beats = 1 WHERE job_id = 'failing' AND kind = 'orphan'",),
            "had reached beat 2",
        ),
        "swept without a deadline": Plant(
            "L2",
            ("UPDATE {}events SET deadline = NULL WHERE job_id = 'failing' AND kind = 'orphan'",),
            "had no deadline",
        ),
        "an epoch that went back": Plant(
            "L3",
            (
                "UPDATE {}events SET epoch = 0 WHERE job_id = 'back' AND kind = 'release'",
                "UPDATE {}jobs SET epoch = 0 WHERE id = 'back'",
            ),
            "to queued, epoch 0, by release",
        ),
        "a stranger's completion": Plant(
            "L3",
            ("UPDATE {}events SET actor = 'b' WHERE job_id = 'done' AND kind = 'complete'",),
            "was held by a, and b did the complete",
        ),
        "another owner's completion": Plant(
            "L3",
            (
                "UPDATE {}events SET owner = 'b', actor = 'b'"
                " WHERE job_id = 'done' AND kind = 'complete'",
                "UPDATE {}jobs SET owner = 'b' WHERE id = 'done'",
            ),
            "was held by a, and the event of its complete says b",
        ),
        "a late result that was not late": Plant(
            "L3",
            ("UPDATE {}events SET epoch = 2 WHERE kind = 'stale_result'",),
            "late result of epoch 2",
        ),
        "output under no hold": Plant(
            "L3",
            ("UPDATE {}output SET epoch = 7",),
            "has output of epoch 7",
        ),
        "a result of nobody's": Plant(
            "L3",
            (
                "INSERT INTO {0}results (job_id, body)"
                " SELECT 'waiting', body FROM {0}results WHERE job_id = 'done'",
            ),
            "has a result",
        ),
        "an orphan that was completed": Plant(
            "L4",
            ("UPDATE {}events SET kind = 'complete' WHERE kind = 'heal'",),
            "went from orphaned, epoch 1, to failed, epoch 1, by complete",
        ),
        "an end that moved": Plant(
            "L4",
            ("UPDATE {}jobs SET finished_at = finished_at + 1 WHERE id = 'done'",),
            "ended at",
        ),
        "a release of what may not be requeued": Plant(
            "L4",
            ("UPDATE {}jobs SET requeue = 'never' WHERE id = 'back'",),
            "may not be requeued, and was let go by a release",
        ),
        "a step without its event": Plant(
            "L5",
            ("DELETE FROM {}events WHERE job_id = 'healed' AND kind = 'orphan'",),
            "went from running, epoch 1, to failed, epoch 1, by heal",
        ),
        "a row ahead of its events": Plant(
            "L5",
            ("DELETE FROM {}events WHERE job_id = 'live' AND kind = 'start'",),
            "and its last event says queued",
        ),
        "a birth without its event": Plant(
            "L5",
            (
                "UPDATE {}events SET epoch = 2 WHERE job_id = 'live'",
                "UPDATE {}jobs SET epoch = 2 WHERE id = 'live'",
            ),
            "begins with the event of a admit, as queued in epoch 2",
        ),
        "a late result of an evicted job": Plant(
            "L5",
            (
                f"INSERT INTO {{}}events {_EVENT}"
                " VALUES ('evicted', 0, 'stale_result', 1, 'failed', 'a', 1, 0)",
            ),
            "was evicted, and left the event of a late result",
        ),
        "an id that another bore": Plant(
            "L6",
            ("UPDATE {}job_ids SET first_owner = 'b' WHERE id = 'done'",),
            "had been used",
        ),
        "an id that was spent on a twin": Plant(
            "L6",
            ("UPDATE {}job_ids SET joined_to = 'done' WHERE id = 'live'",),
            "had been used",
        ),
        "a cancel request that moved": Plant(
            "L7",
            ("UPDATE {}jobs SET cancel_requested_at = 5 WHERE id = 'asked'",),
            "and its row says 5",
        ),
        "a start after a cancel request": Plant(
            "L7",
            (
                "UPDATE {}events SET seq = 1000 WHERE job_id = 'asked' AND kind = 'start'",
                "UPDATE {}events SET status = 'queued'"
                " WHERE job_id = 'asked' AND kind = 'request_cancel'",
            ),
            "left the event of a start to running",
            only_sqlite=True,  # which numbers its events itself
        ),
        "a delay that was forgotten": Plant(
            "L9",
            ("UPDATE {}jobs SET delayed_at = NULL WHERE id = 'orphan'",),
            "and its row says never",
        ),
        "a delay of a live lease": Plant(
            "L9",
            ("UPDATE {}events SET deadline = at WHERE kind = 'delay'",),
            "was delayed at",
        ),
        "a sweep at first sight": Plant(
            "L12a",
            (
                "UPDATE {}events SET first_seen_at = at - 1"
                " WHERE job_id = 'healed' AND kind = 'orphan'",
            ),
            "its window is 60 ms",
        ),
        "a job that is lost": Plant(
            "L14",
            ("DELETE FROM {}jobs WHERE id = 'waiting'",),
            "has no row",
        ),
        "an id that is forgotten": Plant(
            "L14",
            ("DELETE FROM {}job_ids WHERE id = 'live'",),
            "is not remembered as used",
        ),
        "a request that is lost": Plant(
            "L14",
            ("DELETE FROM {}requests WHERE job_id = 'live'",),
            "no request",
        ),
        "a result that is lost": Plant(
            "L14",
            ("DELETE FROM {}results WHERE job_id = 'done'",),
            "has no result",
        ),
        "a live job that was evicted": Plant(
            "L14",
            (
                "UPDATE {}events SET kind = 'evict' WHERE job_id = 'live' AND kind = 'start'",
                "DELETE FROM {}jobs WHERE id = 'live'",
                "DELETE FROM {}requests WHERE job_id = 'live'",
            ),
            "was queued and was evicted",
        ),
        "a key of another request": Plant(
            "L15",
            ("UPDATE {}dedup_keys SET request_key = 'other'",),
            "and its request says p, k",
        ),
        "a failed twin": Plant(
            "L15",
            (
                "UPDATE {}job_ids SET joined_to = 'failing', born_at = born_at + 100000"
                " WHERE id = 'twin'",
            ),
            "was given failing",
        ),
        "an attempt too many": Plant(
            "F1",
            ("UPDATE {}jobs SET attempts = 2 WHERE id = 'back'",),
            "and its row says 2",
        ),
        "a number that was not handed out": Plant(
            "F1",
            (
                "UPDATE {}jobs SET owner = 'r1', claim_no = 9 WHERE id = 'live'",
                "UPDATE {}events SET owner = 'r1', actor = 'r1' WHERE job_id = 'live'",
                "UPDATE {}job_ids SET first_owner = 'r1' WHERE id = 'live'",
            ),
            "its last number is 2",
        ),
        "a claim of what somebody held": Plant(
            "F1",
            (
                "UPDATE {}events SET kind = 'claim', epoch = 2"
                " WHERE job_id = 'live' AND kind = 'start'",
                "UPDATE {}jobs SET epoch = 2, attempts = 2 WHERE id = 'live'",
            ),
            "was held by a, and was claimed by a",
        ),
        "a policy that was not followed": Plant(
            "F2",
            ("UPDATE {}jobs SET on_orphan = 'mark' WHERE id = 'failing'",),
            "its policy is mark",
        ),
        "a policy's settlement without a sweep": Plant(
            "F2",
            ("UPDATE {}events SET actor = 'b' WHERE job_id = 'failing' AND kind = 'settle'",),
            "and no sweep in the same step",
        ),
        "a position beyond the events": Plant(
            "F5",
            ("UPDATE {}consumers SET position = 100000",),
            "reader acknowledged up to event 100000",
        ),
        "a dead letter beyond the position": Plant(
            "F5",
            ("UPDATE {}dead_letters SET number = 5",),
            "reader gave up event 5, and has come to 4",
        ),
        "a dead letter without its event": Plant(
            "F5",
            ("UPDATE {}dead_letters SET number = 0",),
            "reader gave up event 0, which is gone",
        ),
        "an output that was left behind": Plant(
            "L14",
            ("UPDATE {}output SET job_id = 'gone'",),
            "has no row, and its output is there",
        ),
        "a malformed row": Plant(
            "WF",
            ("UPDATE {}jobs SET confirm_ms = NULL WHERE id = 'live'",),
            "is running, epoch 1, of a",
            only_sqlite=True,
        ),
    }
)
