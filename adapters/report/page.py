"""Writes the page of a run: one file that fetches nothing."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from attrs import frozen

from unswept.adapters.report import assets, tables
from unswept.adapters.report.packing import packed
from unswept.adapters.report.picture import Picture
from unswept.adapters.report.reading import Listed, Trace
from unswept.adapters.report.words import clock, counted, verdict
from unswept.simulations.faults import FAULTS
from unswept.spec.laws import BY_ID

_PILLS = {"held": "Held", "refuted": "Law broken", "undetermined": "Undetermined"}

_WIDE = 60
"""Letters; a longer fact takes a line of its own."""


@frozen
class Subject:
    """What a page is about."""

    trace: Trace
    picture: Picture
    listed: tuple[Listed, ...] = ()
    """The runs that lie beside it."""
    campaign: Mapping[str, Any] | None = None
    """What `unswept simulate --json` printed."""
    replay: str | None = None
    """The command that runs it again."""


def page(subject: Subject) -> str:
    """The whole page."""
    found = subject.picture.violation
    style, script = assets.style(), assets.script()
    title = f"{verdict(subject.trace)[1]} · {_name(subject.trace)} · unswept"
    return assets.template("template.html").substitute(
        name=f"unswept-{_name(subject.trace).replace(' ', '-')}",
        title=escape(title),
        policy=assets.policy(style, script),
        style=style,
        script=script,
        verdict=_verdict(subject),
        facts=_facts(subject),
        violation_button=_violation_button(subject),
        touched_hidden="" if found else " hidden",
        touched_checked=" checked" if found and _any_touched(subject.picture) else "",
        legend=assets.text("legend.html"),
        sections=_sections(subject),
        footer=_footer(subject),
        run=packed(subject.picture),
    )


def _name(trace: Trace) -> str:
    seed = f"seed {trace.run['seed']}"
    return seed if trace.shrunk is None else f"script of {seed}"


def _any_touched(picture: Picture) -> bool:
    return any(lane.touched for lane in picture.jobs)


def _verdict(subject: Subject) -> str:
    kind, words = verdict(subject.trace)
    found = subject.picture.violation
    told = ""
    if found is not None:
        told = f'<p class="offence">{escape(found.offence)}.</p>'
        if found.law in BY_ID:
            told += f'<p class="law">{found.law}: {escape(BY_ID[found.law].sentence)}</p>'
    return (
        f'<div class="verdict {kind}"><span class="pill">{_PILLS[kind]}</span>'
        f"<h1>{escape(words)}</h1>{told}</div>"
    )


def _facts(subject: Subject) -> str:
    trace, picture = subject.trace, subject.picture
    run, end = trace.run, trace.end or {}
    settings = dict(run["settings"])
    if trace.shrunk is not None:
        told: dict[str, Any] = {
            "shrunk to": counted(trace.shrunk.steps, "step"),
            "found in": f"seed {run['seed']}",
            "design": settings["design"],
            "store": run["store"],
            "version": run["version"],
        }
        return _cells(told, subject.replay)
    told = {
        "seed": run["seed"],
        "design": settings.pop("design", None),
        "simulated time": clock(picture.ends),
        "commands": f"{end.get('commands', len(picture.commands)):,}",
        "jobs": f"{len(picture.jobs):,}",
        "live jobs swept": _swept(end.get("live_jobs_swept"), subject),
        "gateways": settings.pop("instances", None),
        "runners": settings.pop("runners", None),
        "store": run["store"],
        "version": run["version"],
        "digest": end.get("digest"),
    }
    faults = settings.pop("faults", ())
    told |= {name: value for name, value in settings.items() if name not in ("seed", "hours")}
    told["faults"] = _faults(tuple(faults))
    return _cells(told, subject.replay)


def _cells(told: Mapping[str, Any], replay: str | None) -> str:
    cells = "".join(_fact(name, value) for name, value in told.items() if value is not None)
    return f'<dl class="facts">{cells}</dl>{_replay(replay)}'


def _faults(names: tuple[str, ...]) -> str:
    return f"all {len(names)}" if names == tuple(FAULTS) else ", ".join(names) or "none"


def _swept(count: int | None, subject: Subject) -> str | None:
    if count and subject.picture.violation is None:
        return f"{count}, each by its owner’s own fault"  # which L12 allows, past the ttl
    return None if count is None else str(count)


def _worded(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _fact(name: str, value: object) -> str:
    words = _worded(value)
    kind = ' class="wide"' if len(words) > _WIDE else ""
    if name == "digest":
        kind = ' class="digest"'
    told = escape(name.replace("_", " "))
    return f"<div{kind}><dt>{told}</dt><dd>{escape(words)}</dd></div>"


def _replay(command: str | None) -> str:
    if command is None:
        return ""
    return (
        f'<div class="command"><code id="replay">{escape(command)}</code>'
        '<button type="button" id="copy">Copy</button></div>'
    )


def _violation_button(subject: Subject) -> str:
    if subject.picture.violation is None:
        return ""
    return '<button type="button" id="to-violation" class="strong">To the violation</button>'


def _sections(subject: Subject) -> str:
    end = subject.trace.end or {}
    found = subject.picture.violation
    parts = []
    if subject.campaign is not None:
        parts.append(_section("Designs under test", tables.designs(subject.campaign)))
        if table := subject.campaign.get("table"):
            parts.append(_section("Heartbeated jobs swept", tables.headline(table)))
    if len(subject.listed) > 1:
        runs = tables.runs(subject.listed, subject.trace.run["seed"])
        parts.append(_section("Runs in this folder", runs))
    parts.append(
        _section("Laws", tables.laws(end.get("checked", {}), found.law if found else None))
    )
    if subject.trace.shrunk is not None:
        return "\n".join((*parts, assets.text("script.html")))
    marks = _section("What must sometimes happen", tables.marks(end.get("sometimes", {})))
    faults = _section("Faults", tables.faults(end.get("faults", {})))
    parts.append(f'<section class="columns">{faults}{marks}</section>')
    parts.append(assets.text("limits.html"))
    return "\n".join(parts)


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>"


def _footer(subject: Subject) -> str:
    run = subject.trace.run
    if subject.trace.shrunk is not None:
        return (
            f"Written by unswept from {escape(subject.trace.file.name)}, a script that version "
            f"{escape(str(run['version']))} has carried out. Times are the store clock’s, counted "
            "from the first step; steps of one moment are drawn apart. This page fetches nothing."
        )
    return (
        f"Written by unswept from {escape(subject.trace.file.name)}, a trace of version "
        f"{escape(str(run['version']))}. Times are simulated true time; rows bear the store "
        "clock’s, counted from the start of the run. This page fetches nothing."
    )
