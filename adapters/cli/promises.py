"""The tables of a chaos run: what there was, which promises held, and what broke the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from unswept.adapters.chaos.verdict import Violation


def print_counts(console: Console, title: str, counts: Iterable[tuple[int, str]]) -> None:
    """How much there was of everything that there was some of."""
    table = Table(title=title, title_justify="left", box=None, show_header=False)
    table.add_column(justify="right")
    table.add_column()
    for count, name in counts:
        if count:
            table.add_row(str(count), name)
    console.print(table)


def print_promises(
    console: Console,
    names: Iterable[str],
    violations: Sequence[Violation],
    missing: Iterable[str],
) -> None:
    """Each promise, then each offence, then what there was none of."""
    table = Table(title="Promises", title_justify="left", box=None, show_header=False)
    for name in names:
        broken = sum(violation.check == name for violation in violations)
        table.add_row(f"[red]broken {broken} times[/red]" if broken else "held", name)
    console.print(table)
    for violation in violations:
        console.print(f"[bold red]{violation.check}[/bold red]:", highlight=False)
        console.print(f"  {violation.offence}", highlight=False, markup=False, soft_wrap=True)
    for name in missing:
        console.print(f"[yellow]never[/yellow] {name}", highlight=False)
