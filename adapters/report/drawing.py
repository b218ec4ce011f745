"""Draws the timeline without a browser: around a violation the jobs that it touches, else all."""

from __future__ import annotations

from typing import Final

from unswept.adapters.report.colours import palette
from unswept.adapters.report.lanes import LANE, draw_faults, draw_instance, draw_job
from unswept.adapters.report.picture import Band, InstanceLane, JobLane, Picture
from unswept.adapters.report.shapes import Drawing, Rect
from unswept.adapters.report.sheet import Sheet
from unswept.adapters.report.words import clock

WIDTH: Final = 1_280
MOST_JOBS: Final = 60
"""No picture can be read with more lanes than this; the page can be searched."""
_LEFT: Final = 132
_RIGHT: Final = WIDTH - 20
_TITLE: Final = 60
_AXIS: Final = 30
_GROUP: Final = 26
_BEFORE: Final = 300_000
"""Milliseconds before a violation that are shown."""
_AFTER: Final = 20_000
_STRIDES: Final = tuple(
    unit * count
    for unit, counts in (
        (1, (1, 10, 100)),
        (1_000, (1, 2, 5, 10, 15, 30)),
        (60_000, (1, 2, 5, 10, 15, 30)),
        (3_600_000, (1, 2, 4, 12, 24, 168, 720, 8_760)),
    )
    for count in counts
)


def draw(picture: Picture, title: str, subtitle: str) -> Drawing:
    """The timeline under a title."""
    begins, ends = _stretch(picture)
    jobs, left_out = _jobs(picture, begins, ends)
    instances = [lane for lane in picture.instances if _seen(lane, jobs, begins)]
    rows = len(instances) + len(jobs) + 1
    bottom = _TITLE + _AXIS + rows * LANE + 2 * _GROUP
    height = bottom + (_GROUP if left_out else 12)
    sheet = Sheet(begins, ends, _LEFT, _RIGHT)
    sheet.shapes.append(Rect(0, 0, WIDTH, height, palette()["panel"]))
    sheet.say(12, 26, title, size=16, bold=True, room=WIDTH - 24)
    sheet.say(12, 46, subtitle, "muted", room=WIDTH - 24, size=12)
    _draw_ground(sheet, picture, bottom)
    y = _draw_lanes(sheet, picture, instances, jobs)
    if left_out:
        sheet.say(12, y + 18, f"and {left_out} more jobs", "muted")
    _draw_violation(sheet, picture, bottom)
    return Drawing(WIDTH, height, tuple(sheet.shapes))


def _stretch(picture: Picture) -> tuple[int, int]:
    found = picture.violation
    if found is None:
        return 0, picture.ends
    begins = max(0, found.at - _BEFORE)
    return begins, found.at + min(_AFTER, max((found.at - begins) // 4, 1_000))


def _jobs(picture: Picture, begins: int, ends: int) -> tuple[list[JobLane], int]:
    seen = [
        lane
        for lane in picture.jobs
        if any(bar.begins <= ends and bar.ends >= begins for bar in lane.bars)
    ]
    touched = [lane for lane in seen if lane.touched]
    shown = touched or seen
    return shown[:MOST_JOBS], len(shown) - len(shown[:MOST_JOBS])


def _seen(lane: InstanceLane, jobs: list[JobLane], begins: int) -> bool:
    """Not the clients, which hold no job, nor who was gone before."""
    holds = lane.kind in ("gateway", "runner")
    owns = any(bar.owner == lane.name for job in jobs for bar in job.bars)
    return holds and (owns or any(ends >= begins for _, ends in lane.lives))


def _shared(picture: Picture) -> list[Band]:
    known = {lane.name for lane in picture.instances} | {lane.id for lane in picture.jobs}
    known |= {lane.host for lane in picture.instances if lane.host}
    return [band for band in picture.bands if band.on is None or band.on not in known]


def _on(picture: Picture, *names: str | None) -> list[Band]:
    return [band for band in picture.bands if band.on is not None and band.on in names]


def _draw_ground(sheet: Sheet, picture: Picture, bottom: float) -> None:
    top = _TITLE + _AXIS
    for band in _shared(picture):
        seen = sheet.stretch(band.begins, band.ends)
        if seen is not None and band.begins < band.ends:
            sheet.box(seen[0], top, seen[1], bottom - top, "band")
    length = sheet.ends - sheet.begins
    room = (_RIGHT - _LEFT) / 90
    stride = next((each for each in _STRIDES if length / each <= room), _STRIDES[-1])
    for at in range(-(-sheet.begins // stride) * stride, sheet.ends + 1, stride):
        sheet.tick(sheet.x(at), top - 6, bottom - top + 6, "grid")
        told = clock(at) if stride < 1_000 else clock(at)[:-4]
        sheet.say(sheet.x(at) + 4, top - 10, told, "muted", room=sheet.right + 12 - sheet.x(at))
    sheet.dash(0, top, WIDTH, "line", 1)


def _draw_lanes(
    sheet: Sheet, picture: Picture, instances: list[InstanceLane], jobs: list[JobLane]
) -> float:
    y = float(_TITLE + _AXIS)
    _label(sheet, "faults", y)
    draw_faults(sheet, picture, _shared(picture), y)
    y = _heading(sheet, "INSTANCES", y + LANE)
    for lane in instances:
        _label(sheet, lane.name, y, lane.kind)
        draw_instance(sheet, lane, picture, _on(picture, lane.name, lane.host), y)
        y += LANE
    y = _heading(sheet, "JOBS", y)
    for job in jobs:
        _label(sheet, job.id, y, marked=job.touched)
        draw_job(sheet, job, picture, _on(picture, job.id), y)
        y += LANE
    return y


def _heading(sheet: Sheet, words: str, y: float) -> float:
    sheet.say(12, y + 18, words, "muted", bold=True)
    return y + _GROUP


def _label(sheet: Sheet, name: str, y: float, kind: str = "", marked: bool = False) -> None:
    width = sheet.say(12, y + 18, name, "violation" if marked else "ink", _LEFT - 20, 12, marked)
    room = _LEFT - 28 - width
    if len(kind) * 5.8 <= room:
        sheet.say(_LEFT - 8 - len(kind) * 5.4, y + 18, kind, "muted", size=10)
    sheet.dash(_LEFT, y + LANE - 0.5, _RIGHT - _LEFT, "grid", 1)


def _draw_violation(sheet: Sheet, picture: Picture, bottom: float) -> None:
    found = picture.violation
    if found is None:
        return
    x, top = sheet.x(found.at), _TITLE + _AXIS
    sheet.tick(x, top, bottom - top, "violation", 2)
    width = len(found.law) * 7.5 + 12
    left = x - width if x + width > sheet.right else x
    sheet.box(left, top, width, 18, "violation")
    sheet.say(left + 6, top + 13, found.law, "violation-ink", bold=True)
