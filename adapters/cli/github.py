"""A campaign for GitHub Actions: annotations of the run, and a summary of the job in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.simulate_report import Report, by_design, sentence_of
from unswept.simulations.profiles import PROFILES


def workflow_commands(report: Report) -> Iterator[str]:
    """A workflow command for each thing that is wrong."""
    totals = report.totals
    if totals.violation is not None:
        found = totals.violation
        yield _error(
            f"unswept: {found.law} was broken by seed {totals.violated_seed}",
            f"{found.offence}\n{sentence_of(found.law)}\nReplay it: {report.replay}",
        )
    if totals.unequal_seed is not None:
        seed = totals.unequal_seed
        yield _error("unswept: not deterministic", f"Seed {seed} gave two different runs.")
    for verdict in report.designs:
        if not verdict.caught:
            title = f"unswept: {verdict.design} was not caught"
            yield _error(
                title, f"{verdict.law or 'No law'} caught this broken design: {verdict.sentence}"
            )
    if owed := report.shortfall():
        yield _error("unswept: not everything was put to the test", "Never: " + "; ".join(owed))


def _error(title: str, message: str) -> str:
    data = message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    name = title.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    name = name.replace(":", "%3A").replace(",", "%2C")
    return f"::error title={name}::{data}"


def summary(report: Report) -> str:
    """What is appended to the job's summary."""
    sign = "✅" if report.code is ExitCode.HELD else "❌"
    parts = [f"## {sign} unswept simulate: {report.verdict}", f"{_text(report.counted)}."]
    if report.totals.violation is not None:
        parts += _violation(report)
    if report.table:
        rows = [
            [f"`{design}`", *(str(counts.get(profile, "")) for profile in PROFILES)]
            for design, counts in by_design(report.table).items()
        ]
        parts += ["### Heartbeated jobs swept", _table(["design", *PROFILES], rows)]
    if report.designs:
        rows = [
            [f"`{each.design}`", each.law or "**nothing**", str(each.seed or ""), each.sentence]
            for each in report.designs
        ]
        parts += [
            "### Broken designs",
            _table(["design", "caught by", "seed", "what it does"], rows),
        ]
    if owed := report.shortfall():
        parts += ["### What never happened", "\n".join(f"- {_text(each)}" for each in owed)]
    return "\n\n".join(parts) + "\n\n"


def _violation(report: Report) -> Iterable[str]:
    totals = report.totals
    found = totals.violation
    assert found is not None
    yield f"**{found.law} was broken by seed {totals.violated_seed}:** {_text(found.offence)}"
    if sentence := sentence_of(found.law):
        yield f"The law: {_text(sentence)}"
    yield _fence([f"{report.replay}"])
    yield "<details><summary>The last events before it, in simulated seconds</summary>"
    yield _fence(found.last_lines)
    yield "</details>"


def _table(headings: list[str], rows: list[list[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |"
        for line in lines
    )


def _fence(lines: Iterable[str]) -> str:
    return "\n".join(("````text", *lines, "````"))


def _text(words: str) -> str:
    return escape(words, quote=False)
