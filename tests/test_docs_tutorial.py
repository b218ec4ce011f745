"""The tutorial and the how-to pages: every block that can run is run, and prints what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
ELSEWHERE = ("pip install", "postgresql://", "psql ", "kubectl ")
"""What needs a network, a server or a cluster."""


def shell(folder: Path) -> dict[str, str]:
    """An environment in which `python` and `unswept` are those of this test."""
    tools = folder / "bin"
    tools.mkdir()
    start = "from unswept.adapters.cli.main import main; main()"
    for name, words in (("python", '"$@"'), ("unswept", f"-c '{start}' \"$@\"")):
        tool = tools / name
        tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}\n', encoding="utf-8")
        tool.chmod(0o700)
    own = {name: text for name, text in os.environ.items() if not name.startswith("UNSWEPT_")}
    path = os.pathsep.join((str(tools), own["PATH"]))
    found = os.pathsep.join(filter(None, sys.path))
    return {**own, "PATH": path, "PYTHONPATH": found, "COLUMNS": "200"}


def said(line: str, expected: str, folder: Path, env: dict[str, str]) -> None:
    """A command prints what stands below it; `...` stands for any lines, or for any part of one."""
    ran = subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    parts = (
        re.escape(part.strip("\n")).replace(r"\.\.\.", ".*")
        for part in re.split(r"^\.\.\.$", expected, flags=re.MULTILINE)
    )
    pattern = r"\A\s*" + r"(?:.*\n)*?".join(rf"\s*{part}\s*" for part in parts) + r"\Z"
    assert re.search(pattern, ran.stdout), f"{line}\n{ran.stdout}{ran.stderr}"


def tell(page: Path, folder: Path) -> int:
    """Make the files of a page and run its commands, in its order; how many were run."""
    work = folder / "work"
    work.mkdir()
    env = shell(folder)
    ran = 0
    for kind, title, body in FENCE.findall(page.read_text(encoding="utf-8")):
        if title:
            (work / title).write_text(body, encoding="utf-8")
        elif kind == "console":
            for line, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", body, re.MULTILINE):
                if not any(word in line for word in ELSEWHERE):
                    said(line, expected, work, env)
                    ran += 1
    return ran


def test_the_tutorial_can_be_followed(tmp_path: Path) -> None:
    """From the first job to the simulation of all of it, on SQLite."""
    assert tell(DOCS / "tutorial.md", tmp_path) >= 12


HOWTO = sorted((DOCS / "howto").glob("*.md"))


@pytest.mark.parametrize("page", HOWTO, ids=lambda page: page.stem)
def test_a_page_does_as_it_says(page: Path, tmp_path: Path) -> None:
    """Each by itself, in a folder of its own."""
    runnable = [title for _, title, _ in FENCE.findall(page.read_text(encoding="utf-8")) if title]
    ran = tell(page, tmp_path)
    assert ran or not any(title.endswith(".py") for title in runnable)


@pytest.mark.parametrize("page", HOWTO, ids=lambda page: page.stem)
def test_what_a_page_imports_is_there(page: Path) -> None:
    """Also in blocks that need a server, and so are not run."""
    for kind, _, body in FENCE.findall(page.read_text(encoding="utf-8").replace("\n    ", "\n")):
        if kind == "python":
            lines = re.findall(r"^from unswept\S* import .*$", body, re.MULTILINE)
            assert lines
            exec("\n".join(lines), {})
