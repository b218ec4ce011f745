"""How times and verdicts are worded in pictures."""

from __future__ import annotations

from unswept.adapters.report.reading import Trace

_SECOND = 1_000
_MINUTE = 60 * _SECOND
_HOUR = 60 * _MINUTE


def clock(ms: int) -> str:
    """A simulated time, as 0:04:30.150."""
    hours, rest = divmod(ms, _HOUR)
    minutes, rest = divmod(rest, _MINUTE)
    return f"{hours}:{minutes:02}:{rest // _SECOND:02}.{rest % _SECOND:03}"


def span(ms: int) -> str:
    """A length of time in its greatest fitting unit, as 6.7 min."""
    for size, unit in ((24 * _HOUR, "d"), (_HOUR, "h"), (_MINUTE, "min"), (_SECOND, "s")):
        if ms >= size:
            return f"{ms / size:.3g} {unit}"
    return f"{ms} ms"


def counted(number: int, thing: str) -> str:
    """So many things, as 1 step or 3 steps."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def verdict(trace: Trace) -> tuple[str, str]:
    """`refuted`, `held` or `undetermined`, and what a person is told."""
    if trace.violation is not None:
        return "refuted", f"{trace.violation['law']} was broken"
    if trace.end is None:
        return "undetermined", "The trace ends before its run does"
    if trace.shrunk is not None:
        return "held", f"No law was broken; {trace.shrunk.law} holds here"
    return "held", "Every law held: no heartbeated job was swept"
