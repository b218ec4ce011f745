"""The page's tables, as HTML that stands without any script.

Their roles are spelt out, for on a phone their rows are laid out as blocks, and a browser would
forget that they are rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from unswept.adapters.report.reading import Listed
from unswept.simulations.faults import FAULTS
from unswept.simulations.marks import Mark
from unswept.spec.laws import LAWS, Judges

Cell = str | int | None
"""A word, a count, or nothing."""
_SHORT = 24
"""Letters; longer words take a line of their own on a phone."""


def laws(checked: Mapping[str, int], broken: str | None) -> str:
    """Every law that a run can judge, and how often it did."""
    rows = []
    for law in LAWS:
        if law.judges is Judges.CODE:
            continue
        said = "broken" if law.id == broken else None
        rows.append(_row((law.id, checked.get(law.id, 0), law.sentence), law.id == broken, said))
    return _table("Laws", ("law", "judged", "what it says"), rows)


def faults(counts: Mapping[str, int]) -> str:
    """What befell the run."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rows = [
        _row((name, count, FAULTS[name].story if name in FAULTS else ""))
        for name, count in ordered
        if count
    ]
    return _table("Faults", ("fault", "times", "what it is"), rows)


def marks(counts: Mapping[str, int]) -> str:
    """What must sometimes happen: what did in this run, and what did not."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    table = _table(
        "What must sometimes happen",
        ("what", "times"),
        [_row((name, count)) for name, count in ordered if count],
        kind="sentences",
    )
    never = [mark.value for mark in Mark if not counts.get(mark.value)]
    listed = "".join(f"<li>{escape(name)}</li>" for name in never)
    return (
        f"{table}<details><summary>{len(never)} that did not happen in this run; a campaign owes "
        f"them, not every run</summary><ul>{listed}</ul></details>"
    )


def runs(listed: Iterable[Listed], shown: int) -> str:
    """The runs that lie in one folder."""
    rows = [
        _row(
            (f"seed {each.seed}", each.law or _unbroken(each), each.file.name),
            each.law is not None,
            "shown here" if each.seed == shown else None,
        )
        for each in listed
    ]
    return _table("Runs in this folder", ("seed", "broken law", "trace"), rows)


def _unbroken(run: Listed) -> str:
    return "held" if run.ended else "undetermined: the trace ends early"


def designs(campaign: Mapping[str, Any]) -> str:
    """Which law caught which design, with which seed."""
    rows = [
        _row(
            (
                found["design"],
                found["law"] or "nothing",
                "" if found["seed"] is None else f"seed {found['seed']}",
                f"{found['sentence']} {found['offence'] or ''}".strip(),
            ),
            found["law"] is None,
        )
        for found in campaign["designs"]
    ]
    own = campaign["settings"]["design"]
    verdict = "held" if campaign["violation"] is None else campaign["violation"]["law"]
    head = (own, verdict, f"seeds 1 to {campaign['seeds']}", "The design of this campaign.")
    headings = ("design", "caught by", "shown by", "what it does, and how it fails")
    return _table("Designs under test", headings, [_row(head), *rows])


def headline(cells: Iterable[Mapping[str, Any]]) -> str:
    """How many heartbeated jobs each design swept under each profile of faults."""
    swept: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for cell in cells:
        swept[cell["design"]][cell["profile"]] = cell["heartbeated_jobs_swept"]
    profiles = list(dict.fromkeys(profile for found in swept.values() for profile in found))
    rows = [
        _row((design, *(found.get(profile) for profile in profiles)), any(found.values()))
        for design, found in swept.items()
    ]
    headings = ("design", *(f"under {profile}" for profile in profiles))
    return _table("Heartbeated jobs swept", headings, rows, frozenset(headings[1:]))


def _row(cells: tuple[Cell, ...], marked: bool = False, badge: str | None = None) -> str:
    first, *rest = cells
    kind = "bad" if marked else "good"
    said = f' <span class="badge {kind}">{escape(badge)}</span>' if badge else ""
    name = str(first)
    told = f'<th scope="row" role="rowheader"{_kind(name)}>{escape(name)}{said}</th>'
    told += "".join(map(_cell, rest))
    return f'<tr role="row"{" class=broken" if marked else ""}>{told}</tr>'


def _cell(cell: Cell) -> str:
    if isinstance(cell, int):
        return f'<td role="cell" class="number">{cell:,}</td>'
    return f'<td role="cell"{_kind(cell or "")}>{escape(cell or "")}</td>'


def _kind(words: str) -> str:
    return ' class="words"' if len(words) > _SHORT else ""


def _table(
    caption: str,
    headings: tuple[str, ...],
    rows: list[str],
    numbers: frozenset[str] = frozenset({"judged", "times"}),
    kind: str = "names",
) -> str:
    if not rows:
        return '<p class="muted">None.</p>'
    head = "".join(
        f'<th scope="col" role="columnheader" class="{"number" if name in numbers else ""}">'
        f"{escape(name)}</th>"
        for name in headings
    )
    return (
        f'<div class="table"><table role="table" aria-label="{escape(caption)}" class="{kind}">'
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>'
        f'<tbody role="rowgroup">{"".join(rows)}</tbody></table></div>'
    )
