"""Puts it together: what each road says of each law, what is refuted, and what is a hole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from unswept.adapters.evidence.declared import DECLARED
from unswept.adapters.evidence.naming import SAYS, TITLE, tests
from unswept.adapters.evidence.places import Place, places
from unswept.adapters.evidence.records import Record, read_all
from unswept.adapters.evidence.roads import ROADS, Road
from unswept.adapters.evidence.verdicts import Kind, Verdict, together
from unswept.adapters.version import version
from unswept.core.errors import MisuseError
from unswept.spec.laws import LAWS, Law

_HELD, _REFUTED, _SHORT = 0, 1, 4
"""Exit codes: all was found good, a law is broken, something was not put to the test."""


@frozen
class Entry:
    """What one road says of one law."""

    road: str
    """Its title."""
    verdict: Verdict


@frozen
class Chapter:
    """All that stands behind one law."""

    law: Law
    places: tuple[Place, ...]
    entries: tuple[Entry, ...]
    """One for each road, in their order."""


@frozen
class Dossier:
    """All that a page says."""

    version: str
    records: tuple[Record, ...]
    stale: frozenset[str]
    """Records, by stem, that are of other sources than these."""
    chapters: tuple[Chapter, ...]
    refuted: tuple[str, ...]
    """What broke, in sentences."""
    holes: tuple[str, ...]
    """What is neither shown nor declared, in sentences."""
    undetermined: bool
    """Was something tried and not found out?"""

    @property
    def roads(self) -> tuple[tuple[str, str], ...]:
        """The title of each road, and what it does."""
        return (*((road.title, road.says) for road in ROADS), (TITLE, SAYS))


def dossier(folder: Path) -> Dossier:
    """What the records in this folder come to, for the sources that are installed."""
    found = read_all(folder) if folder.is_dir() else ()
    changed = {record.stem: record.changed() for record in found}
    # What a part refuted of other sources may be mended: it is for the whole to show.
    records = tuple(each for each in found if each.whole or not changed[each.stem])
    where = places()
    chapters = tuple(
        Chapter(law, where.get(law.id, ()), tuple(_entries(law.id, records, changed)))
        for law in LAWS
    )
    fresh = [record for record in records if not changed[record.stem]]
    return Dossier(
        version=version(),
        records=records,
        stale=frozenset(stem for stem, parts in changed.items() if parts),
        chapters=chapters,
        refuted=(*_refuted(chapters), *_broken_runs(fresh, chapters)),
        holes=(*_holes(chapters), *_short_runs(fresh)),
        undetermined=any(each.exit_code not in (_HELD, _REFUTED, _SHORT) for each in fresh)
        or any(
            entry.verdict.kind is Kind.UNDETERMINED
            for chapter in chapters
            for entry in chapter.entries
        ),
    )


def _entries(
    law: str, records: Sequence[Record], changed: dict[str, tuple[str, ...]]
) -> Iterator[Entry]:
    for road in ROADS:
        mine = [record for record in records if record.name in road.records]
        yield Entry(road.title, _said(road, law, mine, changed))
    yield Entry(TITLE, tests(law))


def _said(
    road: Road, law: str, records: Sequence[Record], changed: dict[str, tuple[str, ...]]
) -> Verdict:
    """A record of other sources would speak of this law if a fresh one of its kind would."""
    verdicts = []
    for record in records:
        parts = changed[record.stem]
        stale = Verdict(Kind.STALE, f"since {record.command}: {', '.join(parts)} changed")
        try:
            verdict = road.judge(record, law)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if not parts:
                raise MisuseError(f"{record.stem}.json is damaged: {error!r}") from None
            verdict = stale  # of a version that said it otherwise
        if verdict is not None and parts and verdict.kind is not Kind.NOT_JUDGED:
            verdict = stale
        if verdict is not None:
            verdicts.append(verdict)
    found = together(verdicts)
    if found is not None:
        return found
    reason = DECLARED.get(road.id, {}).get(law)
    if reason is not None:
        return Verdict(Kind.NOT_JUDGED, reason)
    if not records:
        kind = Kind.HOLE if road.owed else Kind.NOT_RUN
        return Verdict(kind, f"no record of {road.command}")
    if not road.owed:
        return Verdict(Kind.NOT_JUDGED, "none of its records speaks of it")
    return Verdict(Kind.HOLE, f"{road.command} did not put it to the test")


def _refuted(chapters: Sequence[Chapter]) -> Iterator[str]:
    for chapter in chapters:
        for entry in chapter.entries:
            if entry.verdict.kind is Kind.REFUTED:
                yield f"{chapter.law.id}, {entry.road}: {entry.verdict.said}"


def _broken_runs(fresh: Sequence[Record], chapters: Sequence[Chapter]) -> Iterator[str]:
    """What is of no law, such as a reply that differs from the pure store's."""
    told = {
        entry.road
        for chapter in chapters
        for entry in chapter.entries
        if entry.verdict.kind is Kind.REFUTED
    }
    for record in fresh:
        by_law = any(record.name in road.records and road.title in told for road in ROADS)
        if record.exit_code == _REFUTED and not by_law and record.name != "twins":
            yield _ended(record)


def _holes(chapters: Sequence[Chapter]) -> Iterator[str]:
    """One sentence for all laws of which one road says the same."""
    alike: dict[tuple[str, Verdict], list[str]] = {}
    for chapter in chapters:
        for entry in chapter.entries:
            if entry.verdict.is_hole:
                told = Verdict(entry.verdict.kind, entry.verdict.said)
                alike.setdefault((entry.road, told), []).append(chapter.law.id)
    for (road, verdict), laws in alike.items():
        yield f"{road}: {verdict} for {', '.join(laws)}"


def _short_runs(fresh: Sequence[Record]) -> Iterator[str]:
    """A run that fell short as a whole, whatever it says of each law."""
    for record in fresh:
        if record.exit_code > _REFUTED:
            yield _ended(record)


def _ended(record: Record) -> str:
    """How a run ended, and by what."""
    word = str(record.result["verdict"]).replace("_", " ")
    why = "; ".join(dict.fromkeys(_why(record.result)))
    return f"{record.command} ended {word}" + (f": {why}" if why else "")


def _why(result: Mapping[str, Any]) -> Iterator[str]:
    """What is not as it must be, whatever kind of run it was."""
    never = result.get("never", ())
    yield from (f"never {each}" for each in never)
    yield from (str(each) for each in result.get("short", ()) if each not in never)
    if violation := result.get("violation"):
        yield f"{violation['law']}: {violation['offence']}"
    for each in result.get("designs", ()):
        if each["law"] not in each["expected"]:
            yield f"{each['design']} was caught by {each['law'] or 'nothing'}"
    for each in result.get("theorems", ()):
        if each.get("verdict", "proved") != "proved":
            yield f"{each['name']} is {each['verdict']}"
    table = result.get("table")  # explore's has searches; simulate's is a list of cells
    of_table = table.get("searches", ()) if isinstance(table, Mapping) else ()
    for each in (*result.get("searches", ()), *of_table):
        if each["design"] != result["design"] and each["verdict"] != "refuted":
            yield f"{each['design']} was not refuted"
