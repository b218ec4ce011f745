"""What every test shares: how hard Hypothesis tries, whether it tries the same again, a Postgres.

`ci` is the default and draws the same examples on every run, so a red build is red again.
`pytest --hypothesis-profile=thorough` draws new ones, many more, and keeps what failed.

Tests on Postgres start a server of their own, one per process of the run and only if one of them
asks. With UNSWEPT_TEST_POSTGRES=postgresql://... they use that one, in schemas that they make and
drop; the tests that stop and crash a server start one all the same.
"""

import os
from collections.abc import Iterator
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings

from tests.postgres_server import running
from unswept.adapters.evidence.records import VARIABLE

# No deadline: stores on disk and virtual clocks make the time of one example meaningless.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough",
    derandomize=False,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=2_000,
    stateful_step_count=100,
)
settings.load_profile("ci")


@pytest.fixture(scope="session", autouse=True)
def records_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests run is kept for no evidence page of the project."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(tmp_path_factory.mktemp("evidence")))
        yield


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: much of what is tested here is waiting."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    given = os.environ.get("UNSWEPT_TEST_POSTGRES")
    if given:
        yield given
        return
    with running() as server:
        yield server.url


@pytest.fixture
def postgres_schema(postgres_url: str) -> Iterator[str]:
    """The name of a schema that is not there yet; dropped afterwards."""
    name = f"unswept_test_{uuid4().hex[:12]}"
    yield name
    drop_schema(postgres_url, name)


def drop_schema(url: str, name: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        # A test that fails may leave a transaction behind, which is no reason to wait for ever.
        connection.execute("SET lock_timeout = '20s'")
        connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print each table of which tests have recorded rows, as a property named by the table's head;
    also where all is well, since such a table is a result and no by-product."""
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    told = {(head, str(row)) for report in reports for head, row in report.user_properties}
    for head in sorted({head for head, _ in told if head.startswith("|")}):
        terminalreporter.section("what tests have found")
        terminalreporter.write_line(
            "\n".join([head, *sorted(row for of, row in told if of == head)])
        )
