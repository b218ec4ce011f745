"""What the pages say is so: examples run, tables are the code's, links lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from unswept.adapters.cli.exit_codes import ExitCode
from unswept.simulations.designs import DESIGNS
from unswept.simulations.faults import FAULTS
from unswept.simulations.profiles import PROFILES
from unswept.spec.laws import LAWS

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def examples() -> list[str]:
    """The README's: a gateway, a fleet, and the store by itself."""
    found = re.findall(r"```python\n(.*?)```", read(ROOT / "README.md"), re.DOTALL)
    assert len(found) == 3
    return found


def run(example: str, folder: Path, **variables: str) -> list[str]:
    """What an example prints in a folder of its own, which is what its comments say."""
    own = {name: text for name, text in os.environ.items() if not name.startswith("UNSWEPT_")}
    own["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    ran = subprocess.run(
        [sys.executable, "-c", example],
        cwd=folder,
        env={**own, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.split() == re.findall(r"print\(.*\)  # (.*)", example)
    return ran.stdout.split()


def test_the_gateway_of_the_readme_runs_on_sqlite(tmp_path: Path) -> None:
    """With no settings at all it makes its own file, and fits in twenty lines."""
    gateway = examples()[0]
    assert run(gateway, tmp_path) == ["completed", "HELLO"]
    assert (tmp_path / "unswept.db").exists()
    assert len(gateway.splitlines()) <= 20


def test_the_gateway_of_the_readme_runs_on_postgres(tmp_path: Path, postgres_url: str) -> None:
    """The same by the URL of the store, and no file is made."""
    ended = run(examples()[0], tmp_path, UNSWEPT_STORE_URL=postgres_url)
    assert ended == ["completed", "HELLO"]
    assert not list(tmp_path.iterdir())


def test_the_fleet_of_the_readme_runs_on_sqlite(tmp_path: Path) -> None:
    """A producer and two runners share one file."""
    assert run(examples()[1], tmp_path) == ["completed", "BOB"]
    assert (tmp_path / "fleet.db").exists()


def test_the_fleet_of_the_readme_runs_on_postgres(tmp_path: Path, postgres_url: str) -> None:
    """The same by the URL of the store, and no file is made."""
    ended = run(examples()[1], tmp_path, UNSWEPT_STORE_URL=postgres_url)
    assert ended == ["completed", "BOB"]
    assert not list(tmp_path.iterdir())


def test_the_store_of_the_readme_runs(tmp_path: Path) -> None:
    """On a file of its own."""
    assert run(examples()[2], tmp_path) == ["renewed", "completed"]
    assert (tmp_path / "jobs.db").exists()


def test_the_laws_on_the_page_are_the_laws() -> None:
    """The reliability model lists every law with the sentence that the code has."""
    page = read(ROOT / "docs/reliability.md")
    for law in LAWS:
        assert f"| {law.id} | {law.sentence} |" in page


def test_every_fault_design_and_exit_code_is_on_the_page() -> None:
    """The simulator's page knows every fault with its profiles and every exit code, the page of
    designs every design with its laws; the README names none that is not there."""
    page = read(ROOT / "docs/simulator.md")
    for fault in FAULTS.values():
        places = (PROFILES[name] for name in ("calm", "laptop", "datacentre", "hostile"))
        cells = " | ".join("x" if fault.name in place else "" for place in places)
        assert f"| `{fault.name}` | {fault.story} | {cells} |" in page
    for code in ExitCode:
        assert re.search(rf"^\| {int(code)} \|", page, re.MULTILINE)
    designs = read(ROOT / "docs/designs.md")
    for design in DESIGNS.values():
        laws = ", ".join(sorted(design.caught_by)) or "held"
        assert f"| `{design.name}` | {design.sentence} | {laws} |" in designs
    headline = re.findall(r"^\| `([a-z-]+)` \|", read(ROOT / "README.md"), re.MULTILINE)
    assert "unswept" in headline
    assert set(headline) <= DESIGNS.keys()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    """A link to a file of the project names one that is there."""
    for target in re.findall(r"\]\((?!http)([^)#]+)", read(page)):
        assert (page.parent / target).exists(), target
