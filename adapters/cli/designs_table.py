"""The table of the designs under test, and of the laws that caught them."""

from __future__ import annotations

from rich.table import Table

from unswept.simulations.mutants import Verdict


def designs_table() -> Table:
    """The table without a row."""
    table = Table(title="Designs under test", title_justify="left", box=None)
    for heading in ("design", "caught by", "seed", "what it does, and how it fails"):
        table.add_column(heading)
    return table


def add_verdict(table: Table, verdict: Verdict) -> None:
    """A row: a design, the law that caught it, the seed, and what it does and how it fails."""
    if verdict.law is None:
        table.add_row(verdict.design, "[red]nothing[/red]", "", verdict.sentence)
        return
    wrongly = "" if verdict.caught else f" [red]not {' or '.join(verdict.expected)}[/red]"
    said = f"{verdict.sentence} {verdict.offence}."
    table.add_row(verdict.design, verdict.law + wrongly, str(verdict.seed), said)
