"""Cancel requests, and what retention may take."""

from __future__ import annotations

from typing import Final

from unswept.simulations.scenarios.scenario import Scenario

SCENARIOS: Final = (
    Scenario(
        "C101",
        "a wish to cancel comes with the next heartbeat, whoever had it",
        "A cancel was noticed only at some later look, and nobody said when.",
        """
        0  admit j1 A               -> admit: queued A e1 b1 d100
        0  start j1 A 1             -> start: running A e1 b2 d100
        0  live 21 A j1/1           -> nothing
        21 cancel j1                -> request_cancel: running A e1 b5 d120 c21
        21 cancel j1                -> repeated: running A e1 b5 d120 c21
        21 live 10 A j1/1           -> 30 A hears j1: cancel
        31 complete j1 A 1 canceled -> complete: canceled A e1 b6 c21
        """,
    ),
    Scenario(
        "C102",
        "retention takes what has ended long ago, and nothing else",
        "Retention went by creation, and deleted jobs that ran or had just ended.",
        """
        0    admit j1 A                -> admit: queued A e1 b1 d100
        0    admit j2 A                -> admit: queued A e1 b1 d100
        0    admit j3 A                -> admit: queued A e1 b1 d100
        0    enqueue j4                -> enqueue: queued - e0 b0
        101  sweep S j2/1/1            -> j2 done
        5000 complete j3 A 1 completed -> complete: completed A e1 b1
        5001 overdue                   -> nothing
        5001 evict j1/1 j2/1 j3/1 j4/0 -> j1 not_terminal, j2 not_terminal, j3 not_due, \
            j4 not_terminal
        6000 overdue                   -> nothing
        6001 overdue                   -> j3/1
        6001 evict j3/1                -> j3 done
        6002 enqueue j3                -> refused spent
        """,
    ),
)
