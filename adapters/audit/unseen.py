"""What of each law no history shows, and why not: the other half of every verdict."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

UNSEEN: Final[Mapping[str, str]] = MappingProxyType(
    {
        "L1": "a renewal leaves no event, so that the stamp is known by its deadline alone",
        "L2": "what the sweeper saw first is not kept, only when it saw it",
        "L3": "what was refused leaves no trace, but for late results",
        "L4": "output is not dated, so that no one can say how late it came",
        "L6": "an admit or enqueue that was refused leaves no trace",
        "L7": "what heartbeats were answered is not kept",
        "L8": "what heartbeats were answered is not kept",
        "L9": "what stood as evidence is not kept",
        "L10": "the phases of an instance are known to itself alone",
        "L11": "local deadlines and steps of work are known to the instance alone",
        "L12": "no store knows whether an owner lived, nor whom a fault kept from renewing",
        "L12a": "an instance's own beats and looks are not kept, and its windows run on its own"
        " clock; where the job has moved on, the owner's window is not kept either",
        "L13": "no store knows whether some instance was steady all the while",
        "L14": "the retention is the policy's; of a job whose events were removed, the id is left",
        "L15": "which requests came, and the window within which they are the same, are not kept",
        "L16": "a law about the source, which a test reads",
        "F1": "what waited at the time of a claim, and what it offered, are not kept",
        "F2": "of a job that was evicted, the policy is not kept",
        "F3": "steps of work are known to the instance alone",
        "F4": "what a consumer did with an event is known to the consumer alone",
        "F5": "of a consumer its last row is kept, and nothing of events that were removed",
        "WF": "of the past only events are kept, not rows",
    }
)
"""By law. A law that has no check is not judged at all, for this reason."""
