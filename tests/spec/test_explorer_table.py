"""The search of the table finds what is broken, by the shortest way, and nothing where nothing is.

The counts are pinned: one that changes says that the rules, or what is searched, have changed.
`unswept explore --instances 2 --leases 2` searches the same with two jobs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache
from random import Random
from typing import Any, Final

import pytest

from unswept.core import lease as rules
from unswept.core.lease import MOVES, Kind, Status
from unswept.spec.explorer.table.designs import TABLE_DESIGNS
from unswept.spec.explorer.table.judging import Judge, every_cell
from unswept.spec.explorer.table.lasso import Edge, around, fair_components
from unswept.spec.explorer.table.scopes import SCOPES, Scope
from unswept.spec.explorer.table.search import Found, Model, Table, first_refuted, search
from unswept.spec.explorer.table.settled import SETTLING_DESIGNS, settle
from unswept.spec.explorer.table.state import State
from unswept.spec.explorer.table.story import sentences, settled_sentences
from unswept.spec.laws import LAWS, Judges

BY_NAME: Final[Mapping[str, Scope]] = {scope.name: scope for scope in SCOPES}

HELD: Final[Mapping[str, tuple[int, int, int]]] = {
    # scope: states, transitions, depth, with two instances and one job
    "output of two epochs": (175, 3_211, 9),
    "an authority": (164, 3_196, 13),
    "the store clock": (168, 2_924, 13),
    "policies": (152, 2_379, 12),
    "ends": (92, 2_140, 7),
    "a gateway": (92, 1_672, 8),
    "a fleet": (116, 3_154, 13),
    "two policies": (76, 1_436, 12),
    "force": (70, 1_428, 7),
    "budgets": (66, 990, 9),
    "waiting": (63, 797, 9),
    "ids": (49, 570, 6),
    "output": (28, 326, 8),
}

REFUTED: Final[Mapping[str, tuple[int, int]]] = {
    # design: states, steps of the shortest way
    "epoch-ignored": (21, 5),
    "owner-ignored": (4, 2),
    "renewed-by-anybody": (4, 2),
    "released-by-anybody": (3, 3),
    "swept-blindly": (4, 2),
    "swept-by-any-stamp": (32, 4),
    "swept-at-any-time": (4, 2),
    "delayed-again": (99, 7),
    "greater-stamp": (19, 3),
    "ended-again": (21, 3),
    "requeued-though-never": (39, 5),
    "started-though-canceled": (21, 3),
    "cancel-lost-on-requeue": (21, 3),
    "output-at-any-time": (21, 5),
    "evicted-at-once": (16, 3),
    "no-tombstone": (48, 6),
    "enqueued-again": (12, 2),
    "orphan-joined": (23, 4),
    "no-dedup": (2, 2),
    "event-left-out": (4, 2),
    "event-twice": (21, 5),
    "one-hold-spoils-all": (4, 2),
    "claim-number-ignored": (3, 2),
    "claim-number-forgotten": (28, 4),
    "attempts-ignored": (117, 9),
}


@cache
def explored(scope: str, jobs: int = 1) -> Found:
    return search(Table(BY_NAME[scope], 2, jobs))


@cache
def refuted(name: str) -> Found:
    design = TABLE_DESIGNS[name]
    with design.in_place():
        return search(Table(BY_NAME[design.scope], 2, design.jobs))


# The real design --------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", HELD)
def test_the_real_design_holds(scope: str) -> None:
    """Every state of one job is seen, and no step breaks a law."""
    found = explored(scope)
    assert found.verdict == "exhausted"
    assert (found.states, found.transitions, found.depth) == HELD[scope]


def test_two_jobs_are_searched_to_the_end() -> None:
    """The smallest scope, with two of them."""
    found = explored("output", 2)
    assert found.verdict == "exhausted"
    assert (found.states, found.transitions, found.depth) == (784, 21_106, 11)


@pytest.mark.parametrize("scope", ["a gateway", "the store clock", "policies"])
def test_a_third_instance_is_one_more_stranger(scope: str) -> None:
    """Names are taken out of a state, so that a job has as many states as with two."""
    found = search(Table(BY_NAME[scope], 3, 1))
    assert (found.verdict, found.states) == ("exhausted", HELD[scope][0])


def test_every_scope_is_pinned() -> None:
    """But the one that needs two jobs, which takes longer."""
    assert {*HELD, "twins"} == set(BY_NAME)


def test_every_cell_of_the_status_table_is_exercised() -> None:
    """With one job already; a cell that none exercises would show here by its name."""
    cells = set[Any]().union(*(explored(scope).cells for scope in HELD))
    assert every_cell() - cells == set()
    assert cells <= every_cell()


def test_the_cells_are_those_of_the_table() -> None:
    """A move that stays keeps the status, and one that reaches nothing removes the row."""
    cells = every_cell()
    assert {kind for kind, _, _ in cells} == set(MOVES)
    assert (Kind.EVICT, Status.FAILED, None) in cells
    assert (Kind.RENEW, Status.QUEUED, Status.RUNNING) not in cells
    assert (Kind.COMPLETE, Status.QUEUED, Status.CANCELED) in cells


def test_every_law_of_steps_is_asked() -> None:
    """None of their predicates goes without a step to look at."""
    judged: Counter[str] = Counter()
    for scope in HELD:
        judged.update(explored(scope).judged)
    assert {law.id for law in LAWS if law.judges is Judges.STEP} == set(judged)


def test_a_search_short_of_its_end_is_undetermined() -> None:
    """By depth, or by the number of states."""
    table = Table(BY_NAME["a fleet"], 2, 1)
    assert search(table, depth=3).verdict == "undetermined"
    assert search(table, depth=3).depth == 3
    assert search(table, limit=10).verdict == "undetermined"


@pytest.mark.parametrize("scope", HELD)
def test_states_of_one_key_go_on_alike(scope: str) -> None:
    """What a key leaves out does not matter: whichever state was reached first, the same follow.
    Walks at random meet states of one key at many times, epochs and beats."""
    model = Model(Table(BY_NAME[scope], 2, 1), Judge(Counter(), set()))

    def following(state: State) -> frozenset[bytes]:
        return frozenset(model.key(move.state) for move in model.moves(state))

    known: dict[bytes, frozenset[bytes]] = {}
    rng, again = Random(1), 0
    for _ in range(8):
        state = model.first()
        for _ in range(14):
            here = following(state)
            again += model.key(state) in known
            assert known.setdefault(model.key(state), here) == here
            moves = [move.state for move in model.moves(state) if move.state is not state]
            state = rng.choice(moves)
    assert again > 20


# Broken designs ---------------------------------------------------------------------------------


def test_every_broken_design_is_pinned() -> None:
    """No broken design is without its counterexample."""
    assert set(REFUTED) == set(TABLE_DESIGNS)


@pytest.mark.parametrize("name", REFUTED)
def test_a_broken_design_is_refuted_by_its_law(name: str) -> None:
    """The search finds the step that breaks the law after so many states, by so short a way."""
    found = refuted(name)
    assert TABLE_DESIGNS[name].law in [offence.law for offence in found.offences]
    assert (found.states, len(found.trace)) == REFUTED[name]


def test_the_core_is_whole_after_a_broken_design() -> None:
    """What was replaced stands again, also for whoever took it by name."""
    fence = rules.fence
    with TABLE_DESIGNS["epoch-ignored"].in_place():
        assert rules.fence is not fence
    assert rules.fence is fence


def test_the_first_refuted_scope_is_named() -> None:
    """One call for whoever has broken the core: None, or the search that noticed."""
    scopes = [BY_NAME["output"], BY_NAME["ids"]]
    assert first_refuted(scopes, 2, 1) is None
    with TABLE_DESIGNS["evicted-at-once"].in_place():
        got = first_refuted(scopes, 2, 1)
    assert got is not None
    assert [offence.law for offence in got[1].offences] == ["L14"]


def test_a_counterexample_is_told_step_by_step() -> None:
    """Which command reached the store in which tick, and which law the last one broke."""
    assert sentences(refuted("swept-by-any-stamp")) == (
        "tick 0: i1 admits j1 (process, requeue never, on_orphan mark)",
        "tick 2: i2 sweeps j1, seen under epoch 1 at beat 0",
        "L2: j1 was orphaned at epoch 1 and beat 1, which is not the stamp that the sweeper saw",
    )


# Settling ---------------------------------------------------------------------------------------


def test_a_job_of_a_lost_owner_is_settled() -> None:
    """In the real design no fair run leaves it as it is; nor does any step break a law."""
    found = settle(2, 1)
    assert found.verdict == "exhausted"
    assert (found.states, found.transitions, found.depth) == (3_838, 24_236, 21)


@pytest.mark.parametrize(
    ("name", "states", "way", "again"),
    [
        ("forgets", 792, 5, ("a tick passes", "i2 looks for suspects")),
        ("instances-trusted", 284, 4, ("a tick passes", "i2 looks for suspects")),
    ],
)
def test_a_sweeper_that_leaves_one_for_ever_is_refuted(
    name: str, states: int, way: int, again: tuple[str, ...]
) -> None:
    """The way to where nothing but this happens any more, though nobody is unfair."""
    found = settle(2, 1, SETTLING_DESIGNS[name].habits)
    assert (found.verdict, found.states, len(found.way)) == ("refuted", states, way)
    assert found.round == again
    assert settled_sentences(found)[-1].endswith("and j1 is never settled")


A, B = ("look", "a"), ("sweep", "a")


@pytest.mark.parametrize(
    ("graph", "fair"),
    [
        # One state that stays: fair where nothing else could be done all the while.
        ([[Edge("tick", 0)]], [[0]]),
        ([[Edge("tick", 0), Edge(A, 1)], []], []),
        # What leads nowhere else may be done for ever; what is no action may be put off.
        ([[Edge("tick", 0), Edge(A, 0)]], [[0]]),
        ([[Edge("tick", 0), Edge(None, 1)], []], [[0]]),
        # An action that can be done in one of two states only is not put off all the while.
        ([[Edge("tick", 1), Edge(A, 2)], [Edge("tick", 0)], []], [[0, 1]]),
        ([[Edge("tick", 1), Edge(A, 2)], [Edge("tick", 0), Edge(A, 2)], []], []),
    ],
)
def test_a_run_is_fair_if_nothing_is_put_off_for_ever(
    graph: list[list[Edge]], fair: list[list[int]]
) -> None:
    """The last state of each graph is where the action leads out."""
    found = fair_components(graph, lambda state: len(graph) == 1 or state < len(graph) - 1)
    assert [sorted(component) for component in found] == fair


def test_a_round_does_each_action_and_comes_back() -> None:
    """Pairs of a state and the place of its edge, from the first state to itself."""
    graph = [[Edge("tick", 1)], [Edge(A, 2)], [Edge(B, 0), Edge(None, 1)]]
    assert around(graph, [0, 1, 2], 0) == [(0, 0), (1, 0), (2, 0)]
