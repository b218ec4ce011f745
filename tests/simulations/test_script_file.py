"""Scripts as files: what is written is read again, and what cannot be read is named by its line."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from unswept.core import commands as c
from unswept.core.errors import MisuseError
from unswept.core.heart import Phase
from unswept.core.job import Terms
from unswept.core.lease import RequeueRule
from unswept.core.units import MonoMs, Ms, StoreMs
from unswept.core.values import Chunk, Stream
from unswept.simulations.run import Settings
from unswept.simulations.script import Script, Told
from unswept.simulations.script_file import lines_of, script_of
from unswept.simulations.witness import Truth
from unswept.spec.observations import Delivery, Neglect, Send, Sight, SweepTruth, Work

TERMS = Terms(Ms(90_000), Ms(300_000), Ms(90_000), Ms(45_000))
SWEEP = c.Sweep("i2", (c.Target("a", 1, 6, StoreMs(5)),))
SIGHT = Sight("a", Ms(1), Ms(2), Ms(3), Ms(4))
WORK = Work("i1", "a", RequeueRule.ALLOWED, MonoMs(9), MonoMs(1), Ms(5), Ms(1), 1, 2)
SWEPT = SweepTruth(
    "a", "i2", "i1", True, Ms(9), Ms(3), Ms(20), True, Ms(0), flaps=1, flaps_allowed=2
)
SENT = Send("i2", SWEEP, Phase.FAINT, False, (SIGHT,))
STEPS = (
    Told(StoreMs(1), "i1", c.Admit("a", "i1", TERMS)),
    Told(StoreMs(2), "i1", c.Output("a", "i1", 1, Chunk(0, Stream.STDOUT, b"\x00\xff"), Ms(9))),
    Told(StoreMs(3), "i2", SWEEP, blanket=True),
    Told(StoreMs(3), "i2", SWEEP, Truth("L12", SWEPT, {"owner": "i1", "ttl_ms": 9})),
    Told(
        StoreMs(4), "i2", SWEEP, Truth("L10", Send("i2", SWEEP, Phase.FAINT, False, (SIGHT,)), {})
    ),
    Told(StoreMs(5), "i1", None, Truth("F3", WORK, {"behind": 1})),
    Told(StoreMs(6), "i2", None, Truth("L13", Neglect("a", Ms(9), Ms(8), "i2", Ms(10)), {})),
    Told(StoreMs(7), "c1", None, Truth("F4", Delivery("mail", 3, 1, handled=True), {})),
)
SCRIPT = Script("L12", "a was swept", "", "memory:", Settings(7, faults=("cut",)), "1.0", STEPS)


def lines() -> list[str]:
    return list(lines_of(SCRIPT))


def edited(number: int, edit: Callable[[dict[str, Any]], object]) -> list[str]:
    """The lines with one of them edited, counted from 1."""
    found = lines()
    fields = json.loads(found[number - 1])
    edit(fields)
    found[number - 1] = json.dumps(fields)
    return found


def test_what_is_written_is_read_again() -> None:
    """Every kind of step and truth comes back as it was; empty lines do not matter."""
    assert script_of(lines(), "x") == SCRIPT
    assert script_of([*lines(), "", " "], "x") == SCRIPT


def test_a_script_that_was_cut_is_refused() -> None:
    """Without its last step nothing would be broken, and that would look like a mended store."""
    with pytest.raises(MisuseError, match=rf"x holds {len(lines()) - 2} of {len(lines()) - 1} ste"):
        script_of(lines()[:-1], "x")
    assert script_of(edited(1, lambda head: head.pop("steps")), "x") == SCRIPT


def test_the_first_line_says_what_was_found() -> None:
    """Law, offence, store, design and settings stand in the first line, for whoever greps."""
    head = json.loads(lines()[0])
    assert head["type"] == "script"
    assert (head["format"], head["law"], head["design"]) == (1, "L12", "unswept")
    assert head["settings"]["faults"] == ["cut"]


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ([], "x is empty"),
        (["{"], "x, line 1: this is no JSON"),
        (["[1]"], "x, line 1: this is no object"),
        (['{"type": "run"}'], "x, line 1: the type must be script, got 'run'"),
        (lines()[:1], "x holds no step"),
        ([lines()[0], lines()[1], lines()[2][:40]], "x, line 3: this is no JSON"),
        (edited(1, lambda head: head.update(format=2)), "line 1: the format is 2, .* reads 1"),
        (edited(1, lambda head: head.update(law="L99")), "line 1: this version has no law L99"),
        (edited(1, lambda head: head.pop("store")), "line 1: store must be a string"),
        (edited(1, lambda head: head["settings"].update(design="old")), "no design 'old'"),
        (edited(1, lambda head: head["settings"].update(faults=["fire"])), "no fault 'fire'"),
        (edited(1, lambda head: head["settings"].update(moons=2)), "no settings .*moons"),
        (edited(2, lambda step: step.update(verb="Explode")), "line 2: verb must be one of"),
        (edited(2, lambda step: step["command"].pop("owner")), "line 2: this is no Admit"),
        (edited(2, lambda step: step["command"].update(job_id="")), "line 2: job_id"),
        (edited(2, lambda step: step.update(command=3)), "line 2: command must be an object"),
        (edited(2, lambda step: step.update(store_at="noon")), "line 2: store_at must be a whole"),
        (edited(2, lambda step: step.update(mood=1)), "line 2: a step has no 'mood'"),
        (edited(2, lambda step: step.update(command=None)), "line 2: a step needs a command"),
        (edited(5, lambda step: step["truth"].update(law="L99")), "line 5: .* no law L99"),
        (edited(5, lambda step: step["truth"].pop("facts")), "line 5: this is no truth"),
        (edited(6, lambda step: step.update(command=None)), "line 6: .* needs its command"),
    ],
)
def test_what_cannot_be_read_is_named_by_its_line(broken: list[str], said: str) -> None:
    """The error names file, line and reason."""
    with pytest.raises(MisuseError, match=said):
        script_of(broken, "x")
