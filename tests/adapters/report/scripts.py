"""Two small scripts by hand: one breaks a law in one moment, one sweeps a lease that is over."""

from __future__ import annotations

from pathlib import Path

from unswept.core import commands as c
from unswept.core.job import Terms
from unswept.core.lease import RequeueRule
from unswept.core.units import Ms, StoreMs
from unswept.simulations.campaign import EPOCH
from unswept.simulations.run import Settings
from unswept.simulations.script import Script, Told
from unswept.simulations.script_file import lines_of

TERMS = Terms(Ms(90_000), Ms(300_000), Ms(90_000), Ms(45_000))
CLAIM = c.Claim("r1", 1, TERMS, limit=1)
TWO_STEP_CLAIM = (
    (0, "r1", c.Register("r1")),
    (0, "producer", c.Enqueue("q1", requeue=RequeueRule.ALLOWED)),
    (0, "r1", CLAIM),
)
"""What the design `two-step-claim` makes a malformed lease of, told in one moment."""
SWEPT = (
    (0, "i1", c.Admit("a", "i1", TERMS)),
    (0, "i1", c.Start("a", "i1", 1, TERMS)),
    (60_000, "i1", c.Heartbeat("i1", TERMS, (c.Hold("a", 1),))),
    (30_000, "i2", c.Sweep("i2", (c.Target("a", 1, 3, StoreMs(0)),))),
    (150_001, "i2", c.Sweep("i2", (c.Target("a", 1, 3, StoreMs(0)),))),
)
"""A lease that is over, after the store clock has stepped back by thirty seconds."""


def script(
    folder: Path,
    steps: tuple[tuple[int, str, c.Command[object]], ...],
    design: str = "unswept",
    store: str = "memory:",
) -> Path:
    told = tuple(Told(StoreMs(EPOCH + at), sender, command) for at, sender, command in steps)
    whole = Script("WF", "", "", store, Settings(7, design=design), "1.0", told)
    file = folder / "a.script.jsonl"
    file.write_text("".join(f"{line}\n" for line in lines_of(whole)), encoding="utf-8")
    return file
