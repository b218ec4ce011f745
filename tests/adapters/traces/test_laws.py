"""Two judgements that share no code agree: the laws' predicates, and the laws as SQL."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from tests.adapters.traces.corrupted import history
from tests.adapters.traces.recorded import Recorded, record
from unswept.adapters.traces.law_sql import NOT_JUDGED, OFFENCES
from unswept.adapters.traces.laws import Judgement, disagreements, judge
from unswept.adapters.traces.store import TraceStore
from unswept.core import commands as c
from unswept.core.heart import Phase
from unswept.core.job import Terms
from unswept.core.lease import RequeueRule
from unswept.core.units import MonoMs, Ms, StoreMs
from unswept.simulations import run as runs
from unswept.simulations.designs import DESIGNS
from unswept.simulations.trace import Trace
from unswept.spec.laws import BY_ID, LAWS, Judges
from unswept.spec.observations import Send, Sight

SEEDS = 20
HISTORIES = 50


def judged(run: Path) -> dict[str, Judgement]:
    with TraceStore(run) as traces:
        return {judgement.law.id: judgement for judgement in judge(traces)}


def found(judgements: dict[str, Judgement]) -> set[str]:
    return {law_id for law_id, judgement in judgements.items() if judgement.offences}


def first_caught(file: Path, design: str) -> Recorded:
    for seed in range(1, SEEDS + 1):
        recorded = record(file, seed=seed, design=design)
        if recorded.outcome.violation is not None:
            return recorded
    pytest.fail(f"{design} was not caught in {SEEDS} seeds")


def test_every_law_is_judged_or_says_why_not() -> None:
    """A new law needs its SQL, or a reason why no trace shows it."""
    assert {*OFFENCES, *NOT_JUDGED} == set(BY_ID)
    assert OFFENCES.keys().isdisjoint(NOT_JUDGED)


@pytest.mark.parametrize("seed", [3, 5])
def test_a_sound_run_breaks_no_law_by_either_judgement(tmp_path: Path, seed: int) -> None:
    """And SQL has looked at as many steps as the predicates have."""
    file = tmp_path / "run.jsonl"
    outcome = record(file, seed=seed).outcome
    judgements = judged(file)
    assert outcome.violation is None
    assert found(judgements) == set()
    assert disagreements([*judgements.values()]) == []
    for law in LAWS:
        if law.judges in (Judges.STEP, Judges.WORK, Judges.DELIVERY):
            assert judgements[law.id].judged == outcome.checked[law.id], law.id
    assert judgements["L10"].judged > 100


@pytest.mark.parametrize(
    "design",
    [
        "blanket-sweep",
        "cancel-blind",
        "double-claim",
        "early-acknowledgement",
        "forgetful",
    ],
)
def test_a_broken_store_or_consumer_is_found_by_both(tmp_path: Path, design: str) -> None:
    """The laws that its last step breaks, and no other, in the same command."""
    file = tmp_path / "run.jsonl"
    caught = first_caught(file, design)
    judgements = judged(file)
    assert found(judgements) == caught.broken
    (end,) = {o.n for j in judgements.values() for o in j.offences}
    assert end == caught.outcome.commands + (design != "early-acknowledgement")
    assert disagreements([*judgements.values()]) == []


@pytest.mark.parametrize(
    ("design", "law"),
    [("deadline-deaf", "L11"), ("single-observation", "L12a"), ("evicts-at-first-sight", "L12a")],
)
def test_broken_conduct_is_found_by_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, design: str, law: str
) -> None:
    """Where a design is held to the laws of conduct that it breaks by intention."""
    strict = evolve(DESIGNS[design], excused=frozenset())
    monkeypatch.setattr(runs, "DESIGNS", {design: strict})
    file = tmp_path / "run.jsonl"
    caught = first_caught(file, design)
    assert caught.broken == {law}
    assert found(judged(file)) == {law}


def test_a_law_that_a_design_is_excused_from_is_not_held_against_it(tmp_path: Path) -> None:
    """It breaks L12a all the time; what it is caught by takes the truth, and is only reported."""
    file = tmp_path / "run.jsonl"
    caught = first_caught(file, "single-observation")
    judgements = judged(file)
    assert caught.broken == {"L12"}
    assert found(judgements) == set()
    assert judgements["L12"].reported == (caught.outcome.seed,)
    assert judgements["L12"].broken
    assert judgements["L12"].why_not is not None
    assert judgements["L12a"].judged == 0


def test_histories_that_go_wrong_are_judged_alike(tmp_path: Path) -> None:
    """Step by step: what the predicates find in a store whose decisions are corrupted is what SQL
    finds in its trace, law by law and command by command."""
    expected = {
        (seed, n, law_id)
        for seed in range(HISTORIES)
        for n, law_id in history(seed, 300, tmp_path / f"seed-{seed}.jsonl")
    }
    judgements = judged(tmp_path)
    by_sql = {
        (offence.seed, offence.n, law_id)
        for law_id, judgement in judgements.items()
        for offence in judgement.offences
        if judgement.law.judges is Judges.STEP
    }
    assert by_sql == expected
    times = Counter(law_id for *_, law_id in expected)
    assert times.keys() == {law.id for law in LAWS if law.judges is Judges.STEP}, times
    assert all(o.offence for judgement in judgements.values() for o in judgement.offences)


TERMS = Terms(Ms(90), Ms(300), Ms(50), Ms(45))
SIGHT = Sight("j1", Ms(100), Ms(100), Ms(10), Ms(10))
SWEEP = c.Sweep("i1", (c.Target("j1", 1, 1, StoreMs(5)),))
START = c.Start("j1", "i1", 1, TERMS)
EXPIRE = c.ExpireQueued("j1")


def sends_to(trace: Trace) -> None:
    """Each kind of send in each phase: those that keep the law and those that break it."""
    for command in (c.Claim("i1", 1, TERMS), START, SWEEP, EXPIRE):
        for phase in Phase:
            for repeat in (False, True):
                trace.send(1, Send("i1", command, phase, repeat))


def sweeps_to(trace: Trace) -> None:
    for sight in (
        SIGHT,
        evolve(SIGHT, stood_still_ms=Ms(99)),
        evolve(SIGHT, longest_gap_ms=Ms(11)),
        evolve(SIGHT, window_ms=Ms(101)),
        evolve(SIGHT, gap_ms=Ms(9)),
    ):
        for command in (SWEEP, EXPIRE):
            trace.send(1, Send("i1", command, Phase.STEADY, False, (SIGHT, sight)))


class Person:
    """Whoever works."""

    name = "i1"
    kind = "runner"
    host_name = "h1"


def works_to(trace: Trace) -> None:
    heard = (MonoMs(1_000), Ms(90))
    for rule in RequeueRule:
        for now in (1_079, 1_080, 1_081):
            trace.work(1, Person(), ("j1", 1), rule, MonoMs(now), heard, Ms(10))
    trace.work(1, Person(), ("j1", 1), RequeueRule.NEVER, MonoMs(5), None, Ms(10))


@pytest.mark.parametrize(
    ("law", "tell", "offences"),
    [
        # Of seven phases a claim and a start may not be sent in five, a sweep in six; an expiry is
        # of no phase.
        ("L10", sends_to, 5 + 5 + 6),
        ("L12a", sweeps_to, 4 + 4),
        ("L11", works_to, 2 + 1),
    ],
)
def test_the_edges_of_conduct(tmp_path: Path, law: str, tell: Any, offences: int) -> None:
    """To the millisecond, and phase by phase."""
    file = tmp_path / "run.jsonl"
    with file.open("w") as lines:
        trace = Trace(lines.write, "1.2.3", "memory:")
        trace.begins(runs.Settings(7), frozenset(), 0)
        tell(trace)
    assert len(judged(file)[law].offences) == offences


def test_a_disagreement_is_named(tmp_path: Path) -> None:
    """Whichever of the two finds nothing."""
    file = tmp_path / "run.jsonl"
    caught = first_caught(file, "forgetful")
    assert caught.outcome.violation is not None
    law = caught.outcome.violation.law
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    seed = caught.outcome.seed

    def differs(*kept: dict[str, Any]) -> list[str]:
        file.write_text("".join(json.dumps(line) + "\n" for line in kept))
        return disagreements([*judged(file).values()])

    unreported = [line for line in lines if line["type"] != "violation"]
    alone = "by SQL's judgement alone"
    assert f"L6 was broken in seed {seed} {alone}" in differs(*unreported)
    last = max(i for i, line in enumerate(lines) if line["type"] == "command")
    unseen = [*lines[:last], *lines[last + 1 :]]
    only = f"{law} was broken in seed {seed} by the simulator's judgement alone"
    assert differs(*unseen) == [only]
