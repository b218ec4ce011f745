"""`pytest --unswept-seeds N`: each seed of a simulated campaign is a test of its own.

It is off unless it is asked for, and nothing of the simulator is imported before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from unswept.adapters.cli.simulate_options import Campaign
    from unswept.simulations.campaign import Task


def pytest_addoption(parser: pytest.Parser) -> None:
    """The words of `unswept simulate`, as far as a test run needs them."""
    group = parser.getgroup("unswept", "simulated campaigns of unswept")
    group.addoption(
        "--unswept-seeds", type=int, metavar="N", help="also run seeds 1 to N, one test each"
    )
    group.addoption(
        "--unswept-store", default="sqlite:", metavar="URL", help="store under test (sqlite:)"
    )
    group.addoption(
        "--unswept-faults", default="all", metavar="LIST", help="profiles and names (all)"
    )
    group.addoption(
        "--unswept-hours", type=float, default=1.0, metavar="H", help="simulated hours (1)"
    )


class SeedFailedError(Exception):
    """A seed broke a law, or was not the same twice; the message says all there is to say."""


class Seed(pytest.Item):
    """One seed as a test."""

    task: Task
    campaign: Campaign

    def runtest(self) -> None:
        """Run it: in lockstep with the pure store, every law judged at every step."""
        from unswept.adapters.cli.simulate_report import explained
        from unswept.simulations.campaign import check_seed

        checked = check_seed(self.task)
        seed = self.task.settings.seed
        replay = self.campaign.replay_command(seed)
        if checked.outcome.violation is not None:
            raise SeedFailedError(explained(checked.outcome.violation, seed, replay))
        if not checked.same:
            raise SeedFailedError(f"seed {seed} gave two different runs:\n{replay}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> object:  # type: ignore[override]
        """What broke needs no traceback through the simulator; what failed otherwise does."""
        if isinstance(excinfo.value, SeedFailedError):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[str, None, str]:
        """Its name: it stands in no file."""
        return "unswept", None, self.name


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add the seeds to what was collected, before `-k` chooses from it."""
    if config.getoption("unswept_seeds") is None:
        return
    from unswept.core.errors import MisuseError

    try:
        items += _seeds(session, config)
    except MisuseError as error:
        raise pytest.UsageError(f"--unswept: {error}") from None


def _seeds(session: pytest.Session, config: pytest.Config) -> list[Seed]:
    from unswept.adapters.cli.simulate_options import Campaign, checked
    from unswept.adapters.urls import SimulatedStore, without_password
    from unswept.simulations.campaign import tasks
    from unswept.simulations.profiles import faults_of
    from unswept.simulations.run import Settings

    store = config.getoption("unswept_store")
    faults = faults_of(config.getoption("unswept_faults"))
    settings = Settings(1, hours=config.getoption("unswept_hours"), faults=faults)
    seeds = config.getoption("unswept_seeds")
    campaign = checked(Campaign(settings, without_password(store), seeds))
    found = []
    for task in tasks(settings, campaign.all_seeds(), SimulatedStore(store)):
        name = f"unswept[seed-{task.settings.seed}]"
        item: Seed = Seed.from_parent(session, name=name, nodeid=name)
        item.task, item.campaign = task, campaign
        found.append(item)
    return found
