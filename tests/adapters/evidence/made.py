"""Records as runs would leave them, made up and small; and a folder of them without holes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

from unswept.adapters.evidence.declared import DECLARED
from unswept.adapters.evidence.records import Record, write
from unswept.adapters.evidence.sources import hashes
from unswept.adapters.version import version
from unswept.simulations.faults import FAULTS
from unswept.spec.laws import LAWS

Result = dict[str, Any]
HOSTILE = "<img src=x onerror=alert(1)>`|*_"
LAW_IDS = [law.id for law in LAWS]


def judged_by(road: str) -> list[str]:
    """The laws of which a road owes something."""
    return [law for law in LAW_IDS if law not in DECLARED[road]]


def proved() -> Result:
    return {
        "verdict": "held",
        "exit_code": 0,
        "theorems": [
            {
                "name": f"about_{law.lower()}",
                "law": {"WF": "shape"}.get(law, f"SQL {law}"),
                "claim": f"{law} holds.",
                "verdict": "proved",
                "why": "",
                "seconds": 1.5,
            }
            for law in judged_by("proofs")
        ],
    }


def search(design: str, **more: Any) -> Result:
    told = {"design": design, "verdict": "exhausted", "states": 1_000, "transitions": 2_000}
    return {**told, "depth": 9, "seconds": 3.25, "trace": [], **more}


def explored() -> Result:
    judged = dict.fromkeys(judged_by("explorer"), 700)
    mix = "1 lock on the row"
    return {
        "verdict": "held",
        "exit_code": 0,
        "design": "unswept",
        "searches": [
            search("unswept", mix="1 step forward", law=None),
            search("lock-blind", mix=mix, verdict="refuted", law="L12", trace=[{}, {}]),
        ],
        "judged": {**judged, "L12": 1_700},
        "table": {
            "judged": judged,
            "searches": [
                search("unswept", scope="claims", instances=2, leases=2, laws=[], offences=[]),
            ],
        },
    }


def simulated() -> Result:
    return {
        "verdict": "held",
        "exit_code": 0,
        "store": "sqlite:",
        "settings": {"faults": list(FAULTS), "instances": 3, "runners": 2},
        "seeds": 20,
        "commands": 98_765,
        "simulated_ms": 72_000_000,
        "checked": {**dict.fromkeys(judged_by("simulator"), 4_321), "LOCKSTEP": 98_765},
        "violation": None,
        "violated_seed": None,
        "unequal_seed": None,
        "never": [],
        "short": [],
        "designs": [
            {
                "design": f"without-{law.lower()}",
                "sentence": f"It breaks {law}.",
                "expected": [law],
                "law": law,
                "seed": 3,
                "offence": "j1 was swept",
            }
            for law in judged_by("designs")
        ],
        "table": [],
    }


def chaotic() -> Result:
    return {
        "verdict": "held",
        "exit_code": 0,
        "store": "sqlite:",
        "promises": {"no lease was cut short": [], "no job is lost": []},
        "never": [],
    }


def audited() -> Result:
    return {
        "verdict": "held",
        "exit_code": 0,
        "place": "jobs.db",
        "events": 12_000,
        "verdicts": [
            {
                "law": "L1",
                "looked_at": ["orphan events"],
                "unseen": "renewals",
                "count": 0,
                "offences": [],
            },
            {"law": "L8", "looked_at": [], "unseen": "answers", "count": 0, "offences": []},
        ],
    }


def twinned() -> Result:
    shown = {"verdict": "refuted", "why": "lease", "seconds": 0.5}
    return {
        "verdict": "held",
        "exit_code": 0,
        "theorems": [
            {"name": "about_l1", "law": "L1", "twin": "`<` is `<=`", "witness": shown}
            | {"broken": shown}
        ],
    }


RESULTS: dict[str, Callable[[], Result]] = {
    "prove": proved,
    "explore": explored,
    "simulate": simulated,
    "chaos": chaotic,
    "audit": audited,
    "twins": twinned,
}
OWED = ("prove", "explore", "simulate")


def record(name: str, change: Callable[[Result], None] | None = None, **more: Any) -> Record:
    """One of a kind, after a change to what it came to."""
    result = copy.deepcopy(RESULTS[name]())
    if change is not None:
        change(result)
    facts: dict[str, Any] = {
        "name": name,
        "of": "",
        "whole": True,
        "command": f"unswept {name}",
        "version": version(),
        "sources": hashes(name),
        "python": "3.11.7",
        "began": "2026-01-02T03:04:05+00:00",
        "seconds": 61.5,
        "weight": 0.0,
        "result": result,
    }
    return Record(**{**facts, **more})


def fill(folder: Path, *others: Record) -> Path:
    """A folder with all that is owed, where these take the place of those of their names."""
    for each in (*map(record, OWED), *others):
        write(each, folder)
    return folder
