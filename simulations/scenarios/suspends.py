"""Hosts that were suspended, alone or with everybody."""

from __future__ import annotations

from typing import Final

from unswept.simulations.scenarios.scenario import Scenario

SCENARIOS: Final = (
    Scenario(
        "C55",
        "who wakes from a suspension beats first, hears what became of its jobs, and goes on",
        "A laptop slept: its process was pruned while it lived, and ran unregistered for days.",
        """
        0    register A                -> registered, claims=0
        0    admit j1 A                -> admit: queued A e1 b1 d100
        0    admit j2 A requeueable    -> admit: queued A e1 b1 d100
        0    live 20 S A j1/1 j2/1     -> nothing
        20   live 1000 S               -> 120 S sees j1, 120 S sees j2, 150 S sweeps j1: done, \
            220 S sweeps j2: done
        1020 forget A/10               -> forgot 1
        1020 live 20 S A j1/1 j2/1     -> 1020 A hears j1: orphaned, 1020 A hears j2: orphaned
        1040 complete j1 A 1 completed -> heal: completed A e1 b3
        1041 beat A                    -> nothing
        """,
    ),
    Scenario(
        "C55-all",
        "a host that slept with all its instances wakes to no sweep",
        "On waking the sweep came before the heartbeat, and orphaned everything.",
        """
        0    admit j1 A        -> admit: queued A e1 b1 d100
        0    live 60 S A j1/1  -> nothing
        60   live 5000         -> nothing
        5060 suspects          -> j1/1/7
        5060 live 9 S          -> 5061 S sees j1
        5069 live 100 S A j1/1 -> nothing
        5169 find j1           -> found: queued A e1 b17 d5259
        """,
    ),
    Scenario(
        "C57",
        "of two that both run a job that may be requeued only one is heard",
        "A desktop slept, a second run started elsewhere, and both published.",
        """
        0   register B                -> registered, claims=0
        0   admit j1 A requeueable    -> admit: queued A e1 b1 d100
        0   start j1 A 1              -> start: running A e1 b2 d100
        0   live 20 S A j1/1          -> nothing
        20  live 250 S                -> 120 S sees j1, 220 S sweeps j1: done
        270 requeue j1 1              -> requeue: queued - e2 b4
        271 claim B 1                 -> got: j1 running B e3 b5 d321
        280 live 10 A j1/1            -> 280 A hears j1: fenced
        290 output j1 A 1 0 mine      -> refused stale_epoch: running B e3 b5 d321
        291 complete j1 A 1 completed -> refused stale_epoch: running B e3 b5 d321
        292 complete j1 B 3 completed -> complete: completed B e3 b5
        """,
    ),
    Scenario(
        "C58",
        "who wakes to a job that was settled meanwhile completes nothing",
        "After waking a completion was written over a state that had moved on.",
        """
        0   admit j1 A                -> admit: queued A e1 b1 d100
        0   start j1 A 1              -> start: running A e1 b2 d100
        0   live 20 S A j1/1          -> nothing
        20  live 250 S                -> 120 S sees j1, 150 S sweeps j1: done
        270 settle j1 1 failed        -> settle: failed - e2 b4
        280 live 10 A j1/1            -> 280 A hears j1: fenced
        290 complete j1 A 1 completed -> refused stale_epoch: failed - e2 b4
        291 find j1                   -> found: failed - e2 b4
        """,
    ),
)
