"""Clocks that stepped, and clocks that nobody should have asked."""

from __future__ import annotations

from typing import Final

from unswept.simulations.scenarios.scenario import Scenario

SCENARIOS: Final = (
    Scenario(
        "C45",
        "only the store's clock decides, whatever other clocks say",
        "A host whose clock was ahead of the others declared their live work dead.",
        """
        5000 admit j1 A       -> admit: queued A e1 b1 d5100
        5000 live 60 S A j1/1 -> nothing
        5060 sweep R j1/1/1   -> j1 beats_moved
        5060 sweep R j1/1/7   -> j1 not_expired
        5060 find j1          -> found: queued A e1 b7 d5150
        """,
    ),
    Scenario(
        "C46",
        "a renewal that waited past its ttl is stamped by the time at which it is made",
        "The time was read before the wait for a lock, so the new deadline was past already.",
        """
        0   admit j1 A  -> admit: queued A e1 b1 d100
        250 beat A j1/1 -> j1 renewed d350 (not registered)
        250 suspects    -> nothing
        """,
    ),
    Scenario(
        "C49",
        "a step forward of the store clock sweeps nobody who renews",
        "A step of the clock evicted everybody at once.",
        """
        0        admit j1 A        -> admit: queued A e1 b1 d100
        0        live 60 S A j1/1  -> nothing
        86400000 suspects          -> j1/1/7
        86400000 live 9 S          -> 86400000 S sees j1
        86400009 live 100 S A j1/1 -> nothing
        86400109 find j1           -> found: queued A e1 b17 d86400199
        """,
    ),
    Scenario(
        "C49-back",
        "a step back of the store clock sweeps nobody, and its dead are found all the same",
        "A step back made ages negative.",
        """
        9000 admit j1 A        -> admit: queued A e1 b1 d9100
        9000 admit j2 B        -> admit: queued B e1 b1 d9100
        9000 live 60 S A j1/1  -> nothing
        5000 live 100 S A j1/1 -> nothing
        5100 find j1           -> found: queued A e1 b17 d5190
        5100 find j2           -> found: queued B e1 b1 d9100
        9101 live 100 S A j1/1 -> 9101 S sees j1, 9101 S sees j2, 9101 A sees j2, \
            9131 S sweeps j2: done, 9131 A sweeps j2: repeated
        """,
    ),
    Scenario(
        "C50",
        "a suspicion stands for a whole window before the sweep",
        "Whatever jumped or slept, a single look was taken for proof.",
        """
        0   admit j1 X -> admit: queued X e1 b1 d100
        0   live 101 S -> nothing
        101 suspects   -> j1/1/1
        101 live 18 S  -> nothing
        119 live 31 S  -> 120 S sees j1
        150 live 2 S   -> 150 S sweeps j1: done
        """,
    ),
    Scenario(
        "C50-gap",
        "a sweeper whose own beats fail starts its window anew",
        "After an outage the first look found everybody dead.",
        """
        0   admit j1 X      -> admit: queued X e1 b1 d100
        0   live 140 S      -> 120 S sees j1
        140 live 10 S cut=S -> 144 S is quiesced
        150 live 50 S       -> 154 S is readmitted, 180 S sweeps j1: done
        """,
    ),
    Scenario(
        "C50-ttl",
        "a job is judged by the ttl that its owner stamped",
        "A contender judged the holder by its own, shorter duration.",
        """
        0   admit j1 A http  -> admit: queued A e1 b1 d300
        0   live 290 S       -> nothing
        290 live 50 S A j1/1 -> nothing
        340 find j1          -> found: queued A e1 b6 d630
        """,
    ),
)
