"""Carries out a kept script, so that it can be drawn like a run."""

from __future__ import annotations

import json
from pathlib import Path

from unswept.adapters.report.reading import Shrunk, Trace, trace_of
from unswept.adapters.urls import SimulatedStore, reopened
from unswept.adapters.version import version
from unswept.core.errors import MisuseError
from unswept.simulations.script import carried_out
from unswept.simulations.script_file import script_of
from unswept.simulations.script_trace import ScriptTrace
from unswept.simulations.trace import Trace as Written


def played(file: Path) -> Trace:
    """The trace of a script, told to a fresh store like the one that it was found on."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MisuseError(f"{file} cannot be read as a script: {error}") from None
    script = script_of(text.splitlines(), str(file))
    lines: list[str] = []
    written = Written(lines.append, version(), script.store)
    opener = SimulatedStore(reopened(script.store))
    carried_out(script.steps, script.settings.design, opener, scribe=ScriptTrace(script, written))
    return trace_of(file, map(json.loads, lines), Shrunk(len(script.steps), script.law))
