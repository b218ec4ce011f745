"""Draws one lane on a sheet: faults, an instance, or a job. `assets/lanes.js` draws the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from unswept.adapters.report.picture import Band, Bar, InstanceLane, JobLane, Picture, Sight
from unswept.adapters.report.shapes import fits
from unswept.adapters.report.sheet import Sheet
from unswept.adapters.report.words import span

LANE: Final = 28
_ENDED: Final = frozenset({"completed", "failed", "canceled", "expired"})


def draw_faults(sheet: Sheet, picture: Picture, bands: Iterable[Band], y: float) -> None:
    """What befalls everybody, and the steps of the store clock."""
    bands = [band for band in bands if sheet.stretch(band.begins, band.ends) is not None]
    steps = [(sheet.x(at), by) for at, by in picture.steps if sheet.shows(at)]
    long = [(band.name, *_seen(sheet, band)) for band in bands if band.begins < band.ends]
    edges = [*(x for _, x, _ in long), *(x - 6 for x, _ in steps), sheet.right]
    for band in bands:
        if band.begins == band.ends:
            sheet.tick(sheet.x(band.begins), y + 3, 5, "own-fault-line", 2)
    for _, x, width in long:
        sheet.box(x, y + 9, max(width, 2), 15, "fault", 2)
    for name, x, width in long:
        if fits(name, min(width, _until(edges, x)) - 8, 11):
            sheet.say(x + 4, y + 20, name, "fault-ink")
    for x, by in steps:
        sheet.diamond(x, y + 16, "fault-ink")
        words = f"clock {'+' if by > 0 else '−'}{span(abs(by))}"
        if fits(words, _until(edges, x) - 12, 11):
            sheet.say(x + 8, y + 20, words, "fault-ink")


def _seen(sheet: Sheet, band: Band) -> tuple[float, float]:
    seen = sheet.stretch(band.begins, band.ends)
    assert seen is not None
    return seen


def _until(edges: list[float], x: float) -> float:
    """How far it is to where the next fault or step begins."""
    return min((edge for edge in edges if edge > x), default=x) - x


def draw_instance(
    sheet: Sheet, lane: InstanceLane, picture: Picture, bands: Iterable[Band], y: float
) -> None:
    """Its life and phases, its faults, its beats and its sweeps."""
    for begins, ends in lane.lives:
        _fill(sheet, begins, ends, y, "life")
    for begins, ends, phase in lane.phases:
        if phase != "steady":
            _fill(sheet, begins, ends, y, f"phase-{phase}")
    for begins, ends in lane.stills:
        seen = sheet.stretch(begins, ends)
        if seen is not None:
            sheet.hatch(seen[0], y + 8, seen[1], 13, "ink")
    _draw_bands(sheet, bands, y)
    own = [said for said in picture.commands if said.sender == lane.name]
    for x in sheet.spread(said.at for said in own if said.verb == "Heartbeat"):
        sheet.tick(x, y + 4, 6, "beat", 1.2)
    for x in sheet.spread(_sweeps(picture, lane)):
        sheet.down(x, y + 1, "sweep")
    for at, event in lane.events:
        if sheet.shows(at):
            _draw_event(sheet, event, sheet.x(at), y + 14)
    _name_bands(sheet, bands, y)


def draw_job(
    sheet: Sheet, lane: JobLane, picture: Picture, bands: Iterable[Band], y: float
) -> None:
    """Its leases, what renewed them, the deadlines that came, suspicions and sweeps."""
    _draw_bands(sheet, bands, y)
    for bar in lane.bars:
        _draw_bar(sheet, bar, y)
    for x in sheet.spread(_moments(lane, "renew")):
        sheet.tick(x, y + 18, 4, "beat", 1.2)
    for bar in lane.bars:
        _draw_owner(sheet, bar, y)
    for stamp in lane.stamps:
        if stamp.outlived and sheet.shows(stamp.deadline):
            sheet.flag(sheet.x(stamp.deadline), y + 3, 22, "deadline")
    for x in sheet.spread(sight.at for sight in _suspicions(picture, lane)):
        sheet.diamond(x, y + 14, "suspect")
    for x in sheet.spread(_moments(lane, "heal")):
        sheet.up(x, y + 19, "status-completed")
    for x in sheet.spread(_orphanings(lane)):
        sheet.down(x, y, "sweep")
    _name_bands(sheet, bands, y)


def _fill(sheet: Sheet, begins: int, ends: int, y: float, colour: str) -> None:
    seen = sheet.stretch(begins, ends)
    if seen is not None:
        sheet.box(seen[0], y + 10, seen[1], 9, colour)


def _draw_event(sheet: Sheet, event: str, x: float, y: float) -> None:
    if event == "boots":
        sheet.disc(x, y, "ink")
    elif event == "killed":
        sheet.cross(x, y, "sweep")
    elif event in ("drains", "stopped"):
        sheet.box(x - 3.5, y - 3.5, 7, 7, "ink")


def _draw_bands(sheet: Sheet, bands: Iterable[Band], y: float) -> None:
    for band in bands:
        seen = sheet.stretch(band.begins, band.ends)
        if seen is None:
            continue
        sheet.box(seen[0], y + 2, seen[1], LANE - 4, "own-fault")
        sheet.hatch(seen[0], y + 2, seen[1], LANE - 4, "own-fault-line")


def _name_bands(sheet: Sheet, bands: Iterable[Band], y: float) -> None:
    """Above all else on the lane, on a ground of their own."""
    for band in bands:
        seen = sheet.stretch(band.begins, band.ends)
        if seen is not None and fits(band.name, seen[1] - 10, 10):
            sheet.box(seen[0] + 3, y + LANE - 13, len(band.name) * 5.3 + 8, 12, "fault", 3)
            sheet.say(seen[0] + 7, y + LANE - 4, band.name, "fault-ink", size=10)


def _draw_bar(sheet: Sheet, bar: Bar, y: float) -> None:
    seen = sheet.stretch(bar.begins, bar.ends)
    if seen is None:
        return
    x, width = seen
    colour = f"status-{bar.status}"
    if bar.status in _ENDED:
        sheet.dash(x, y + 14, width, colour)
        if sheet.shows(bar.begins):
            (sheet.disc if bar.status == "completed" else sheet.cross)(x, y + 14, colour)
            if width > 80:
                sheet.say(x + 9, y + 11, bar.status, "muted", size=10)
    elif bar.owner is None:
        sheet.box(x, y + 11, width, 6, "bar-line", 3)
    else:
        sheet.box(x, y + 6, width, 16, colour, 3)
        if bar.status == "orphaned":
            sheet.hatch(x, y + 6, width, 16, "orphan-line")


def _draw_owner(sheet: Sheet, bar: Bar, y: float) -> None:
    seen = sheet.stretch(bar.begins, bar.ends)
    if seen is not None and bar.owner is not None and bar.status not in _ENDED:
        for words in (f"{bar.owner} · epoch {bar.epoch}", bar.owner):
            if fits(words, seen[1] - 10, 10.5):
                sheet.say(seen[0] + 5, y + 15.5, words, "bar-ink", size=10.5)
                return


def _moments(lane: JobLane, transition: str) -> Iterable[int]:
    return (change.at for change in lane.changes if change.transition == transition)


def _orphanings(lane: JobLane) -> Iterable[int]:
    return (bar.begins for bar in lane.bars if bar.status == "orphaned")


def _sweeps(picture: Picture, lane: InstanceLane) -> Iterable[int]:
    """Those that swept something."""
    changed = {change.command for job in picture.jobs for change in job.changes}
    return (
        said.at
        for place, said in enumerate(picture.commands)
        if said.sender == lane.name and said.verb == "Sweep" and place in changed
    )


def _suspicions(picture: Picture, lane: JobLane) -> Iterable[Sight]:
    return (s for s in picture.sights if s.job == lane.id and s.event != "dropped")
