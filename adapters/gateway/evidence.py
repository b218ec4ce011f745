"""Says whether a process of this host still lives, by more than its number: numbers come again.

A process is named by its pid, its start time, the boot, and the pid namespace in which all of that
was read. Two containers of one host share the boot id and often the pids, but not the namespace.
Only Linux tells all four; elsewhere there is no evidence, and the lease decides alone.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from unswept.core.job import Process

_STATE, _START = 0, 19
"""Places behind the closing bracket of /proc/PID/stat: proc(5) counts them as fields 3 and 22."""


@cache
def boot_id() -> str | None:
    """This boot and this pid namespace, or None where the system tells neither."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None


def process_of(pid: int) -> Process | None:
    """The living process that has this number now, as evidence; None: there is none."""
    boot = boot_id()
    if boot is None:
        return None
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            stat = file.read()
    except OSError:
        return None
    fields = stat.rpartition(b")")[2].split()  # the name before it may hold spaces and brackets
    if fields[_STATE] in (b"Z", b"X"):
        return None
    return Process(pid, int(fields[_START]), boot)


def lives(process: Process) -> bool:
    """Is this very process alive, on this host and boot, in this pid namespace?"""
    return process.boot_id == boot_id() and process_of(process.pid) == process
