"""The page as HTML: one file that fetches nothing, in the dress of a run's report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Final

from unswept.adapters.evidence.dossier import Chapter, Dossier, Entry
from unswept.adapters.evidence.limits import NOT_MEANT
from unswept.adapters.evidence.verdicts import HOLES, Kind, Verdict
from unswept.adapters.evidence.words import brief, headline, made_by, parts_of, record_of
from unswept.adapters.report import assets
from unswept.simulations.scenarios.catalogue import SCENARIOS

_SHOWN: Final = frozenset({Kind.PROVED, Kind.EXHAUSTED, Kind.SURVIVED, Kind.CAUGHT, Kind.NAMED})
_NUMBER: Final = re.compile(r"[\d,]+(\.\d+)?")
_LONG: Final = 24
"""Letters."""
_FEW: Final = 3
"""So many rows stand open; more are folded away."""


def page(told: Dossier) -> str:
    """The whole page."""
    style = f"{assets.style()}\n{_asset('evidence.css')}"
    script = _asset("evidence.js")
    return Template(_asset("evidence.html")).substitute(
        policy=assets.policy(style, script),
        title=escape(f"{headline(told)} · unswept"),
        style=style,
        script=script,
        verdict=_verdict(told),
        sections="\n".join(_sections(told)),
    )


def _asset(name: str) -> str:
    return (files("unswept.adapters.evidence") / "assets" / name).read_text(encoding="utf-8")


def _verdict(told: Dossier) -> str:
    kind, pill = "held", "No holes"
    if told.holes:
        kind, pill = "undetermined", "Holes"
    if told.refuted:
        kind, pill = "refuted", "Refuted"
    found = "".join(f"<li>{escape(each)}</li>" for each in (*told.refuted, *told.holes))
    listed = f'<ul class="faults">{found}</ul>' if found else ""
    return (
        f'<div class="verdict {kind}"><span class="pill">{pill}</span>'
        f"<h1>{escape(headline(told))}</h1>{listed}"
        f'<p class="muted">{escape(made_by(told))}</p></div>'
    )


def _sections(told: Dossier) -> Iterator[str]:
    yield _section("Every law by every road", _summary(told), "laws")
    yield from (_chapter(chapter) for chapter in told.chapters)
    yield _section("The roads", _table("Roads", ("road", "what it does"), told.roads))
    record = _table(
        "Track record",
        ("fault", "what went wrong", "what must hold"),
        [(each.id, each.field, each.title) for each in SCENARIOS.values()],
    )
    yield _section(
        "Track record",
        "<p>Faults that job systems have had in the field. Each is kept as a story that is told to "
        "every store (<code>unswept scenarios</code>), and must go well.</p>"
        f"<details><summary>{len(SCENARIOS)} stories</summary>{record}</details>",
    )
    limits = "".join(
        f"<h3>{escape(heading)}</h3><ul>{''.join(f'<li>{escape(each)}</li>' for each in said)}</ul>"
        for heading, said in NOT_MEANT
    )
    yield f'<section class="limits"><h2>What this page does not mean</h2>{limits}</section>'
    yield _section("Records", _records(told))


def _section(title: str, body: str, name: str = "") -> str:
    anchor = f' id="{name}"' if name else ""
    return f"<section{anchor}><h2>{escape(title)}</h2>{body}</section>"


def _summary(told: Dossier) -> str:
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title, _ in told.roads)
    rows = "".join(_summed(chapter) for chapter in told.chapters)
    return (
        '<div class="table"><table class="roads" aria-label="Every law by every road"><thead><tr>'
        f'<th scope="col">law</th>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _summed(chapter: Chapter) -> str:
    name = chapter.law.id
    cells = "".join(
        f'<td data-road="{escape(entry.road)}">{_word(entry.verdict)}'
        f"{_figure(brief(entry.verdict))}</td>"
        for entry in chapter.entries
    )
    return f'<tr><th scope="row"><a href="#{name}">{name}</a></th>{cells}</tr>'


def _figure(words: str) -> str:
    """What stands in brackets behind the word."""
    _, bracket, figure = words.partition(" (")
    return f'<span class="said">{escape(figure[:-1])}</span>' if bracket else ""


def _word(verdict: Verdict) -> str:
    kind = "good" if verdict.kind in _SHOWN else "open" if verdict.kind in HOLES else ""
    kind = "bad" if verdict.kind is Kind.REFUTED else kind
    return f'<span class="word {kind}">{escape(verdict.kind)}</span>'


def _chapter(chapter: Chapter) -> str:
    law = chapter.law
    stated = ", ".join(
        f"<code>{escape(str(place))}</code> ({escape(place.what)})" for place in chapter.places
    )
    return (
        f'<section class="chapter" id="{law.id}"><h2><a href="#{law.id}">{law.id}</a></h2>'
        f'<p class="sentence">{escape(law.sentence)}</p>'
        f'<p class="muted stated">Stated in {stated}.</p>'
        f"{''.join(map(_entry, chapter.entries))}</section>"
    )


def _entry(entry: Entry) -> str:
    verdict = entry.verdict
    said = f'<span class="said">{escape(verdict.said)}</span>' if verdict.said else ""
    return (
        f'<div class="entry"><h3>{escape(entry.road)}</h3>{_word(verdict)}{said}'
        f"{_rows(entry.road, verdict)}</div>"
    )


def _rows(road: str, verdict: Verdict) -> str:
    if not verdict.rows:
        return ""
    timed = any(each.seconds is not None for each in verdict.rows)
    headings = (*verdict.headings, "seconds") if timed else verdict.headings
    rows = [
        (*each.cells, "" if each.seconds is None else f"{each.seconds:.1f}")
        if timed
        else each.cells
        for each in verdict.rows
    ]
    state = " open" if len(rows) <= _FEW else ""
    unit = headings[0] if headings else "row"
    many = f"{len(rows)} × {unit}" if len(rows) > 1 else unit
    return (
        f"<details{state}><summary>{escape(many)}</summary>{_table(road, headings, rows)}</details>"
    )


def _records(told: Dossier) -> str:
    records = _table(
        "Records",
        ("record", "command", "version", "Python", "came to", "began (UTC)", "seconds"),
        [
            (*record_of(each, each.stem in told.stale), each.began, f"{each.seconds:.1f}")
            for each in told.records
        ],
    )
    sources = _table("Sources", ("part", "SHA-256", "judged by"), [*parts_of(told.records)])
    results = _table(
        "Results",
        ("record", "SHA-256 of its result"),
        [(each.stem, each.digest) for each in told.records],
    )
    return f"{records}<h3>What each judged</h3>{sources}<h3>What each came to</h3>{results}"


def _table(caption: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Roles are spelt out, and each cell bears its heading: on a phone its row is a block."""
    listed = [tuple(each) for each in rows]
    if not listed:
        return '<p class="muted">None.</p>'
    counts = [all(map(_NUMBER.fullmatch, column)) for column in zip(*listed, strict=True)]
    head = "".join(
        f'<th scope="col" role="columnheader"{_class(count)}>{escape(name)}</th>'
        for name, count in zip(headings, counts, strict=True)
    )
    body = "".join(_row(headings, counts, each) for each in listed)
    return (
        f'<div class="table"><table class="found" role="table" aria-label="{escape(caption)}">'
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>'
        f'<tbody role="rowgroup">{body}</tbody></table></div>'
    )


def _row(headings: Sequence[str], counts: Sequence[bool], cells: Sequence[str]) -> str:
    first, *others = (
        f'role="{role}" data-head="{escape(heading)}"{_class(count, words)}>{escape(words)}'
        for role, heading, count, words in zip(
            ("rowheader", *("cell" for _ in cells[1:])), headings, counts, cells, strict=True
        )
    )
    rest = "".join(f"<td {each}</td>" for each in others)
    return f'<tr role="row"><th scope="row" {first}</th>{rest}</tr>'


def _class(count: bool, words: str = "") -> str:
    """Counts stand to the right; what is long may be broken."""
    kind = "number" if count else "words" if len(words) > _LONG else ""
    return f' class="{kind}"' if kind else ""
