"""Databases that restarted, failed over, or had enough of one order of locks."""

from __future__ import annotations

from typing import Final

from unswept.simulations.scenarios.scenario import Scenario

SCENARIOS: Final = (
    Scenario(
        "C80",
        "leases are rows, and outlive every connection",
        "A restart of the database dropped its session locks, and running jobs looked free.",
        """
        0   register B              -> registered, claims=0
        0   admit j1 A              -> admit: queued A e1 b1 d100
        0   start j1 A 1            -> start: running A e1 b2 d100
        0   live 20 S A j1/1        -> nothing
        20  live 5 S A j1/1 cut=S+A -> 24 S is quiesced, 24 A is quiesced
        25  claim B 1               -> got: nothing
        25  suspects                -> nothing
        25  live 100 S A j1/1       -> 30 S is readmitted, 30 A is readmitted
        125 find j1                 -> found: running A e1 b16 d220
        """,
    ),
    Scenario(
        "C81",
        "a store that is away for half a ttl costs nothing",
        "A blip of 5 seconds had the reaper fail every running job.",
        """
        0   admit j1 A               -> admit: queued A e1 b1 d100
        0   start j1 A 1             -> start: running A e1 b2 d100
        0   live 20 S A j1/1         -> nothing
        20  live 50 S A j1/1 cut=S+A -> 24 S is quiesced, 24 A is quiesced
        70  live 100 S A j1/1        -> 74 S is readmitted, 74 A is readmitted
        170 find j1                  -> found: running A e1 b16 d264
        """,
    ),
    Scenario(
        "C81-long",
        "a store that is away for many ttls costs nothing either",
        "After a failover everything looked expired to the first that came back.",
        """
        0    admit j1 A                -> admit: queued A e1 b1 d100
        0    start j1 A 1              -> start: running A e1 b2 d100
        0    live 20 S A j1/1          -> nothing
        20   live 900 S A j1/1 cut=S+A -> 24 S is quiesced, 24 A is quiesced
        920  suspects                  -> j1/1/4
        920  live 9 S                  -> 924 S is readmitted, 925 S sees j1
        929  live 200 S A j1/1         -> 933 A is readmitted
        1129 find j1                   -> found: running A e1 b26 d1223
        """,
    ),
    Scenario(
        "C84",
        "beats and sweeps that name the same jobs in other orders get all their answers",
        "A heartbeat and a reassignment locked the same rows in different orders.",
        """
        0   admit j1 A                   -> admit: queued A e1 b1 d100
        0   admit j2 A                   -> admit: queued A e1 b1 d100
        0   admit j3 A                   -> admit: queued A e1 b1 d100
        50  beat A j3/1 j1/1             -> j3 renewed d150, j1 renewed d150 (not registered)
        101 sweep S j1/1/2 j2/1/1 j3/1/2 -> j1 not_expired, j2 done, j3 not_expired
        102 beat A j3/1 j1/1 j2/1        -> j3 renewed d202, j1 renewed d202, \
            j2 orphaned (not registered)
        """,
    ),
)
