"""The page as Markdown. All that two runs of the same sources do alike comes first, and times last:
a diff of two pages shows what has changed in the sources and in what they came to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from unswept.adapters.evidence.dossier import Chapter, Dossier
from unswept.adapters.evidence.limits import NOT_MEANT
from unswept.adapters.evidence.verdicts import Verdict
from unswept.adapters.evidence.words import brief, headline, made_by, parts_of, record_of
from unswept.simulations.scenarios.catalogue import SCENARIOS


def markdown(told: Dossier) -> str:
    """The whole page."""
    return "\n".join(_lines(told)) + "\n"


def _lines(told: Dossier) -> Iterator[str]:
    yield "# The evidence"
    yield ""
    yield f"**{headline(told)}**"
    yield ""
    yield made_by(told)
    yield from _list("Refuted", told.refuted)
    yield from _list("Holes", told.holes)
    yield from _section("Every law by every road")
    yield from _table(
        ("law", *(title for title, _ in told.roads)),
        (
            [f"[{chapter.law.id}](#{chapter.law.id.lower()})", *_briefs(chapter)]
            for chapter in told.chapters
        ),
    )
    for chapter in told.chapters:
        yield from _chapter(chapter)
    yield from _section("The roads")
    yield from _table(("road", "what it does"), told.roads)
    yield from _section("Track record")
    yield (
        "Faults that job systems have had in the field. Each is kept as a story that is told to "
        "every store (`unswept scenarios`), and must go well."
    )
    yield ""
    yield from _table(
        ("fault", "what went wrong", "what must hold"),
        ((each.id, each.field, each.title) for each in SCENARIOS.values()),
    )
    yield from _section("What this page does not mean")
    for heading, sentences in NOT_MEANT:
        yield f"{heading}:"
        yield ""
        yield from (f"- {sentence}" for sentence in sentences)
        yield ""
    yield from _records(told)
    yield from _times(told)


def _chapter(chapter: Chapter) -> Iterator[str]:
    law = chapter.law
    yield from _section(law.id)
    yield f"> {law.sentence}"
    yield ""
    yield "Stated in " + ", ".join(f"`{place}` ({place.what})" for place in chapter.places) + "."
    for entry in chapter.entries:
        yield ""
        yield f"**{entry.road}**: {_verdict(entry.verdict)}"
        if entry.verdict.rows:
            yield ""
            yield from _table(entry.verdict.headings, (row.cells for row in entry.verdict.rows))


def _records(told: Dossier) -> Iterator[str]:
    yield from _section("Records")
    yield from _table(
        ("record", "command", "version", "Python", "came to"),
        (record_of(record, record.stem in told.stale) for record in told.records),
    )
    yield ""
    yield "The SHA-256 of what each judged, part by part:"
    yield ""
    yield from _table(("part", "SHA-256", "judged by"), parts_of(told.records))


def _times(told: Dossier) -> Iterator[str]:
    """What no two runs share."""
    yield from _section("Times")
    yield from _table(
        ("record", "began (UTC)", "seconds", "SHA-256 of its result"),
        ((each.stem, each.began, f"{each.seconds:.1f}", each.digest) for each in told.records),
    )
    timed = {
        (entry.road, row.cells[0]): row
        for chapter in told.chapters
        for entry in chapter.entries
        for row in entry.verdict.rows
        if row.seconds is not None
    }
    yield ""
    yield from _table(
        ("road", "what", "seconds"),
        ((road, name, f"{row.seconds:.1f}") for (road, name), row in timed.items()),
    )


def _section(title: str) -> Iterator[str]:
    yield ""
    yield f"## {title}"
    yield ""


def _list(title: str, sentences: Sequence[str]) -> Iterator[str]:
    if sentences:
        yield from _section(title)
        yield from (f"- {_escaped(sentence)}" for sentence in sentences)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(headings)} |"
    yield f"|{'---|' * len(headings)}"
    for row in rows:
        yield f"| {' | '.join(map(_escaped, row))} |"


def _briefs(chapter: Chapter) -> Iterator[str]:
    return (brief(entry.verdict) for entry in chapter.entries)


def _verdict(verdict: Verdict) -> str:
    said = f" ({_escaped(verdict.said)})" if verdict.said else ""
    return f"{verdict.kind}{said}"


def _escaped(words: str) -> str:
    """Words of a record are words, never markup; links of this page's own have no space."""
    if re.fullmatch(r"\[\w+\]\(#\w+\)", words):
        return words
    marks = r"[\\`*\[\]<>|]|(?<!\w)_|_(?!\w)"
    return re.sub(marks, r"\\\g<0>", " ".join(words.split()))
