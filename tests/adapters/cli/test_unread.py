"""What nobody reads any more, as where `head` has seen enough, refutes nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.sqlite import SqliteStore

COMMAND = "from unswept.adapters.cli.main import main; main()"


@pytest.mark.parametrize("words", [("doctor",), ("doctor", "--json")], ids=" ".join)
def test_a_pipe_that_is_closed_refutes_nothing(words: tuple[str, ...], tmp_path: Path) -> None:
    """Also where all of it waits to be written at the end: exit 3, without a word."""
    url = f"sqlite:{tmp_path / 'jobs.db'}"
    SqliteStore(url).close()
    mine = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUNBUFFERED": ""}
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, *words, "--store", url],
        cwd=tmp_path,
        env={**os.environ, **mine},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (ExitCode.UNDETERMINED, "")
