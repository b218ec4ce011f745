"""How the page words what it says, in Markdown and HTML alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from unswept.adapters.evidence.dossier import Dossier
from unswept.adapters.evidence.records import Record
from unswept.adapters.evidence.verdicts import Kind, Verdict, counted

_WHY: frozenset[Kind] = frozenset({Kind.NOT_JUDGED, Kind.NOT_RUN, Kind.HOLE, Kind.STALE})
"""Words that say enough in a table; why, the law's own chapter says."""


def headline(told: Dossier) -> str:
    """The verdict of the page."""
    if told.refuted:
        return f"Refuted: {counted(len(told.refuted), 'counterexample')}."
    if told.holes:
        return f"Nothing is refuted, but there are holes: {len(told.holes)}."
    return f"No holes: each of {len(told.chapters)} laws is shown by every road that can judge it."


def made_by(told: Dossier) -> str:
    """What the page was made of."""
    return (
        f"Made by unswept {told.version} from {counted(len(told.records), 'record')} of its runs; "
        "the same records and sources make the same page."
    )


def brief(verdict: Verdict) -> str:
    """The word and the first figure."""
    if verdict.kind in _WHY or not verdict.said:
        return str(verdict.kind)
    first = verdict.said.split("; ")[0].split(", ")[0].split(": ")[0]
    return f"{verdict.kind} ({first})"


def record_of(record: Record, stale: bool) -> tuple[str, ...]:
    """One line of the table of records."""
    came_to = str(record.result["verdict"]).replace("_", " ")
    return (
        record.stem,
        record.command,
        record.version,
        record.python,
        f"{came_to}, of other sources" if stale else came_to,
    )


def parts_of(records: Iterable[Record]) -> Iterator[tuple[str, ...]]:
    """Each part of the sources with its hash, and the records that judged it as it was then."""
    judged: dict[tuple[str, str], list[str]] = {}
    for record in records:
        for part, hashed in record.sources.items():
            judged.setdefault((part, hashed), []).append(record.stem)
    for (part, hashed), names in sorted(judged.items()):
        yield part, hashed, ", ".join(names)
