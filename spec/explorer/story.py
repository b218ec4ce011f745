"""A counterexample as a reader wants it: in sentences, and as a timeline."""

from __future__ import annotations

from attrs import define

from unswept.spec.explorer.happenings import Lane, What
from unswept.spec.explorer.search import Event


@define
class _Run:
    """The same thing, once or several times with nothing else in its lane between."""

    what: What
    first: int
    last: int
    times: int = 1

    @property
    def when(self) -> str:
        return f"tick {self.first}" if self.times == 1 else f"ticks {self.first} to {self.last}"

    def __str__(self) -> str:
        said = self.what.words if self.times == 1 else f"{self.what.words}, {self.times} times"
        return f"{self.when}: {said}"


def sentences(trace: tuple[Event, ...]) -> tuple[str, ...]:
    """The events in order; what repeats in one lane is told once, where it begins."""
    runs: list[_Run] = []
    latest: dict[Lane, _Run] = {}
    for event in trace:
        run = latest.get(event.what.lane)
        if run is not None and run.what is event.what:
            run.last, run.times = event.tick, run.times + 1
        else:
            run = _Run(event.what, event.tick, event.tick)
            latest[event.what.lane] = run
            runs.append(run)
    return tuple(map(str, runs))


def timeline(trace: tuple[Event, ...]) -> tuple[str, ...]:
    """One line per lane, one column per tick; within a column, events stand in their order."""
    columns: list[list[What]] = [[] for _ in range(trace[-1].tick + 1)] if trace else []
    for event in trace:
        columns[event.tick].append(event.what)
    widths = [max(len(str(tick)), len(events)) for tick, events in enumerate(columns)]
    ticks = [str(tick).ljust(width) for tick, width in enumerate(widths)]
    lines = [_line("tick", ticks)]
    for lane in Lane:
        cells = [
            "".join(what.sign if what.lane is lane else " " for what in events).ljust(width)
            for events, width in zip(columns, widths, strict=True)
        ]
        lines.append(_line(lane, cells))
    return tuple(lines)


def legend(trace: tuple[Event, ...]) -> tuple[str, ...]:
    """What the signs in this trace's timeline mean, lane by lane."""
    used = {event.what for event in trace}
    return tuple(
        _line(what.lane, [f"{what.sign}  {what.words}"])
        for lane in Lane
        for what in What
        if what.lane is lane and what in used
    )


def _line(heading: str, cells: list[str]) -> str:
    return f"{heading:<16} {'|'.join(cells)}".rstrip()
