"""Shutdowns: what is renewed to the last, and what is not let go of too soon."""

from __future__ import annotations

from typing import Final

from unswept.simulations.scenarios.scenario import Scenario

SCENARIOS: Final = (
    Scenario(
        "C63",
        "a drain that takes many ttls loses no job",
        "Heartbeats stopped with the signal to end, and draining jobs were reclaimed.",
        """
        0   admit j1 A                   -> admit: queued A e1 b1 d100
        0   start j1 A 1                 -> start: running A e1 b2 d100
        0   live 20 S A j1/1             -> nothing
        20  live 500 S A j1/1 draining=A -> nothing
        520 complete j1 A 1 completed    -> complete: completed A e1 b54
        521 deregister A                 -> deregistered
        521 events                       -> admit/1, start/1, complete/1
        """,
    ),
    Scenario(
        "C63-sweep",
        "an instance that drains sweeps nobody",
        "An instance on its way out judged others by a heart that was about to stop.",
        """
        0   admit j1 X            -> admit: queued X e1 b1 d100
        0   live 50 S             -> nothing
        50  live 200 S draining=S -> nothing
        250 find j1               -> found: queued X e1 b1 d100
        """,
    ),
    Scenario(
        "C64",
        "work that was cancelled between its claim and its end is given back or lapses",
        "A cancelled handler wrote nothing, and its row counted against the limit for ever.",
        """
        0   register A budget=1      -> registered, claims=0
        0   enqueue j1 requeueable   -> enqueue: queued - e0 b0
        0   enqueue j2               -> enqueue: queued - e0 b0
        0   claim A 1                -> got: j1 running A e1 b1 d50
        1   claim A 2                -> refused budget
        2   release j1 A 1           -> release: queued - e2 b1
        3   claim A 3                -> got: j1 running A e3 b2 d53
        4   complete j1 A 3 canceled -> complete: canceled A e3 b2
        5   claim A 4                -> got: j2 running A e1 b1 d55
        5   live 250 S               -> 65 S sees j2, 95 S sweeps j2: done
        255 find j2                  -> found: orphaned A e1 b1
        """,
    ),
    Scenario(
        "C67",
        "an instance that leaves lets go of no job that still runs",
        "Deregistering released jobs that ran on past the drain's timeout.",
        """
        0   register A             -> registered, claims=0
        0   admit j1 A requeueable -> admit: queued A e1 b1 d100
        0   start j1 A 1           -> start: running A e1 b2 d100
        50  deregister A           -> deregistered
        50  find j1                -> found: running A e1 b2 d100
        50  live 60 S              -> nothing
        110 live 200 S             -> 110 S sees j1, 210 S sweeps j1: done
        310 find j1                -> found: orphaned A e1 b2
        """,
    ),
)
