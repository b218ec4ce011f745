"""What docs/gateway.md says is so: its examples run, its tests are there, its settings are read."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.adapters.gateway.helpers import environment
from unswept.adapters.gateway import load
from unswept.core.limiter import Limits
from unswept.core.policy import LeasePolicy

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "gateway.md").read_text(encoding="utf-8")


def test_the_examples_run(tmp_path: Path) -> None:
    """Each on a file of its own, as a reader would run it."""
    expected = ["completed 0\nHELLO\n", "completed\n", "completed\n"]
    examples = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    for number, (example, printed) in enumerate(zip(examples, expected, strict=True)):
        folder = tmp_path / str(number)
        folder.mkdir()
        ran = subprocess.run(
            [sys.executable, "-c", example],
            cwd=folder,
            env=environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        assert ran.stdout == printed
        assert list(folder.glob("*.db"))


def test_the_example_by_url_runs_on_postgres(tmp_path: Path, postgres_url: str) -> None:
    """Nothing but the URL differs."""
    example = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]
    ran = subprocess.run(
        [sys.executable, "-c", example],
        cwd=tmp_path,
        env={**environment(), "UNSWEPT_STORE_URL": postgres_url},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "completed\n"


def test_the_settings_on_the_page_are_the_defaults(tmp_path: Path) -> None:
    """And every key of it is one."""
    [text] = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "unswept.toml").write_text(text)
    settings = load(environment={}, folder=tmp_path)
    assert (settings.policy, settings.limits) == (LeasePolicy(), Limits())


def test_every_fault_of_the_reference_has_its_row() -> None:
    """F-01 to F-41, W-01 to W-34."""
    rows = re.findall(r"^\| ([FW]-\d\d) \|", PAGE, re.MULTILINE)
    assert rows == [f"F-{n:02}" for n in range(1, 42)] + [f"W-{n:02}" for n in range(1, 35)]


def test_every_test_that_the_page_names_is_there() -> None:
    """A table of evidence that no check reads decays."""
    here = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    for name in set(re.findall(r"`(test_\w+)`", PAGE)):
        assert f"def {name}(" in here, name
