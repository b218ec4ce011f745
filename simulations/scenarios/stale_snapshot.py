"""Sweeps that acted on what had been true when they looked."""

from __future__ import annotations

from typing import Final

from unswept.simulations.scenarios.scenario import Scenario

SCENARIOS: Final = (
    Scenario(
        "C10",
        "a job that has ended since it was seen is not swept",
        "A rescuer read the running rows, wrote by id alone, and overwrote completions.",
        """
        0   admit j1 A                -> admit: queued A e1 b1 d100
        101 suspects                  -> j1/1/1
        102 complete j1 A 1 completed -> complete: completed A e1 b1
        103 sweep R j1/1/1            -> j1 already_terminal
        104 find j1                   -> found: completed A e1 b1 code=None
        """,
    ),
    Scenario(
        "C10-attempt",
        "a fresh attempt at a job is not swept for the old one",
        "The same rescuer overwrote the attempt that another rescuer had started.",
        """
        0   register B             -> registered, claims=0
        0   admit j1 A requeueable -> admit: queued A e1 b1 d100
        101 suspects               -> j1/1/1
        102 sweep S j1/1/1         -> j1 done
        102 requeue j1 1           -> requeue: queued - e2 b1
        103 claim B 1              -> got: j1 running B e3 b2 d153
        200 sweep R j1/1/1         -> j1 stale_epoch
        200 find j1                -> found: running B e3 b2 d153
        """,
    ),
    Scenario(
        "C11",
        "a lease that was renewed since it was seen is not swept",
        "The candidates were chosen by time, but the update tested only the status again.",
        """
        0   admit j1 A     -> admit: queued A e1 b1 d100
        101 suspects       -> j1/1/1
        102 beat A j1/1    -> j1 renewed d202 (not registered)
        103 sweep S j1/1/1 -> j1 beats_moved
        103 find j1        -> found: queued A e1 b2 d202
        """,
    ),
    Scenario(
        "C11-start",
        "a lease that was stamped by a start is not swept under the stamp of its grant",
        "The same, where the owner was only late with its start.",
        """
        0   admit j1 A     -> admit: queued A e1 b1 d100
        101 suspects       -> j1/1/1
        102 start j1 A 1   -> start: running A e1 b2 d202
        203 sweep S j1/1/1 -> j1 beats_moved
        203 suspects       -> j1/1/2
        """,
    ),
    Scenario(
        "C12",
        "what has ended is no suspect, ever",
        "A job that had succeeded was failed later, for a side index still listed it.",
        """
        0    admit j1 A                -> admit: queued A e1 b1 d100
        0    start j1 A 1              -> start: running A e1 b2 d100
        50   complete j1 A 1 completed -> complete: completed A e1 b2
        1000 suspects                  -> nothing
        1000 live 200 S                -> nothing
        1200 sweep S j1/1/2            -> j1 already_terminal
        1200 find j1                   -> found: completed A e1 b2 code=None
        """,
    ),
    Scenario(
        "C14",
        "of two sweepers with the same list the second does nothing",
        "A second recovery ran the job although its conditional update had hit no row.",
        """
        0   register B             -> registered, claims=0
        0   admit j1 A requeueable -> admit: queued A e1 b1 d100
        101 suspects               -> j1/1/1
        102 sweep S j1/1/1         -> j1 done
        102 sweep R j1/1/1         -> j1 repeated
        103 requeue j1 1           -> requeue: queued - e2 b1
        103 requeue j1 1           -> repeated: queued - e2 b1
        104 sweep R j1/1/1         -> j1 stale_epoch
        105 claim B 1              -> got: j1 running B e3 b2 d155
        106 events                 -> admit/1, orphan/1, requeue/2, claim/3
        """,
    ),
)
