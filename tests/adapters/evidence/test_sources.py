"""A record's hashes change with whatever it judged, and with nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from unswept.adapters.evidence import sources
from unswept.adapters.evidence.sources import JUDGED, hashes

ROOT = Path(__file__).resolve().parents[3]
BEGINS = {
    "prove": ("adapters/proofs/runs.py",),
    "twins": ("adapters/proofs/runs.py",),
    "explore": ("spec/explorer/search.py", "spec/explorer/designs.py", "spec/explorer/model.py"),
    "windows": ("spec/explorer/windows.py",),
    "simulate": (
        "simulations/campaign.py",
        "simulations/mutants.py",
        "simulations/headline.py",
        "adapters/urls.py",
    ),
    "mutants": ("simulations/mutants.py",),
    "chaos": ("adapters/chaos/run.py", "adapters/chaos/worker.py"),
    "fleet": ("adapters/chaos/fleet/run.py", "adapters/chaos/fleet/runner.py"),
    "audit": ("adapters/audit/place.py",),
}
"""The modules with which each command's work begins."""
INCIDENTAL = (
    "adapters/version.py",
    "adapters/extras.py",
    "adapters/__init__.py",
    "adapters/traces/",
)
"""What they import for other ends."""


def imported(file: Path) -> Iterator[Path]:
    """The files of the library that this one imports."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("unswept."):
            module = ROOT / (node.module or "").removeprefix("unswept.").replace(".", "/")
            for each in (module, *(module / name.name for name in node.names)):
                for path in (each.with_suffix(".py"), each / "__init__.py"):
                    if path.is_file():
                        yield path


def reached(names: tuple[str, ...]) -> set[str]:
    """Those files and all that they import, however far."""
    found: set[Path] = set()
    todo = [ROOT / name for name in names]
    while todo:
        file = todo.pop()
        if file not in found:
            found.add(file)
            todo += imported(file)
    return {file.relative_to(ROOT).as_posix() for file in found}


@pytest.mark.parametrize("name", JUDGED)
def test_whatever_a_command_runs_is_hashed(name: str) -> None:
    """Else its record would seem fresh after a change that it never saw."""
    missed = {
        file
        for file in reached(BEGINS[name])
        if not any(file == part or file.startswith(f"{part}/") for part in JUDGED[name])
        and not file.startswith(INCIDENTAL)
    }
    assert not missed


def test_every_part_is_there_and_has_a_hash_of_its_own() -> None:
    """A folder that has moved would have the hash of nothing."""
    found = {part: hashed for name in JUDGED for part, hashed in hashes(name).items()}
    assert all((ROOT / part).exists() for part in found)
    assert len({*found.values()}) == len(found)


@pytest.mark.parametrize(
    ("file", "changes"),
    [("lease.py", True), ("sql/0001.sql", True), ("notes.txt", False), ("__pycache__/a.py", False)],
)
def test_a_hash_is_of_names_and_contents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, changes: bool
) -> None:
    """Of what runs, and not of what lies beside it."""
    root = tmp_path / "core"
    path = root / file
    path.parent.mkdir(parents=True)
    monkeypatch.setattr(sources, "_root", lambda part: root)
    monkeypatch.setattr(sources, "JUDGED", {"explore": ("core",)})
    seen = [hashes("explore")]
    path.write_text("one")
    seen.append(hashes("explore"))
    path.write_text("two")
    seen.append(hashes("explore"))
    path.rename(path.with_name(f"other-{path.name}"))
    seen.append(hashes("explore"))
    assert len({each["core"] for each in seen}) == (4 if changes else 1)
