"""Which tests name which law: in their own text, or in a table of their module that they use.

The package brings no tests, so it brings this list of them:

    python -m tests.laws_of_tests

writes `adapters/evidence/laws_of_tests.json`, and a test compares the two.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

from unswept.spec.laws import LAWS

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "adapters/evidence/laws_of_tests.json"
NAMED = re.compile(rf"\b({'|'.join(law.id for law in LAWS)})\b")
SAMPLES = ("tests/adapters/report/", "tests/adapters/evidence/", "tests/adapters/cli/")
"""Here a law's id is any word that stands on a page."""
RACES = frozenset(
    {
        "tests/adapters/postgres/test_interleaved.py",
        "tests/adapters/postgres/test_locks.py",
        "tests/adapters/postgres/test_meetings.py",
        "tests/adapters/postgres/test_races.py",
        "tests/adapters/sqlite/test_concurrency.py",
        "tests/adapters/sqlite/test_processes.py",
        "tests/adapters/gateway/test_real_processes.py",
        "tests/adapters/runner/test_real_processes.py",
        "tests/adapters/chaos/test_fleet_runs.py",
        "tests/adapters/chaos/test_real_runs.py",
    }
)
"""Threads, sessions or processes that meet in a real store."""


def laws_by_test(file: Path) -> Iterator[tuple[str, set[str]]]:
    """Each test of a file and the laws that it names."""
    text = file.read_text(encoding="utf-8")
    tree = ast.parse(text)
    lines = text.splitlines()
    tables = {
        target.id: laws_in(lines, node)
        for node in tree.body
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and (
            node.name.startswith("test_")
        ):
            used = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
            named = laws_in(lines, node).union(*(tables.get(name, set()) for name in used))
            yield node.name, named


def laws_in(lines: list[str], node: ast.FunctionDef | ast.AsyncFunctionDef | ast.stmt) -> set[str]:
    """The laws named between its first line, decorators too, and its last."""
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
    return set(NAMED.findall("\n".join(lines[first - 1 : node.end_lineno])))


def found() -> dict[str, dict[str, list[str]]]:
    """For each law its tests, and apart from them those that are races on real stores."""
    laws: dict[str, dict[str, list[str]]] = {law.id: {"tests": [], "races": []} for law in LAWS}
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        path = file.relative_to(ROOT).as_posix()
        if path.startswith(SAMPLES):
            continue
        kind = "races" if path in RACES else "tests"
        for name, named in laws_by_test(file):
            for law in named:
                laws[law][kind].append(f"{path}::{name}")
    return laws


def as_text() -> str:
    """What the file must say."""
    return json.dumps(found(), indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(as_text(), encoding="utf-8", newline="\n")
