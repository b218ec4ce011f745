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
        f"SELECT {_STEP}, {_WENT} || {_TO} FROM moves WHERE epoch < p_epoch AND p_kind <> 'evict'",
    ),
)
