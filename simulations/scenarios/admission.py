"""Claims, keys and queues: who gets a job, and which job."""

from __future__ import annotations

from typing import Final

from unswept.simulations.scenarios.scenario import Scenario

SCENARIOS: Final = (
    Scenario(
        "C89",
        "two that claim at once get two jobs",
        "Two workers selected the same row before either updated it.",
        """
        0 register A -> registered, claims=0
        0 register B -> registered, claims=0
        0 enqueue j1 -> enqueue: queued - e0 b0
        0 enqueue j2 -> enqueue: queued - e0 b0
        1 claim A 1  -> got: j1 running A e1 b1 d51
        1 claim B 1  -> got: j2 running B e1 b1 d51
        2 claim A 2  -> got: nothing
        """,
    ),
    Scenario(
        "C90",
        "an admit that was given up leaves no job and no second chance",
        "An error after the permit was taken leaked the slot for the life of the process.",
        """
        0 withdraw j1 A -> withdrawn
        1 admit j1 A    -> refused spent
        2 admit j2 A    -> admit: queued A e1 b1 d102
        3 withdraw j2 A -> withdraw: failed A e1 b1
        4 admit j2 A    -> repeated: failed A e1 b1
        5 suspects      -> nothing
        6 count         -> nothing
        """,
    ),
    Scenario(
        "C92",
        "a key leads to a job that lives, and never to a corpse",
        "The key was held for days by a dead job, and each new request got that one.",
        """
        0   admit j1 A key=me/k window=500 -> admit: queued A e1 b1 d100
        50  admit j2 B key=me/k window=500 -> joined j1: queued A e1 b1 d100
        101 admit j3 B key=me/k window=500 -> admit: queued B e1 b1 d201
        101 find j3                        -> found: queued B e1 b1 d201
        102 sweep S j1/1/1                 -> j1 done
        150 admit j4 B key=me/k window=500 -> joined j3: queued B e1 b1 d201
        151 complete j3 B 1 failed         -> complete: failed B e1 b1
        152 admit j5 B key=me/k window=500 -> admit: queued B e1 b1 d252
        """,
    ),
    Scenario(
        "C96",
        "all that a dead instance had, run or waiting, is swept",
        "Rows that waited belonged to nobody, and a freed slot never started the queue again.",
        """
        0   admit j1 A   -> admit: queued A e1 b1 d100
        0   start j1 A 1 -> start: running A e1 b2 d100
        1   admit j2 A   -> admit: queued A e1 b1 d101
        1   admit j3 A   -> admit: queued A e1 b1 d101
        1   admit j4 A   -> admit: queued A e1 b1 d101
        1   admit j5 A   -> admit: queued A e1 b1 d101
        1   admit j6 A   -> admit: queued A e1 b1 d101
        2   count        -> - 0/5+1/0
        2   live 170 S   -> 102 S sees j1, 102 S sees j2, 102 S sees j3, 102 S sees j4, \
            102 S sees j5, 102 S sees j6, 132 S sweeps j1: done, 132 S sweeps j2: done, \
            132 S sweeps j3: done, 132 S sweeps j4: done, 132 S sweeps j5: done, \
            132 S sweeps j6: done
        172 count        -> - 0/0+0/6
        172 admit j7 B   -> admit: queued B e1 b1 d272
        """,
    ),
)
