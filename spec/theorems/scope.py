"""What the proofs assume, and what they say nothing about: as much a part of them as the claims."""

from __future__ import annotations

from typing import Final

ASSUMED: Final = (
    "Jobs are independent: each theorem speaks of one lease, one hold, one id, or one pair of rows,"
    " and carries over to a store of many because no transition reads another job's row. The claim"
    " (how many, and in which order) and dedup's key table are the two places that look at more.",
    "A command is one step: nothing comes between the guard and the write. That is what a"
    " transaction with the row's lock held must give.",
    "Two ids are only ever compared. They are drawn as numbers, whole numbers have no greatest, and"
    " times may be negative, so that the proofs range over more than any store holds.",
    "A row is well-formed before a move. Every birth makes it so and every move keeps it so, which"
    " is proved; the databases check it too.",
    "A column that neither the SQL nor the core's function names is only carried along. The SQL"
    " theorems draw a mark for it, with which no comparison and no sum would succeed.",
)
NOT_COVERED: Final = (
    "Whole-system schedules (L12 b and c) and liveness (L13, but for how long a breaker waits): for"
    " the explorer and the simulator.",
    "How a database locks, rounds, plans and recovers, and that its SQL means what three-valued"
    " logic says: for the conformance tests and the races on real servers.",
    "Claims, pages and housekeeping batches over many rows; the drivers; the runtime; the clocks"
    " themselves.",
)
