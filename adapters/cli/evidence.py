"""`unswept report --evidence`: every law by every road, as one HTML and one Markdown page."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.evidence.dossier import Dossier, dossier
from unswept.adapters.evidence.markdown import markdown
from unswept.adapters.evidence.page import page
from unswept.adapters.evidence.verdicts import Kind
from unswept.adapters.evidence.words import headline
from unswept.core.errors import MisuseError

PAGE: Final = Path("evidence.html")


def write_evidence(folder: Path, out: Path) -> ExitCode:
    """Write both pages from the records in the folder, and say what is refuted or missing."""
    if out.suffix != ".html":
        raise MisuseError(f"--out must end in .html, got {out}; the Markdown page lies beside it")
    told = dossier(folder)
    console = Console()
    for target, text in ((out, page(told)), (out.with_suffix(".md"), markdown(told))):
        try:
            target.write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            raise MisuseError(f"--out {target} cannot be written: {error.strerror}") from None
        console.print(
            f"{target}, {len(text.encode()) / 1024:.0f} kB", highlight=False, soft_wrap=True
        )
    console.print(_table(told))
    for heading, sentences in (("Refuted", told.refuted), ("Holes", told.holes)):
        if sentences:
            console.print(f"[bold]{heading}[/bold]")
        for sentence in sentences:
            console.print(f"- {sentence}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"[bold]{headline(told)}[/bold]", highlight=False)
    return _exit_code(told)


def _exit_code(told: Dossier) -> ExitCode:
    if told.refuted:
        return ExitCode.REFUTED
    if told.undetermined:
        return ExitCode.UNDETERMINED
    return ExitCode.COVERAGE_SHORT if told.holes else ExitCode.HELD


_SHORT: Final = {Kind.NOT_JUDGED: "-", Kind.NOT_RUN: "", Kind.HOLE: "[yellow]HOLE[/yellow]"}


def _table(told: Dossier) -> Table:
    """The words alone; what stands behind them is on the page."""
    table = Table(title="Laws by roads", title_justify="left", box=None)
    table.add_column("law")
    for title, _ in told.roads:
        table.add_column(title.lower())
    for chapter in told.chapters:
        kinds = [entry.verdict.kind for entry in chapter.entries]
        table.add_row(chapter.law.id, *(_SHORT.get(kind, kind.lower()) for kind in kinds))
    return table
