"""What docs/runner.md says is so: examples run, tests are there, defaults are the code's."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.adapters.gateway.helpers import environment
from unswept.adapters.runner import Cause, Polling, Retries, Runner, open_queue
from unswept.core.commands import Enqueue
from unswept.spec.laws import LAWS

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "runner.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def run(example: str, folder: Path, **variables: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", example],
        cwd=folder,
        env={**environment(), **variables},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_the_examples_run(tmp_path: Path) -> None:
    """Each on a file of its own, as a reader would run it."""
    assert len(EXAMPLES) == 2
    assert run(EXAMPLES[0], tmp_path) == "HELLO\n"
    assert run(EXAMPLES[1], tmp_path, CI="1") == "True\n"
    assert (tmp_path / "jobs.db").exists()


def test_the_service_runs_on_postgres(tmp_path: Path, postgres_url: str) -> None:
    """Nothing but the URL differs."""
    with open_queue(postgres_url) as queue:
        queue.execute(Enqueue("docs-runner", labels=("gpu",)))
    assert run(EXAMPLES[1], tmp_path, CI="1", UNSWEPT_STORE_URL=postgres_url) == "True\n"


def test_every_weakness_and_change_of_the_reference_has_its_row() -> None:
    """Y-01 to Y-17, G-01 to G-11."""
    rows = re.findall(r"^\| ([YG]-\d\d) \|", PAGE, re.MULTILINE)
    assert rows == [f"Y-{n:02}" for n in range(1, 18)] + [f"G-{n:02}" for n in range(1, 12)]


def test_every_test_and_law_that_the_page_names_is_there() -> None:
    """A table of evidence that no check reads decays."""
    named = re.findall(r"`(test_\w+)`(?:[^`|]*? of `(tests/[\w/]+)`)?", PAGE)
    assert len(named) > 20
    for name, folder in named:
        place = ROOT / (folder or "tests/adapters/runner")
        sources = "".join(path.read_text() for path in place.glob("*.py"))
        assert f"def {name}(" in sources, (name, folder)
    laws = {law.id for law in LAWS}
    assert set(re.findall(r"\bL\d+\b", PAGE)) <= laws


@pytest.mark.parametrize("cause", list(Cause))
def test_every_cause_is_on_the_page(cause: Cause) -> None:
    """With when it comes, and what becomes of the job."""
    assert f"| `{cause.name}` |" in PAGE


def test_the_defaults_on_the_page_are_the_codes() -> None:
    """Numbers, and the names of all options."""
    retries = Retries()
    assert (retries.max_attempts, retries.factor) == (3, 2.0)
    assert (retries.first_pause_ms, retries.max_pause_ms) == (1_000, 300_000)
    assert "max_attempts=3, first_pause_ms=1_000, factor=2.0, max_pause_ms=300_000" in PAGE
    polling = Polling()
    assert (polling.first_ms, polling.max_ms, polling.listening_ms) == (50, 1_000, 5_000)
    options = list(inspect.signature(Runner).parameters)[2:]
    listed = re.findall(r"^\| (`.*?`) \| ", PAGE.partition("## Options")[2], re.MULTILINE)
    named = [name for cell in listed for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(name for name in named if name != "Runner") == sorted(options)
