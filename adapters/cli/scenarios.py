"""`unswept scenarios`: tell a store each fault of the field, and compare what it answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from attrs import frozen
from rich.console import Console

from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.urls import SimulatedStore, without_password
from unswept.core.commands import Store
from unswept.core.errors import MisuseError
from unswept.core.memory import MemoryStore
from unswept.simulations.scenarios.catalogue import SCENARIOS
from unswept.simulations.scenarios.scenario import Scenario
from unswept.simulations.scenarios.storyteller import StandingClock, Storyteller, Told


@frozen
class Outcome:
    """A scenario, and what the store made of it."""

    scenario: Scenario
    told: Told


def scenarios(
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID", help="Such as C10 or C49-back; by default all."),
    ] = None,
    store: Annotated[
        str,
        typer.Option(
            help="The store under test: sqlite::memory:, sqlite: (a temporary file per scenario), "
            "sqlite:PATH, postgresql://... (a schema of its own per scenario), or memory: (the "
            "pure store)."
        ),
    ] = "sqlite::memory:",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Tell a store how job leases fail in the field, one small story after the other.

    Exit code: 0 each ended as it must, 1 one did not, 2 usage, 3 the store is out of reach.
    """
    chosen = _chosen(ids or [])
    opener = SimulatedStore(store)
    console = Console(stderr=as_json)
    done = []
    for number, scenario in enumerate(chosen):
        done.append(_played(scenario, opener, number))
        if not as_json:
            _print(console, done[-1], whole=bool(ids))
    differ = [outcome.scenario.id for outcome in done if not outcome.told.holds]
    code = ExitCode.REFUTED if differ else ExitCode.HELD
    if as_json:
        print(json.dumps(_as_json(done, without_password(store), code), indent=2))
    elif differ:
        said = f"{len(differ)} of {len(done)} differ: {', '.join(differ)}."
        console.print(f"[bold]{said}[/bold]", highlight=False, soft_wrap=True)
    else:
        console.print(
            f"[bold]{len(done)} scenarios: each ended as it must.[/bold]", highlight=False
        )
    raise typer.Exit(code)


def _chosen(ids: list[str]) -> list[Scenario]:
    """Those that are asked for; C49 means C49-back too."""
    for wanted in ids:
        if not any(_means(wanted, id_) for id_ in SCENARIOS):
            raise MisuseError(f"there is no scenario {wanted}; there are {', '.join(SCENARIOS)}")
    return [
        scenario
        for id_, scenario in SCENARIOS.items()
        if not ids or any(_means(wanted, id_) for wanted in ids)
    ]


def _means(wanted: str, id_: str) -> bool:
    return id_ == wanted or id_.startswith(f"{wanted}-")


def _played(scenario: Scenario, opener: SimulatedStore, number: int) -> Outcome:
    clock = StandingClock()
    with _open(opener, clock, number) as store:
        return Outcome(scenario, Storyteller(store, clock).play(scenario.story))


@contextmanager
def _open(opener: SimulatedStore, clock: StandingClock, number: int) -> Iterator[Store]:
    with opener(clock, number) as store:
        yield MemoryStore(clock) if store is None else store


def _print(console: Console, outcome: Outcome, whole: bool) -> None:
    """A line, and the story where it is asked for by its id or differs."""
    scenario, told = outcome.scenario, outcome.told
    plain: dict[str, Any] = {"highlight": False, "soft_wrap": True}
    verdict = "[green]held[/green]" if told.holds else "[red]differs[/red]"
    console.print(f"{scenario.id:<12} {verdict}  {scenario.title}", **plain)
    if told.holds and not whole:
        return
    plain["markup"] = False
    console.print(f"  {scenario.field}", **plain)
    for must, did in told.lines():
        if must == did:
            console.print(f"    {must}", **plain)
        else:
            console.print(f"  - {must}", **plain)
            console.print(f"  + {did}", **plain)


def _as_json(done: list[Outcome], store: str, code: ExitCode) -> dict[str, Any]:
    return {
        **code.verdict,
        "store": store,
        "scenarios": [
            {
                "id": scenario.id,
                "title": scenario.title,
                "field": scenario.field,
                "holds": told.holds,
                "story": [{"expected": must, "told": did} for must, did in told.lines()],
            }
            for scenario, told in ((outcome.scenario, outcome.told) for outcome in done)
        ],
    }
