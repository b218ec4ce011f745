"""The command line knows all its commands, and imports those that are asked for."""

from __future__ import annotations

import subprocess
import sys

from typer.testing import CliRunner

from unswept.adapters.cli.commands import Commands
from unswept.adapters.cli.main import app
from unswept.adapters.version import version


def test_every_command_is_there_under_its_name() -> None:
    """Each module of the table has the command that the table says."""
    commands = Commands()
    assert len(commands) == len(list(commands)) == 24
    for name in commands:
        assert name in commands
        assert commands[name].name == name
        assert commands[name].help
    assert "nothing" not in commands
    assert commands.get("nothing") is None


def test_a_command_is_made_once() -> None:
    """Asked again, it is the same."""
    commands = Commands()
    assert commands["jobs"] is commands["jobs"]


def test_what_is_not_asked_for_is_not_imported() -> None:
    """A look at a store need not load the simulator, the explorer and the gateway."""
    code = (
        "import sys; from unswept.adapters.cli.commands import Commands; Commands()['jobs'];"
        "import unswept.adapters.cli.main;"
        "print(*(name for name in sys.modules if name.startswith('unswept.')))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = ran.stdout.split()
    assert "unswept.adapters.cli.operate" in loaded
    for name in ("unswept.simulations.run", "unswept.spec.laws", "unswept.adapters.gateway"):
        assert name not in loaded


def test_a_mistyped_command_is_answered_with_the_nearest() -> None:
    """As typer does where it knows all commands itself."""
    ran = CliRunner().invoke(app, ["simulat"])
    assert ran.exit_code == 2
    assert "Did you mean 'simulate'?" in ran.output


def test_the_version_is_told() -> None:
    """In one line."""
    ran = CliRunner().invoke(app, ["--version"])
    assert (ran.exit_code, ran.output) == (0, f"unswept {version()}\n")
