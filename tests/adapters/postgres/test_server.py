"""The server of these tests leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.adapters.postgres.helpers import eventually
from tests.adapters.sqlite.helpers import environment

MAKER = """
import sys
from tests.postgres_server import PostgresServer
server = PostgresServer()
print(server.folder, server._process.pid, flush=True)
sys.stdin.read()
"""


def test_a_server_ends_with_its_maker() -> None:
    """Also where that is killed: no process and no folder is left."""
    maker = subprocess.Popen(
        [sys.executable, "-c", MAKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert maker.stdout is not None
    folder, pid = maker.stdout.readline().split()
    assert Path(folder, "data", "postmaster.pid").read_text().startswith(pid)
    maker.kill()
    maker.communicate()
    eventually(lambda: not Path(folder).exists())
