"""Packs a picture into the text that a page carries: JSON, gzip, base64.

A row is told as what changed since the job's last one, so that an hour of heartbeats stays small.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from typing import Any

from attrs import asdict, astuple

from unswept.adapters.report.picture import Change, JobLane, Picture, Row
from unswept.simulations.faults import FAULTS


def packed(picture: Picture) -> str:
    """The picture as text without any character that HTML gives a meaning to."""
    text = json.dumps(document(picture), separators=(",", ":"))
    return b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def document(picture: Picture) -> dict[str, Any]:
    """The picture as `model.js` reads it."""
    return {
        "ends": picture.ends,
        "storeClock": picture.store_clock,
        "commands": [astuple(said) for said in picture.commands],
        "instances": [asdict(lane) for lane in picture.instances],
        "jobs": [_job(lane) for lane in picture.jobs],
        "bands": [astuple(band) for band in picture.bands],
        "steps": picture.steps,
        "sights": [astuple(sight) for sight in picture.sights],
        "stories": {name: fault.story for name, fault in FAULTS.items()},
        "violation": None if picture.violation is None else asdict(picture.violation),
    }


def _job(lane: JobLane) -> dict[str, Any]:
    row: Row | None = None
    changes = []
    for change in lane.changes:
        changes.append(_change(change, row))
        row = change.after
    return {
        "id": lane.id,
        "touched": lane.touched,
        "bars": [astuple(bar) for bar in lane.bars],
        "stamps": [astuple(stamp) for stamp in lane.stamps],
        "changes": changes,
    }


def _change(change: Change, known: Row | None) -> list[Any]:
    """At, command, transition and what is new in the row; and the whole row before it, where that
    is not the row after the last change. None: the row is gone, or the field is set no more."""
    told: list[Any] = [change.at, change.command, change.transition, None]
    if change.after is not None:
        before = change.before or {}
        names = [*change.after, *(before.keys() - change.after.keys())]
        told[3] = {
            name: change.after.get(name)
            for name in sorted(names)
            if before.get(name) != change.after.get(name)
        }
    return told if change.before == known else [*told, change.before]
