"""Live jobs that were swept because something else was taken for the life of their owner."""

from __future__ import annotations

from typing import Final

from unswept.simulations.scenarios.scenario import Scenario

SCENARIOS: Final = (
    Scenario(
        "C1",
        "a job that is beaten for is never swept, however long it runs",
        "Jobs that ran long were taken for dead, since only their start was looked at.",
        """
        0    admit j1 A         -> admit: queued A e1 b1 d100
        0    start j1 A 1       -> start: running A e1 b2 d100
        0    live 2000 S A j1/1 -> nothing
        2000 find j1            -> found: running A e1 b202 d2090
        2000 events             -> admit/1, start/1
        """,
    ),
    Scenario(
        "C5",
        "a claim is one step: status, owner, epoch and deadline come together",
        "A job was swept 96 ms after its start, between the two writes of its claim.",
        """
        0  register A     -> registered, claims=0
        0  enqueue j1     -> enqueue: queued - e0 b0
        9  suspects       -> nothing
        10 claim A 1      -> got: j1 running A e1 b1 d60
        10 suspects       -> nothing
        10 sweep S j1/1/0 -> j1 beats_moved
        11 sweep S j1/1/1 -> j1 not_expired
        """,
    ),
    Scenario(
        "C6",
        "a claim's deadline counts from the claim, and the first beat has no rule of its own",
        "A grace for the first beat was shorter than the beat, so new jobs looked dead.",
        """
        0   register A        -> registered, claims=0
        0   enqueue j1        -> enqueue: queued - e0 b0
        0   claim A 1         -> got: j1 running A e1 b1 d50
        0   live 45 S         -> nothing
        45  live 200 S A j1/1 -> nothing
        245 find j1           -> found: running A e1 b21 d335
        """,
    ),
    Scenario(
        "C7",
        "the death of one instance changes nothing on another's jobs",
        "Running jobs were orphaned because the heartbeat of a scheduler had expired.",
        """
        0   register X        -> registered, claims=0
        0   admit j1 A        -> admit: queued A e1 b1 d100
        0   admit j2 X        -> admit: queued X e1 b1 d100
        0   live 200 S A j1/1 -> 120 S sees j2, 120 A sees j2, 150 S sweeps j2: done, \
            150 A sweeps j2: repeated
        501 forget X/0        -> forgot 1
        501 live 100 S A j1/1 -> 501 S sees j1
        601 find j1           -> found: queued A e1 b43 d691
        601 find j2           -> found: orphaned X e1 b1
        """,
    ),
    Scenario(
        "C8",
        "an instance that boots sweeps nobody who lives",
        "The start-up sweep of a new instance requeued the live work of its siblings.",
        """
        0   admit j1 A        -> admit: queued A e1 b1 d100
        0   live 60 A j1/1    -> nothing
        60  live 100 B A j1/1 -> nothing
        160 find j1           -> found: queued A e1 b17 d250
        """,
    ),
    Scenario(
        "C8-outage",
        "an instance that boots just after a long outage sweeps nobody who lives",
        "After an outage of 50 minutes the sweep at boot requeued live runs with no grace.",
        """
        0   admit j1 A            -> admit: queued A e1 b1 d100
        0   live 60 A j1/1        -> nothing
        60  live 500 A j1/1 cut=A -> 64 A is quiesced
        560 suspects              -> j1/1/7
        560 live 9 B              -> nothing
        569 live 100 B A j1/1     -> 573 A is readmitted
        669 find j1               -> found: queued A e1 b19 d763
        """,
    ),
)
