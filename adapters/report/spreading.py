"""Draws the steps of a script apart that its store was told at one and the same moment."""

from __future__ import annotations

from itertools import groupby
from typing import Final

from attrs import evolve

from unswept.adapters.report.reading import Line, Trace

_PARTS: Final = 40
"""Two steps of one moment are drawn this part of the whole script apart."""
_STILL: Final = 1_000
"""Milliseconds between them where no time passes in the whole script."""


def true_time(line: Line) -> int:
    """When it happened, wherever it is drawn."""
    return int(line["true_at"] if "true_at" in line else line["at"])


def spread(trace: Trace) -> Trace:
    """The same trace, with its commands one behind the other, each before whatever comes later."""
    last_line = trace.violation or trace.end
    lasts = 0 if last_line is None else int(last_line["at"])
    gap = lasts // _PARTS or _STILL
    moments = [(at, list(lines)) for at, lines in groupby(trace.lines, true_time)]
    ends = [*(at for at, _ in moments[1:]), lasts]
    drawn: list[Line] = []
    for (at, lines), following in zip(moments, ends, strict=True):
        commands = sum(line["type"] == "command" for line in lines)
        room = following - at
        apart = min(gap, room // (commands + 1)) if room else gap
        drawn += _apart(lines, apart)
    last = max(lasts, *(line["at"] for line in drawn), 0)
    return evolve(
        trace,
        lines=tuple(drawn),
        violation=trace.violation and {**trace.violation, "at": last},
        end=trace.end and {**trace.end, "at": last + gap},
    )


def _apart(lines: list[Line], by_ms: int) -> list[Line]:
    drawn, place = [], 0
    for line in lines:
        drawn.append({**line, "at": line["at"] + place * by_ms, "true_at": line["at"]})
        place += line["type"] == "command"
    return drawn
