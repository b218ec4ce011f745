"""Sweepers that stopped, judged what they did not know, or could not reach a row."""

from __future__ import annotations

from typing import Final

from unswept.simulations.scenarios.scenario import Scenario

SCENARIOS: Final = (
    Scenario(
        "C68",
        "a job whose key has been used again is swept and requeued like any other",
        "One row's unique violation undid the whole batch at every tick, for ever.",
        """
        0   admit j1 A requeueable then=requeue/3          -> admit: queued A e1 b1 d100
        0   admit j2 A requeueable then=requeue/3 key=me/k -> admit: queued A e1 b1 d100
        0   admit j3 A requeueable then=requeue/3          -> admit: queued A e1 b1 d100
        1   admit j4 B requeueable key=me/k fresh          -> admit: queued B e1 b1 d101
        101 sweep S j1/1/1 j2/1/1 j3/1/1 gone/1/1          -> j1 done, j2 done, j3 done, \
            gone absent
        101 find j2                                        -> found: queued - e2 b1
        102 admit j5 B key=me/k                            -> admit: queued B e1 b1 d202
        """,
    ),
    Scenario(
        "C69",
        "sweeping goes on though nothing can be claimed",
        "The sweeper was a job of the queue that it repairs, and stalled with it.",
        """
        0   register A budget=1 -> registered, claims=0
        0   enqueue j1          -> enqueue: queued - e0 b0
        0   enqueue j2          -> enqueue: queued - e0 b0
        0   claim A 1           -> got: j1 running A e1 b1 d50
        0   live 150 S A        -> 60 S sees j1, 60 A sees j1, 90 S sweeps j1: done, \
            90 A sweeps j1: repeated
        150 claim A 2           -> got: j2 running A e1 b1 d200
        151 find j1             -> found: orphaned A e1 b1
        """,
    ),
    Scenario(
        "C73",
        "a sweeper marks jobs of a kind that it does not know, and ends none",
        "A reaper discarded the jobs of a kind that was new to it.",
        """
        0   register A                        -> registered, claims=0
        0   enqueue j1 in=tenant-2 labels=gpu -> enqueue: queued - e0 b0
        0   claim A 1 in=tenant-2 labels=gpu  -> got: j1 running A e1 b1 d50
        0   live 150 S                        -> 60 S sees j1, 90 S sweeps j1: done
        150 find j1                           -> found: orphaned A e1 b1
        151 complete j1 A 1 completed         -> heal: completed A e1 b1
        """,
    ),
    Scenario(
        "C74",
        "a job whose owner's row is gone is swept all the same",
        "The worker's row was pruned first, and then no predicate matched its jobs.",
        """
        0   register A     -> registered, claims=0
        0   register B     -> registered, claims=0
        0   admit j1 A     -> admit: queued A e1 b1 d100
        0   enqueue j2     -> enqueue: queued - e0 b0
        501 forget A/0 B/0 -> forgot 2
        501 suspects       -> j1/1/1
        501 live 80 S      -> 521 S sees j1, 551 S sweeps j1: done
        581 find j1        -> found: orphaned A e1 b1
        582 find j2        -> found: queued - e0 b0
        """,
    ),
    Scenario(
        "C76",
        "two sweepers at once do together what one does",
        "A leader's stale clean-up hit the next leader's term.",
        """
        0   admit j1 X          -> admit: queued X e1 b1 d100
        0   admit j2 A          -> admit: queued A e1 b1 d100
        0   live 200 R S A j2/1 -> 120 R sees j1, 120 S sees j1, 120 A sees j1, \
            150 R sweeps j1: done, 150 S sweeps j1: repeated, 150 A sweeps j1: repeated
        200 events              -> admit/1, admit/1, orphan/1
        """,
    ),
    Scenario(
        "C76-stopped",
        "a sweeper that stands still in the middle of its window judges nobody by it",
        "A slow renewal stretched the time for which a leader held itself to be one.",
        """
        0   admit j1 A       -> admit: queued A e1 b1 d100
        0   live 20 S A j1/1 -> nothing
        20  live 110 S       -> 120 S sees j1
        130 live 400         -> nothing
        530 live 9 S         -> nothing
        539 live 40 S A j1/1 -> nothing
        579 find j1          -> found: queued A e1 b7 d669
        """,
    ),
)
