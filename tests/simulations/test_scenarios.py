"""How job leases fail in the field: every store tells each story as it must end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest

from unswept.adapters.postgres.simulated import simulated
from unswept.adapters.sqlite import SqliteStore
from unswept.core.commands import Store
from unswept.core.memory import MemoryStore
from unswept.simulations.scenarios.catalogue import CLASSES, SCENARIOS
from unswept.simulations.scenarios.language import lines_of
from unswept.simulations.scenarios.storyteller import StandingClock, Storyteller


@contextmanager
def on_memory(clock: StandingClock, url: str) -> Iterator[Store]:
    yield MemoryStore(clock)


@contextmanager
def on_sqlite(clock: StandingClock, url: str) -> Iterator[Store]:
    with SqliteStore(Path(url), clock=clock, durability="normal") as store:
        yield store


@contextmanager
def on_postgres(clock: StandingClock, url: str) -> Iterator[Store]:
    with simulated(url, clock, "scenario") as store:
        yield store


Opener = Callable[[StandingClock, str], AbstractContextManager[Store]]
STORES: Final = MappingProxyType[str, Opener](
    {"memory": on_memory, "sqlite": on_sqlite, "postgres": on_postgres}
)
"""Every store that has to tell the stories: a further one is added here."""


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the store is."""
    on_server = "postgres" in request.node.name
    return request.getfixturevalue("postgres_url") if on_server else str(tmp_path / "jobs.db")


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("name", STORES)
def test_a_scenario_ends_as_it_must(name: str, scenario: str, url: str) -> None:
    """Each answer, in its order, equals the one that is written."""
    clock = StandingClock()
    with STORES[name](clock, url) as store:
        told = Storyteller(store, clock).play(SCENARIOS[scenario].story)
    assert told.told == told.expected, f"the store's side:\n{told.told}"


def test_no_two_scenarios_have_one_id() -> None:
    """Nor is one of them hidden behind another."""
    assert len(SCENARIOS) == sum(len(faults.SCENARIOS) for faults in CLASSES)


def test_every_line_has_its_answer() -> None:
    """A line without one would be compared with nothing that a reader can see."""
    for scenario in SCENARIOS.values():
        assert all(" -> " in line for line in lines_of(scenario.story)), scenario.id
