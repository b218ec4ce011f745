"""What an exploration covers, and what it does not: printed with every report."""

from __future__ import annotations

from typing import Final

SEARCHED: Final = (
    "Hearts: every schedule of two instances and one job: the owner, and an instance that sweeps. "
    "Their hearts, the sweeper and the store's decisions are the functions that production calls. "
    "Where the owner lives, none may sweep its job; where it dies, its job must be orphaned in "
    "time.",
    "Time passes in ticks, each a quarter of a heartbeat; the order of events within a tick is "
    "free, and a fault may strike between any two of them, and last as long as it likes.",
    "In each row, every way in which the faults that it names can meet. Times are told relative "
    "to now, which the proofs allow: shifting all times changes nothing but the times.",
    "The table: in every state that a few jobs can reach, every command that some instance, alive, "
    "suspended, restarted or dead, could have on its way, with the laws' own predicates judging "
    "each step. So messages are late, doubled, out of order or lost as often as they like. A scope "
    "says which commands, and jobs of which policies.",
    "Settling: instances that look and sweep, die, stand still, go on and come back, and a search "
    "for a run in which a job of a lost owner stays as it is for ever, though time passes and no "
    "instance that runs puts off a look or a sweep for ever.",
)

NOT_SEARCHED: Final = (
    "Hearts: a message is executed and answered within its tick, or it is lost; only a sweep stays "
    "on its way for as long as it likes. How much longer the window must be where answers take "
    "time, docs/explorer.md says.",
    "Hearts of more than two instances or of more than one job; drains; clocks that drift; more "
    "faults at a time than a row names.",
    "The table: commands of two scopes together; more jobs or instances than the size says; "
    "epochs older than the one before the present one, which no rule tells apart from it.",
    "Consumers of events, instances' clean-up, and what the databases make of a command. The "
    "simulator, the conformance kit and the proofs of the SQL look at these.",
)
