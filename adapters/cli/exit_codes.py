"""What the command's exit code says; undetermined is never a pass."""

from __future__ import annotations

from enum import IntEnum
from typing import Any


class ExitCode(IntEnum):
    """One kind of ending each."""

    HELD = 0
    """Every law held, and everything was put to the test."""
    REFUTED = 1
    """A law was broken."""
    USAGE = 2
    """The command was called wrongly."""
    UNDETERMINED = 3
    """It could not be found out."""
    COVERAGE_SHORT = 4
    """Nothing was broken, but something was not put to the test."""
    NOT_DETERMINISTIC = 5
    """The same seed gave two different runs."""

    @property
    def verdict(self) -> dict[str, Any]:
        """How every object of `--json` that judges something begins."""
        return {"verdict": self.name.lower(), "exit_code": int(self)}
