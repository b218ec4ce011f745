"""The pages on CI and on other people's stores: their commands parse, their examples run."""

from __future__ import annotations

import re
import shlex
import unittest
from pathlib import Path
from typing import Any

import pytest
import typer.main

from unswept.adapters.cli.main import app
from unswept.simulations.conformance import conformance_case

DOCS = Path(__file__).resolve().parents[1] / "docs"


def commands(page: str) -> list[str]:
    """Every line of a page's code that calls `unswept`, up to where its output goes."""
    text = (DOCS / page).read_text(encoding="utf-8")
    lines = [line for block in re.findall(r"```.*?\n(.*?)```", text, re.DOTALL)
             for line in block.splitlines()]  # fmt: skip
    found = [m[1] for line in lines if (m := re.search(r"(?:run:|-) (unswept [^>|]*)", line))]
    return [command.replace("${{ matrix.shard }}", "3").strip() for command in found]


def test_the_page_has_commands() -> None:
    """The other test would be green without any."""
    assert len(commands("ci.md")) >= 4


@pytest.mark.parametrize("command", commands("ci.md"))
def test_commands_of_the_page_parse(command: str) -> None:
    """The command line knows each command and takes each option."""
    _, name, *words = shlex.split(command)
    group: Any = typer.main.get_command(app)
    parsed = group.commands[name].make_context(name, list(words))
    assert parsed.params


def example() -> dict[str, Any]:
    page = (DOCS / "conformance.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(block, "docs/conformance.md", "exec"), names)
    return names


def test_the_store_of_the_page_conforms_and_the_broken_one_does_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As the page says, and where it says."""
    names = example()
    assert capsys.readouterr().out == "Complete\n"

    def judged(case: type[unittest.TestCase], test: str) -> unittest.TestResult:
        result = unittest.TestResult()
        case(test).run(result)
        return result

    tour = "test_every_command_in_every_situation"
    assert judged(names["TestLockedStore"], tour).wasSuccessful()
    [(_, text)] = judged(conformance_case(names["SternStore"]), tour).failures
    said = (DOCS / "conformance.md").read_text(encoding="utf-8")
    shown = said.split("that lead there:\n\n")[1].split("\n\nKeep")[0]
    for line in shown.splitlines():
        assert line.strip().split("...")[0].rstrip(", ") in text
