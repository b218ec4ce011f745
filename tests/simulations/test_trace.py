"""The trace of a run: one line per thing that happened, in order, and without an effect on it."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from unswept.simulations.campaign import EPOCH
from unswept.simulations.commands_json import command_of, reply_of
from unswept.simulations.run import Outcome, Run, Settings
from unswept.simulations.timeline import StoreClock, Timeline
from unswept.simulations.trace import Trace

Line = dict[str, Any]


def run(trace: Trace | None, **settings: Any) -> Outcome:
    return Run(Settings(**settings), None, StoreClock(Timeline(), EPOCH), trace).outcome()


def traced(**settings: Any) -> tuple[Outcome, list[Line]]:
    written: list[str] = []
    outcome = run(Trace(written.append, "1.2.3", "memory:"), **settings)
    assert all(line.endswith("\n") and line.count("\n") == 1 for line in written)
    return outcome, [json.loads(line) for line in written]


@pytest.fixture(scope="module")
def sound() -> tuple[Outcome, list[Line]]:
    return traced(seed=3)


def of_type(lines: list[Line], name: str) -> list[Line]:
    return [line for line in lines if line["type"] == name]


def test_a_trace_begins_with_the_run_and_ends_with_what_it_came_to(
    sound: tuple[Outcome, list[Line]],
) -> None:
    """What makes the same run again, and what a report shows of it."""
    outcome, lines = sound
    first, last = lines[0], lines[-1]
    assert (first["type"], first["format"], first["version"]) == ("run", 1, "1.2.3")
    assert Settings(**{**first["settings"], "faults": tuple(first["settings"]["faults"])}) == (
        Settings(seed=3)
    )
    assert (first["store"], first["store_clock_ms"]) == ("memory:", EPOCH)
    assert last["type"] == "end"
    assert last["digest"] == outcome.digest
    assert Counter(last["checked"]) == outcome.checked
    assert (last["commands"], last["live_jobs_swept"]) == (
        outcome.commands,
        outcome.live_jobs_swept,
    )


def test_tracing_changes_no_run(sound: tuple[Outcome, list[Line]]) -> None:
    """The same digest with and without, and the same trace twice."""
    outcome, lines = sound
    assert run(None, seed=3).digest == outcome.digest
    assert traced(seed=3)[1] == lines


def test_time_only_goes_on(sound: tuple[Outcome, list[Line]]) -> None:
    """Lines stand in the order in which things happened, and commands are numbered."""
    lines = sound[1][1:]
    times = [line["at"] for line in lines]
    assert times == sorted(times)
    numbers = [line["n"] for line in of_type(lines, "command")]
    assert numbers == [*range(1, sound[0].commands + 1)]
    known = 0
    for line in lines:
        if line["type"] == "command":
            known = line["n"]
        assert line.get("n", known) == known


def test_commands_and_replies_can_be_read_back(sound: tuple[Outcome, list[Line]]) -> None:
    """Each is the value that it was: asked again it is traced the same."""
    for line in of_type(sound[1], "command"):
        command = command_of(line["verb"], line["command"])
        assert getattr(command, "job_id", None) == line["job"]
        reply = reply_of(line["answer"])
        refusal = getattr(reply, "reason", None)
        assert line["refusal"] == refusal


def test_each_change_begins_where_the_last_one_ended(sound: tuple[Outcome, list[Line]]) -> None:
    """The row before is the row after the job's last change; and each has its name."""
    rows: dict[str, Line | None] = {}
    for line in of_type(sound[1], "command"):
        for change in line["changes"]:
            assert change["before"] == rows.get(change["job"])
            assert change["before"] or change["after"]
            rows[change["job"]] = change["after"]
            named = change["transition"] is not None
            assert named or (line["verb"] == "Start" and change["after"]["status"] == "running")
    assert len(rows) > 50


_TOLD: dict[tuple[str, ...], set[str]] = {
    ("crash", "drain"): {"boots", "phase", "killed", "drains", "stopped"},
    ("suspend", "outage"): {"boots", "phase", "stands_still", "goes_on"},
}


@pytest.mark.parametrize("faults", _TOLD)
def test_an_instance_is_told_of_from_its_boot_to_its_end(faults: tuple[str, ...]) -> None:
    """Boots, phases, stands still, is killed, drains, stops; nothing comes before or after."""
    lines = of_type(traced(seed=2, hours=2, faults=faults)[1], "instance")
    assert {line["event"] for line in lines} == _TOLD[faults]
    kinds = {line["kind"] for line in lines}
    assert kinds == {"gateway", "runner", "producer", "authority", "consumer", "stranger"}
    for name in {line["name"] for line in lines}:
        events = [line["event"] for line in lines if line["name"] == name]
        assert events.count("boots") == 1
        assert events[0] == "boots"
        gone = [i for i, event in enumerate(events) if event in ("killed", "stopped")]
        assert gone in ([], [len(events) - 1])
        still = [event for event in events if event in ("stands_still", "goes_on")]
        assert still == (["stands_still", "goes_on"] * len(still))[: len(still)]
    phases = {line["phase"] for line in lines if line["event"] == "phase"}
    assert {"registering", "steady"} <= phases
    assert "outage" not in faults or {"faint", "quiesced", "recovering"} <= phases


def test_a_violation_is_the_last_line_but_one() -> None:
    """With the command that broke the law before it, and the job that the offence names."""
    outcome, lines = traced(seed=1, design="forgetful")
    assert outcome.violation is not None
    command, violation, end = lines[-3:]
    assert [line["type"] for line in lines[-3:]] == ["command", "violation", "end"]
    assert (violation["law"], violation["offence"]) == (
        outcome.violation.law,
        outcome.violation.offence,
    )
    assert violation["job"] == command["job"] == command["changes"][0]["job"]
    assert violation["job"] in violation["offence"]
    assert violation["n"] == command["n"] == outcome.commands + 1
    assert end["commands"] == outcome.commands
