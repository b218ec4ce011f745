"""Composes the picture of a run from the lines of its trace."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any, Final

from unswept.adapters.report.picture import (
    Band,
    Bar,
    Change,
    InstanceLane,
    JobLane,
    Picture,
    Row,
    Said,
    Sight,
    Stamp,
    Violation,
)
from unswept.adapters.report.reading import Line, Trace
from unswept.adapters.report.spreading import spread, true_time

_STARTS: Final = "boots"
_ENDS: Final = frozenset({"killed", "stopped"})


def compose(trace: Trace) -> Picture:
    """The picture of a run, or of a script that was carried out."""
    if trace.shrunk is not None:
        trace = spread(trace)
    told: defaultdict[str, list[Line]] = defaultdict(list)
    for line in trace.lines:
        told[line["type"]].append(line)
    ends = _end(trace)
    commands = tuple(_said(line) for line in told["command"])
    violation = _violation(trace.violation)
    jobs = _jobs(told["command"], ends)
    concerned = _concerned(violation, told["command"]) if trace.shrunk is None else jobs.keys()
    for job_id in concerned:
        if job_id in jobs:
            jobs[job_id].touched = violation is not None
    return Picture(
        ends=ends,
        store_clock=trace.run["store_clock_ms"],
        commands=commands,
        instances=_instances(told["instance"], commands, ends),
        jobs=tuple(jobs.values()),
        bands=_bands([line for line in told["fault"] if "ms" not in line], ends),
        steps=tuple((line["at"], line["ms"]) for line in told["fault"] if "ms" in line),
        sights=tuple(_sight(line) for line in told["sight"]),
        violation=violation,
    )


def _end(trace: Trace) -> int:
    last = trace.end or trace.violation or (trace.lines[-1] if trace.lines else {"at": 0})
    at: int = last["at"]
    return max(at, 1)


def _said(line: Line) -> Said:
    return Said(
        at=line["at"],
        n=line["n"],
        sender=line["sender"],
        verb=line["verb"],
        store_at=line["store_at"],
        reply=line["reply"],
        refusal=line.get("refusal"),
        job=line.get("job"),
        epoch=line.get("epoch"),
    )


def _sight(line: Line) -> Sight:
    return Sight(
        line["at"], line["instance"], line["job"], line["epoch"], line["beats"], line["event"]
    )


def _violation(line: Line | None) -> Violation | None:
    if line is None:
        return None
    return Violation(line["at"], line["law"], line["offence"], line.get("job"))


def _concerned(violation: Violation | None, commands: list[Line]) -> set[str]:
    """The jobs that a violation names, or that the command changed at which it was found."""
    if violation is None:
        return set()
    words = set(re.split(r"[\s,;:()]+", violation.offence))
    words |= {word.rstrip(".") for word in words}
    named = words | ({violation.job} if violation.job else set())
    if commands and commands[-1]["at"] == violation.at:
        named |= {change["job"] for change in commands[-1]["changes"]}
    return named


# Jobs -------------------------------------------------------------------------------------------


def _jobs(commands: list[Line], ends: int) -> dict[str, JobLane]:
    lanes: dict[str, JobLane] = {}
    for place, line in enumerate(commands):
        for change in line["changes"]:
            lane = lanes.setdefault(change["job"], JobLane(change["job"]))
            lane.changes.append(
                Change(line["at"], place, change["transition"], change["before"], change["after"])
            )
    for lane in lanes.values():
        lane.bars = _bars(lane.changes, ends)
        lane.stamps = _stamps(lane.changes, commands, ends)
    return lanes


def _bars(changes: list[Change], ends: int) -> list[Bar]:
    bars: list[Bar] = []
    begins, shown = 0, None
    for change in changes:
        now = None if change.after is None else _standing(change.after)
        if now == shown:
            continue
        if shown is not None:
            bars.append(Bar(begins, change.at, *shown))
        begins, shown = change.at, now
    if shown is not None:
        bars.append(Bar(begins, ends, *shown))
    return bars


def _standing(row: Row) -> tuple[str, str | None, int]:
    return row["status"], row.get("owner"), row["epoch"]


def _stamps(changes: list[Change], commands: list[Line], ends: int) -> list[Stamp]:
    stamps: list[Stamp] = []
    for change, following in zip(changes, [*changes[1:], None], strict=True):
        before, after = change.before, change.after
        if after is None or after.get("deadline") is None:
            continue
        if before is not None and before["beats"] == after["beats"]:
            continue
        told = commands[change.command]
        deadline = true_time(told) + after["deadline"] - told["store_at"]
        until = ends if following is None else following.at
        stamps.append(Stamp(change.at, deadline, outlived=deadline < until))
    return stamps


# Instances --------------------------------------------------------------------------------------


def _instances(
    lines: list[Line], commands: tuple[Said, ...], ends: int
) -> tuple[InstanceLane, ...]:
    told: defaultdict[str, list[Line]] = defaultdict(list)
    for line in lines:
        told[line["name"]].append(line)
    lanes = [_instance(name, events, ends) for name, events in told.items()]
    silent = {said.sender for said in commands} - told.keys()
    lanes += [InstanceLane(name, "client", None, lives=[(0, ends)]) for name in sorted(silent)]
    return tuple(lanes)


def _instance(name: str, lines: list[Line], ends: int) -> InstanceLane:
    first = lines[0]
    lane = InstanceLane(
        name,
        first.get("kind") or "client",
        first.get("host"),
        first.get("heartbeat_interval_ms"),
        first.get("lease_ttl_ms"),
    )
    born: int | None = None
    still: int | None = None
    phase: tuple[int, str] | None = None
    for line in lines:
        at, event = line["at"], line["event"]
        if event == "phase":
            if phase is not None:
                lane.phases.append((phase[0], at, phase[1]))
            phase = (at, line["phase"])
            continue
        lane.events.append((at, event))
        if event == _STARTS:
            born = at
        elif event == "stands_still":
            still = at if still is None else still
        elif event == "goes_on" and still is not None:
            lane.stills.append((still, at))
            still = None
        elif event in _ENDS and born is not None:
            lane.lives.append((born, at))
            _close(lane, phase, still, at)
            born = still = phase = None
    if born is not None:
        lane.lives.append((born, ends))
    _close(lane, phase, still, ends)
    return lane


def _close(lane: InstanceLane, phase: tuple[int, str] | None, still: int | None, at: int) -> None:
    if phase is not None:
        lane.phases.append((phase[0], at, phase[1]))
    if still is not None:
        lane.stills.append((still, at))


# Faults -----------------------------------------------------------------------------------------


def _bands(lines: list[Line], ends: int) -> tuple[Band, ...]:
    bands: list[Band] = []
    open_: defaultdict[tuple[str, Any], list[int]] = defaultdict(list)
    for line in lines:
        name, on, at = line["name"], line.get("on"), line["at"]
        if line["event"] == "begins":
            open_[name, on].append(at)
        elif line["event"] == "strikes":
            bands.append(Band(name, at, at, on))
        elif open_[name, on]:
            bands.append(Band(name, open_[name, on].pop(0), at, on))
    bands += [Band(name, at, ends, on) for (name, on), left in open_.items() for at in left]
    return tuple(sorted(bands, key=lambda band: (band.begins, band.ends, band.name)))
