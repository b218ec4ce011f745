"""A small trace by hand: one job is renewed, suspected, swept and requeued, and that breaks L12."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from attrs import asdict

from unswept.adapters.report.reading import Line
from unswept.simulations.run import Settings

STORE_CLOCK = 1_700_000_000_000
JOB = "a-1"
STEP = 60_000
"""By how much the store clock steps before the sweep."""
HOSTILE = "</script><img src=x onerror=alert(1)>"


def row(**changes: Any) -> Line:
    return {
        "status": "running",
        "owner": "a",
        "epoch": 1,
        "beats": 1,
        "deadline": STORE_CLOCK + 91_000,
        "ttl_ms": 90_000,
        "confirm_ms": 45_000,
        "beat_at": STORE_CLOCK + 1_000,
        "requeue": "allowed",
        **changes,
    }


FIRST = row()
RENEWED = row(beats=2, deadline=STORE_CLOCK + 110_000, beat_at=STORE_CLOCK + 20_000)
ORPHANED = {name: value for name, value in RENEWED.items() if name != "deadline"} | {
    "status": "orphaned"
}
QUEUED = {name: value for name, value in ORPHANED.items() if name != "owner"} | {
    "status": "queued",
    "epoch": 2,
}


def command(n: int, at: int, sender: str, verb: str, **more: Any) -> Line:
    return {
        "type": "command",
        "at": at,
        "n": n,
        "sender": sender,
        "verb": verb,
        "store_at": STORE_CLOCK + at,
        "job": None,
        "epoch": None,
        "command": {},
        "reply": "done",
        "refusal": None,
        "changes": [],
        **more,
    }


def change(transition: str, before: Line | None, after: Line | None, job: str = JOB) -> Line:
    return {"job": job, "transition": transition, "before": before, "after": after}


def instance(at: int, name: str, event: str, **more: Any) -> Line:
    told = {"type": "instance", "at": at, "name": name, "kind": "gateway", "host": "h0"}
    return {**told, "event": event, **more}


def fault(at: int, name: str, event: str, on: str | None = None) -> Line:
    return {"type": "fault", "at": at, "name": name, "event": event, "on": on}


def lines(seed: int = 7, violated: bool = True) -> list[Line]:
    swept_at = 70_000
    head = {
        "type": "run",
        "format": 1,
        "version": "0.1.0",
        "seed": seed,
        "settings": asdict(Settings(seed, 1.0, 2, ("outage",), "single-observation", runners=0)),
        "store": "memory:",
        "store_clock_ms": STORE_CLOCK,
    }
    swept = [change("orphan", RENEWED, ORPHANED), change("requeue", ORPHANED, QUEUED)]
    told = [
        instance(0, "a", "boots", heartbeat_interval_ms=15_000, lease_ttl_ms=90_000),
        instance(0, "a", "phase", phase="registering"),
        instance(0, "b", "boots", host="h1"),
        instance(500, "a", "phase", phase="steady"),
        command(1, 1_000, "a", "Admit", job=JOB, changes=[change("admit", None, FIRST)]),
        command(2, 20_000, "a", "Heartbeat", changes=[change("renew", FIRST, RENEWED)]),
        fault(30_000, "outage", "begins"),
        fault(31_000, "stall", "begins", "a"),
        instance(31_000, "a", "stands_still"),
        fault(40_000, "outage", "ends"),
        instance(41_000, "a", "goes_on"),
        fault(41_000, "stall", "ends", "a"),
        fault(50_000, "row-lock", "begins", JOB),
        {**fault(55_000, "store-clock", "strikes"), "ms": STEP},
        command(
            3,
            60_000,
            "b",
            "Admit",
            job="b-1",
            store_at=STORE_CLOCK + STEP + 60_000,
            changes=[change("admit", None, row(owner="b"), "b-1")],
        ),
        {
            "type": "sight",
            "at": 69_000,
            "instance": "b",
            "job": JOB,
            "epoch": 1,
            "beats": 2,
            "event": "suspected",
        },
    ]
    end = {
        "type": "end",
        "at": swept_at,
        "digest": "d1",
        "commands": 3,
        "checked": {"L12": 1},
        "faults": {"outage": 1},
        "sometimes": {"an orphan healed": 2},
        "live_jobs_swept": 1 if violated else 0,
    }
    if not violated:
        return [head, *told, end]
    sweep = command(
        4, swept_at, "b", "Sweep", store_at=STORE_CLOCK + STEP + swept_at, changes=swept
    )
    offence = f"{JOB} was swept by b though a lives"
    violation = {"type": "violation", "at": swept_at, "law": "L12", "offence": offence, "job": JOB}
    return [head, *told, sweep, violation, {**end, "commands": 4}]


def write(file: Path, told: list[Line]) -> Path:
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in told)
    file.write_text(text, encoding="utf-8")
    return file
