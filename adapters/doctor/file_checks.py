"""What is asked of a SQLite file and of the disk it lies on."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from unswept.adapters.doctor.check import Answer, Check, Verdict, judged, ok
from unswept.adapters.doctor.sqlite_look import SqliteLook
from unswept.adapters.doctor.store_checks import latency, schema_version, write_lock
from unswept.adapters.sqlite.opening import OLDEST_SQLITE
from unswept.core.policy import LeasePolicy

MOUNTS: Final = Path("/proc/self/mountinfo")

NETWORK: Final = frozenset(
    {
        "9p", "afs", "ceph", "cifs", "gfs2", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "smb3",
        "smbfs", "vboxsf", "virtiofs",
    }
)  # fmt: skip
"""File systems that several hosts, or a host and its guests, can share. SQLite's locks and the
memory beside its log mean nothing there."""


def access(path: str, policy: LeasePolicy) -> Answer:
    """May this user write to the file, and make its log beside it?"""
    places = (path, os.path.dirname(path))
    closed = [place for place in places if not os.access(place, os.W_OK)]
    return judged(
        Verdict.BAD if closed else None,
        f"not writable: {', '.join(closed)}" if closed else "writable",
        "the file and its directory writable",
        "Change the mode or the mount, or ask as the user that the instances run as.",
    )


def file_system(path: str, policy: LeasePolicy) -> Answer:
    """Is it a disk of this host?"""
    kind = kind_of_file_system(path)
    expected = "a disk of this host"
    if kind is None or kind.startswith("fuse"):
        words = "cannot be told here" if kind is None else f"{kind}, which may be anywhere"
        return Answer(Verdict.WARN, words, expected, "See that it is no network file system.")
    return judged(
        Verdict.BAD if kind in NETWORK else None,
        kind,
        expected,
        "Move the file to a local disk, or use Postgres: on a shared file system SQLite's locks"
        " keep nobody out, and a live job can be swept.",
    )


def kind_of_file_system(path: str) -> str | None:
    """By the system's table of mounts; None where it has none."""
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    place = os.path.realpath(path)
    found: tuple[int, str] | None = None
    for line in lines:
        before, _, after = line.partition(" - ")
        point = _unescaped(before.split(" ")[4])
        # Of two on the same place the later one lies on top.
        if _lies_in(place, point) and (found is None or len(point) >= found[0]):
            found = len(point), after.split(" ")[0]
    return None if found is None else found[1]


def _lies_in(place: str, point: str) -> bool:
    return place == point or place.startswith(point.rstrip("/") + "/")


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def library(look: SqliteLook, policy: LeasePolicy) -> Answer:
    """Does it know STRICT tables? A look is not even opened where it does not."""
    oldest = ".".join(map(str, OLDEST_SQLITE))
    return ok(f"SQLite {sqlite3.sqlite_version}", f"{oldest} or newer")


def journal(look: SqliteLook, policy: LeasePolicy) -> Answer:
    """Do readers and the writer pass each other?"""
    ((mode,),) = look.rows("PRAGMA journal_mode")
    return judged(
        None if mode == "wal" else Verdict.BAD,
        mode,
        "wal",
        "Somebody has changed it, and a reader now keeps heartbeats waiting. An instance that opens"
        " the file sets it back; see that nobody else changes it.",
    )


def settings(look: SqliteLook, policy: LeasePolicy) -> Answer:
    """What survives a power cut, and how long does a writer wait? The file keeps neither."""
    return ok(
        "not kept in the file: synchronous is full unless an instance is opened with"
        f" durability=normal, a write waits {policy.operation_timeout_ms} ms at most"
    )


OF_THE_FILE: Final[Sequence[Check[str]]] = (
    Check("access", access),
    Check("file system", file_system),
)
"""Before it is opened."""
OF_THE_DATABASE: Final[Sequence[Check[SqliteLook]]] = (
    Check("library", library),
    Check("schema", schema_version),
    Check("journal mode", journal),
    Check("settings of connections", settings),
    Check("write lock", write_lock),
    Check("latency", latency),
)
