"""Restarts, and numbers that were used again."""

from __future__ import annotations

from typing import Final

from unswept.simulations.scenarios.scenario import Scenario

SCENARIOS: Final = (
    Scenario(
        "C60a",
        "a process that is started again keeps no job of the one before it alive",
        "A restarted process of the same name renewed what its dead predecessor had held.",
        """
        0   register A-boot1                -> registered, claims=0
        0   admit j1 A-boot1                -> admit: queued A-boot1 e1 b1 d100
        0   start j1 A-boot1 1 pid=7        -> start: running A-boot1 e1 b2 d100
        0   live 20 A-boot1 j1/1            -> nothing
        30  register A-boot2                -> registered, claims=0
        30  beat A-boot2 j1/1               -> j1 fenced
        30  live 200 S A-boot2              -> 130 S sees j1, 130 A-boot2 sees j1, \
            160 S sweeps j1: done, 160 A-boot2 sweeps j1: repeated
        230 complete j1 A-boot2 1 completed -> refused not_owner: orphaned A-boot1 e1 b4
        231 find j1                         -> found: orphaned A-boot1 e1 b4
        """,
    ),
    Scenario(
        "C61",
        "one that booted while the lease still ran finds its dead owner later, by itself",
        "Recovery ran at start-up alone, passed over the valid lease, and never looked again.",
        """
        0   admit j1 A     -> admit: queued A e1 b1 d100
        0   live 20 A j1/1 -> nothing
        21  live 250 B     -> 121 B sees j1, 151 B sweeps j1: done
        271 find j1        -> found: orphaned A e1 b3
        """,
    ),
    Scenario(
        "C62",
        "a process number that looks alive delays a sweep once, and no more",
        "In containers a pid is used again, so a dead owner's lock looked alive for ever.",
        """
        0   admit j1 A         -> admit: queued A e1 b1 d100
        0   start j1 A 1 pid=1 -> start: running A e1 b2 d100
        101 delay S j1 1 2     -> delay: running A e1 b3 d201
        201 suspects           -> nothing
        202 delay S j1 1 3     -> refused delayed_before: running A e1 b3 d201
        202 delay R j1 1 3     -> refused delayed_before: running A e1 b3 d201
        203 sweep S j1/1/3     -> j1 done
        """,
    ),
)
