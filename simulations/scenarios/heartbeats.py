"""Heartbeats that failed while the work went on, and owners that beat for dead work."""

from __future__ import annotations

from typing import Final

from unswept.simulations.scenarios.scenario import Scenario

SCENARIOS: Final = (
    Scenario(
        "C31",
        "an owner whose beats stand still past its ttl may be swept, and goes on",
        "One job's long sleep blocked the loop that renewed the leases of the others.",
        """
        0   admit j1 A http           -> admit: queued A e1 b1 d300
        0   start j1 A 1              -> start: running A e1 b2 d300
        0   live 20 S A j1/1          -> nothing
        20  live 450 S                -> 320 S sees j1, 350 S sweeps j1: done
        470 output j1 A 1 0 on        -> output: orphaned A e1 b4
        471 complete j1 A 1 completed -> heal: completed A e1 b4
        """,
    ),
    Scenario(
        "C34",
        "a heart that has failed beats again, and is readmitted",
        "One connection error ended the heartbeat thread, and the worker ran on unlisted.",
        """
        0  admit j1 A           -> admit: queued A e1 b1 d100
        0  live 20 A j1/1       -> nothing
        20 live 20 A j1/1 cut=A -> 24 A is quiesced
        40 live 20 A j1/1       -> 44 A is readmitted
        60 find j1              -> found: queued A e1 b7 d154
        """,
    ),
    Scenario(
        "C35",
        "beats that fail for less than the ttl cost nothing",
        "One failed beat aborted every task in flight, and charged each an attempt.",
        """
        0   admit j1 A requeueable    -> admit: queued A e1 b1 d100
        0   start j1 A 1              -> start: running A e1 b2 d100
        0   live 21 S A j1/1          -> nothing
        21  live 80 S A j1/1 cut=A    -> 34 A is quiesced
        101 live 200 S A j1/1         -> 106 A is readmitted
        301 find j1                   -> found: running A e1 b27 d396
        302 complete j1 A 1 completed -> complete: completed A e1 b27
        303 events                    -> admit/1, start/1, complete/1
        """,
    ),
    Scenario(
        "C36",
        "what an owner writes that was cut off for too long is refused",
        "An error of the renewal was only logged, and the worker ran on past its expiry.",
        """
        0   register B                -> registered, claims=0
        0   admit j1 A requeueable    -> admit: queued A e1 b1 d100
        0   start j1 A 1              -> start: running A e1 b2 d100
        0   live 300 S A j1/1 cut=A   -> 120 S sees j1, 220 S sweeps j1: done
        300 requeue j1 1              -> requeue: queued - e2 b2
        301 claim B 1                 -> got: j1 running B e3 b3 d351
        302 output j1 A 1 0 late      -> refused stale_epoch: running B e3 b3 d351
        303 complete j1 A 1 completed -> refused stale_epoch: running B e3 b3 d351
        304 live 2 A j1/1             -> 304 A hears j1: fenced
        306 find j1                   -> found: running B e3 b3 d351
        """,
    ),
    Scenario(
        "C37",
        "a job that its owner no longer holds expires, though the owner beats for others",
        "A final write failed, and the job stayed claimed while its owner's process beat.",
        """
        0   admit j1 A                -> admit: queued A e1 b1 d100
        0   admit j2 A                -> admit: queued A e1 b1 d100
        0   live 50 S A j1/1 j2/1     -> nothing
        50  live 200 S A j2/1         -> 160 S sees j1, 160 A sees j1, 190 S sweeps j1: done, \
            190 A sweeps j1: repeated
        250 find j1                   -> found: orphaned A e1 b6
        250 find j2                   -> found: queued A e1 b38 d340
        251 complete j1 A 1 completed -> heal: completed A e1 b6
        """,
    ),
    Scenario(
        "C38",
        "a final write may be repeated for as long as it takes",
        "A final write that was dropped left its reservation behind for good.",
        """
        0   admit j1 A                       -> admit: queued A e1 b1 d100
        0   start j1 A 1                     -> start: running A e1 b2 d100
        50  complete j1 A 1 completed code=0 -> complete: completed A e1 b2
        51  complete j1 A 1 completed code=0 -> repeated: completed A e1 b2
        900 complete j1 A 1 completed code=0 -> repeated: completed A e1 b2
        901 find j1                          -> found: completed A e1 b2 code=0
        902 events                           -> admit/1, start/1, complete/1
        """,
    ),
)
