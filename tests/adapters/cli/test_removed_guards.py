"""A copy of the package with one guard removed by hand: caught, shrunk, replayed and drawn, by the
commands that are printed and no others."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from attrs import frozen

import unswept.core
from unswept.adapters.cli.exit_codes import ExitCode

SOURCE = Path(unswept.core.__file__).parents[1]
AT_MOST = 15
"""Every script is shorter."""


@frozen
class Removed:
    """A guard, where it stands, and what stands there without it."""

    file: str
    guard: str
    without: str
    options: str
    """Where it shows soon."""


GUARDS = {
    "F1: a claim takes what somebody owns": Removed(
        "adapters/sql/statements.py",
        "NOBODYS: Final = \"status = 'queued' AND owner IS NULL\"",
        "NOBODYS: Final = \"status = 'queued'\"",
        "--store sqlite::memory: --hours 0.5 --seed 2",
    ),
    "L7: a start goes through under a cancel": Removed(
        "adapters/sql/statements.py",
        "f\"{_FENCE} AND status = 'queued' AND cancel_requested_at IS NULL\"",
        "f\"{_FENCE} AND status = 'queued'\"",
        "--store sqlite::memory: --faults cancel-at-step --hours 0.5 --seed 3",
    ),
    "L4: a completion comes twice, and the event's table refuses it": Removed(
        "adapters/sql/statements.py",
        'f"{_FENCE} AND {ACTIVE}",\n    _ENDED,',
        "_FENCE,\n    _ENDED,",
        "--store sqlite::memory: --hours 0.5 --seed 1",
    ),
    "L8: a renewal passes over what is queued, against the core's word": Removed(
        "adapters/sql/statements.py",
        '("L1", "L3", "L8"),\n    f"{_FENCE} AND {ACTIVE}",',
        '("L1", "L3", "L8"),\n    f"{_FENCE} AND status = \'running\'",',
        "--store sqlite::memory: --hours 0.5 --seed 2",
    ),
    "L3: a heartbeat renews whoever sends it": Removed(
        "core/lease.py",
        "    if refusal := fence(lease, owner, epoch):\n"
        "        return refusal\n"
        "    if lease.status not in MOVES[Kind.RENEW].leaves:\n",
        "    if lease.status not in MOVES[Kind.RENEW].leaves:\n",
        "--store memory: --hours 0.5 --seed 2",
    ),
    "L15: every lease looks expired": Removed(
        "core/lease.py",
        " and lease.deadline is not None and lease.deadline < now\n",
        " and lease.deadline is not None\n",
        "--store memory: --hours 0.5 --seed 2",
    ),
}


class Copy:
    """The package in a folder of its own, and its command line."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for part in ("core", "spec", "simulations", "adapters"):
            shutil.copytree(SOURCE / part, folder / "unswept" / part)
        command = folder / "bin" / "unswept"
        command.parent.mkdir()
        entry = "from unswept.adapters.cli.main import main; main()"
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{entry}" "$@"\n')
        command.chmod(0o700)

    def remove(self, removed: Removed) -> None:
        file = self.folder / "unswept" / removed.file
        text = file.read_text(encoding="utf-8")
        assert text.count(removed.guard) == 1, "the guard has other words now"
        file.write_text(text.replace(removed.guard, removed.without), encoding="utf-8")

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """What a shell makes of the command."""
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            command,
            shell=True,
            cwd=self.folder,
            env={**os.environ, "PATH": path, "PYTHONPATH": str(self.folder), "GITHUB_ACTIONS": ""},
            text=True,
            capture_output=True,
            timeout=300,
        )


@pytest.mark.skipif(sys.platform == "win32", reason="the commands are told to a shell")
@pytest.mark.parametrize("removed", GUARDS.values(), ids=GUARDS)
def test_a_removed_guard_is_caught_shrunk_replayed_and_drawn(
    removed: Removed, tmp_path: Path
) -> None:
    """One command finds it; the two that it prints show it, in fewer than fifteen steps."""
    copy = Copy(tmp_path)
    copy.remove(removed)
    found = copy.run(f"unswept simulate {removed.options} --workers 1")
    assert found.returncode == ExitCode.REFUTED, found.stdout + found.stderr
    told = re.search(
        r"Shrunk to (\d+) steps?, in (?:.*\n)+?Replay it:\n  (.*)\nDraw it:\n  (.*)", found.stdout
    )
    assert told is not None, found.stdout
    assert int(told[1]) < AT_MOST
    broken = re.search(r"^(\w+) was broken by seed", found.stdout, re.MULTILINE)
    assert broken is not None

    replayed = copy.run(told[2])
    assert replayed.returncode == ExitCode.REFUTED, replayed.stdout + replayed.stderr
    assert f"{broken[1]} was broken by step {told[1]}: " in replayed.stdout

    drawn = copy.run(told[3])
    assert drawn.returncode == ExitCode.HELD, drawn.stdout + drawn.stderr
    [page] = tmp_path.glob("report-*.html")
    text = page.read_text(encoding="utf-8")
    assert f"<h1>{broken[1]} was broken</h1>" in text
    assert re.search(rf"<dt>shrunk to</dt><dd>{told[1]} steps?</dd>", text)
    assert told[2] in text
