"""What the tests of real runs share."""

from __future__ import annotations

import os
from pathlib import Path

from unswept.adapters.audit.place import Audit, audit


def holders(evidence: Path) -> int:
    """How many processes name this run: its gateways and runners by their files, which they hold
    open, and its long jobs by the pipe on which they wait."""
    count = 0
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            opened = [os.readlink(each) for each in (process / "fd").iterdir()]
        except OSError:
            continue
        count += any(name.startswith(str(evidence)) for name in opened)
    return count


class Auditor:
    """Audits the store of a run once all its processes have ended, before it is tidied up."""

    def __init__(self, url: str, schema: str | None = None) -> None:
        self._place = (url, schema)
        self._found: Audit | None = None

    def __call__(self, doing: str, part: float | None) -> None:
        """What a run says of its progress: its verdict comes last."""
        if doing == "judging":
            self._found = audit(*self._place, limit=10)

    def check(self) -> None:
        """The audit had much to look at, and found nothing."""
        assert self._found is not None
        assert self._found.events > 100
        broken = [verdict for verdict in self._found.verdicts if verdict.count]
        assert not broken, [offence.said for verdict in broken for offence in verdict.offences]
