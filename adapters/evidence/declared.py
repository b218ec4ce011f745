"""What a road cannot judge, law by law, and why: declared here, so that whatever else is missing is
a hole."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_SOURCE: Final = "it is a law about the source, which a test reads (tests/test_wall_clock.py)"
_LATER: Final = "steps of work are the instance's own, and no theorem speaks of two of them; that "
_CONDUCT: Final = (
    "no law catches by it: a design that breaks this law of conduct is excused from it, so that it "
    "must be caught by what comes of that, "
)

DECLARED: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "proofs": {
            "L12": "who could renew while a fault lasted is a matter of whole schedules, for the "
            "explorer and the simulator; that an instance sweeps only so (L12a) is proved",
            "L16": _SOURCE,
            "F1": "which jobs a claim takes, and in which order, is a matter of many rows, for the "
            "conformance kit and the simulator; what it may take of one row is proved (L1, L3, L7)",
            "F3": _LATER + "requeueable work stops in time (L11) and epochs fence (L3) is proved",
            "F4": "what a consumer handles is its own; no theorem speaks of consumers",
        },
        "simulator": {"L16": _SOURCE},
        "designs": {
            "L10": _CONDUCT + "L12 or L13; tests/spec/test_laws.py plants offences against it",
            "L11": _CONDUCT + "F3; tests/adapters/traces/test_laws.py holds a design to it",
            "L16": _SOURCE,
        },
        "explorer": {
            "L10": "what an instance may send is proved of its heart; the table takes whatever "
            "command could be on its way, however it came there",
            "L11": "it has no work of instances; that requeueable work stops in time is proved",
            "L12a": "hearts and sweeper are searched for what this law is for, that no live job is "
            "swept (L12); the law itself is proved",
            "L16": _SOURCE,
            "F3": "it has no work of instances; what it rests on is judged (L3) and proved (L11)",
            "F4": "consumers of events are not searched",
        },
    }
)
"""By road, then by law."""
