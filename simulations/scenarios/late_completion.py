"""Results that came late: which of them count, and what the others leave."""

from __future__ import annotations

from typing import Final

from unswept.simulations.scenarios.scenario import Scenario

SCENARIOS: Final = (
    Scenario(
        "C20",
        "a sweep and a completion give a slot back once, whoever is first",
        "A job was both failed and finished: its lock was let go twice, and 11 ran at once.",
        """
        0  register A budget=1       -> registered, claims=0
        0  enqueue j1                -> enqueue: queued - e0 b0
        0  enqueue j2                -> enqueue: queued - e0 b0
        0  claim A 1                 -> got: j1 running A e1 b1 d50
        51 sweep S j1/1/1            -> j1 done
        52 claim A 2                 -> got: j2 running A e1 b1 d102
        53 complete j1 A 1 completed -> heal: completed A e1 b1
        54 complete j1 A 1 completed -> repeated: completed A e1 b1
        55 sweep S j1/1/1            -> j1 already_terminal
        56 claim A 3 limit=9         -> refused budget
        58 events                    -> enqueue/0, enqueue/0, claim/1, orphan/1, claim/1, heal/1
        """,
    ),
    Scenario(
        "C21",
        "a result of the attempt before does not end the present one",
        "An update with no fence but the status let A finish B's attempt.",
        """
        0   register B                -> registered, claims=0
        0   admit j1 A requeueable    -> admit: queued A e1 b1 d100
        101 sweep S j1/1/1            -> j1 done
        101 requeue j1 1              -> requeue: queued - e2 b1
        102 claim B 1                 -> got: j1 running B e3 b2 d152
        103 complete j1 A 1 completed -> refused stale_epoch: running B e3 b2 d152
        104 find j1                   -> found: running B e3 b2 d152
        105 complete j1 B 3 completed -> complete: completed B e3 b2
        106 events                    -> admit/1, orphan/1, requeue/2, claim/3, stale_result/1, \
            complete/3
        """,
    ),
    Scenario(
        "C23",
        "one that holds its job anew is not hurt by its own old messages",
        "Owner and job were the same in both attempts, so old writes hit the new one.",
        """
        0   register A             -> registered, claims=0
        0   admit j1 A requeueable -> admit: queued A e1 b1 d100
        101 sweep S j1/1/1         -> j1 done
        101 requeue j1 1           -> requeue: queued - e2 b1
        102 claim A 1              -> got: j1 running A e3 b2 d152
        103 beat A j1/1            -> j1 fenced
        104 release j1 A 1         -> refused stale_epoch: running A e3 b2 d152
        105 complete j1 A 1 failed -> refused stale_epoch: running A e3 b2 d152
        106 output j1 A 1 0 old    -> refused stale_epoch: running A e3 b2 d152
        107 find j1                -> found: running A e3 b2 d152
        107 events                 -> admit/1, orphan/1, requeue/2, claim/3, stale_result/1
        """,
    ),
    Scenario(
        "C25",
        "a job that has ended is not started again by a stale owner",
        "A finished task was moved back to ready by the retry of a stale worker.",
        """
        0   register B                -> registered, claims=0
        0   admit j1 A requeueable    -> admit: queued A e1 b1 d100
        101 sweep S j1/1/1            -> j1 done
        101 requeue j1 1              -> requeue: queued - e2 b1
        102 claim B 1                 -> got: j1 running B e3 b2 d152
        103 complete j1 B 3 completed -> complete: completed B e3 b2
        104 release j1 A 1            -> refused stale_epoch: completed B e3 b2
        105 complete j1 A 1 failed    -> refused stale_epoch: completed B e3 b2
        106 start j1 A 1              -> refused stale_epoch: completed B e3 b2
        107 requeue j1 1 force        -> refused stale_epoch: completed B e3 b2
        108 find j1                   -> found: completed B e3 b2 code=None
        """,
    ),
    Scenario(
        "C26",
        "nobody ends a job without the very hold",
        "Workers over http completed jobs without a proof that they owned them.",
        """
        0 admit j1 A http           -> admit: queued A e1 b1 d300
        0 start j1 A 1              -> start: running A e1 b2 d300
        1 complete j1 B 1 completed -> refused not_owner: running A e1 b2 d300
        2 complete j1 A 2 completed -> refused stale_epoch: running A e1 b2 d300
        3 find j1                   -> found: running A e1 b2 d300
        4 complete j1 A 1 completed -> complete: completed A e1 b2
        """,
    ),
    Scenario(
        "C27",
        "an owner that was starved past its ttl heals its job when it completes",
        "Healthy workers were starved and swept, and their finished work was called failed.",
        """
        0   admit j1 A                       -> admit: queued A e1 b1 d100
        0   start j1 A 1                     -> start: running A e1 b2 d100
        0   live 60 S A j1/1                 -> nothing
        60  live 200 S                       -> 160 S sees j1, 190 S sweeps j1: done
        260 live 20 S A j1/1                 -> 260 A hears j1: orphaned
        280 complete j1 A 1 completed code=0 -> heal: completed A e1 b8
        281 find j1                          -> found: completed A e1 b8 code=0
        282 events                           -> admit/1, start/1, orphan/1, heal/1
        """,
    ),
    Scenario(
        "C29",
        "no terminal status follows another",
        "A late worker overwrote failed with complete.",
        """
        0 admit j1 A                -> admit: queued A e1 b1 d100
        0 start j1 A 1              -> start: running A e1 b2 d100
        1 complete j1 A 1 failed    -> complete: failed A e1 b2
        2 complete j1 A 1 completed -> refused already_terminal: failed A e1 b2
        3 cancel j1                 -> refused already_terminal: failed A e1 b2
        4 settle j1 1 canceled      -> refused already_terminal: failed A e1 b2
        5 withdraw j1 A             -> refused already_terminal: failed A e1 b2
        6 find j1                   -> found: failed A e1 b2 code=None
        """,
    ),
)
