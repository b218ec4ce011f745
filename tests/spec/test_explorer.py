"""The explorer finds what is broken, in a known number of states, and nothing where nothing is.

The counts are pinned: one that changes says that the rules, or what is searched, have changed.
`unswept explore` searches the larger mixes, and `unswept explore --windows` the larger windows.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

import pytest

from unswept.core.policy import LeasePolicy
from unswept.core.units import Ms
from unswept.spec.explorer.designs import DESIGNS, REAL, Faults, Mix
from unswept.spec.explorer.happenings import Lane, What
from unswept.spec.explorer.model import Model
from unswept.spec.explorer.neglect import model_of
from unswept.spec.explorer.search import Event, Search, search
from unswept.spec.explorer.story import legend, sentences, timeline
from unswept.spec.explorer.windows import CASES, ROWS, Case, bracket

BROKEN: Final = tuple(name for name in DESIGNS if name != REAL)

REFUTED: Final[Mapping[str, tuple[int, int, int]]] = {
    # design: states, events on the shortest way, ticks that it takes
    "single-observation": (122, 3, 1),
    "deadline-identity": (27_709, 21, 13),
    "deadline-alone": (8_423, 20, 13),
    "slow-heart": (3_010, 13, 8),
    "blind-heart": (2_307, 42, 21),
    "lock-blind": (2_116, 42, 21),
    "short-window": (419, 7, 4),
    "long-window": (3_704, 26, 26),
}

HELD: Final[Mapping[str, tuple[int, int, int]]] = {
    # mix: states, transitions, depth
    "1 step forward": (1_383, 2_037, 36),
    "1 lock on the row": (2_603, 4_774, 105),
    "1 lock on the table": (7_189, 11_586, 111),
    "1 step forward, 1 step back": (3_662, 6_761, 37),
    "1 step forward, 1 lost message": (8_195, 14_381, 45),
    "1 step forward, 1 outage; until the next renewal; window 8": (7_206, 9_961, 86),
    "2 steps forward; passes every 13": (10_858, 18_388, 98),
    "1 death of the owner": (4_387, 5_228, 73),
}


@cache
def explored(design: str, mix: Mix) -> Search:
    return search(model_of(DESIGNS[design], mix))


def quick(design: str) -> Search:
    return explored(design, DESIGNS[design].mixes[0])


# Designs ----------------------------------------------------------------------------------------


def test_every_broken_design_is_pinned() -> None:
    """No broken design is without its counterexample."""
    assert set(REFUTED) == set(BROKEN)


@pytest.mark.parametrize("name", REFUTED)
def test_a_broken_design_is_refuted_by_its_shortest_trace(name: str) -> None:
    """The search finds a broken law after so many states, by so short a way."""
    found = quick(name)
    assert found.refuted
    assert (found.states, len(found.trace), found.trace[-1].tick) == REFUTED[name]
    assert found.offence is not None
    assert (found.offence.law == "L12") == (found.trace[-1].what is What.SWEPT)


def test_a_dead_owners_job_that_is_orphaned_too_late_breaks_l13() -> None:
    """From the owner's death on only the sweeper acts, and the bound is a tick away at the end."""
    found = quick("long-window")
    assert found.offence is not None
    assert found.offence.law == "L13"
    assert found.offence.sentence.startswith(
        "job was not renewed for 27 ms and is not orphaned; the bound is 26 ms"
    )
    assert sentences(found.trace)[0] == "tick 0: the owner dies"


@pytest.mark.parametrize("name", BROKEN)
def test_the_real_design_is_searched_under_the_same_faults(name: str) -> None:
    """Whatever refutes a broken design is tried on the real one too."""
    assert set(DESIGNS[name].mixes) <= set(DESIGNS[REAL].mixes)


@pytest.mark.parametrize("said", HELD)
def test_the_real_design_holds(said: str) -> None:
    """Under this mix every state is seen, and in none is the live job swept."""
    (mix,) = (mix for mix in DESIGNS[REAL].mixes if str(mix) == said)
    found = explored(REAL, mix)
    assert found.complete
    assert not found.refuted
    assert (found.states, found.transitions, found.depth) == HELD[said]


def test_a_search_that_is_given_up_says_so() -> None:
    """A bound on the states leaves the search incomplete, which is neither verdict."""
    mix = Mix(Faults(steps_forward=1))
    found = search(Model(DESIGNS[REAL], mix), limit=100)
    assert not found.complete
    assert not found.refuted
    assert found.verdict == "undetermined"


def test_a_search_is_the_same_every_time() -> None:
    """Two searches see the same states and tell the same trace."""
    mix = DESIGNS["lock-blind"].mixes[0]
    first, second = (search(Model(DESIGNS["lock-blind"], mix)) for _ in range(2))
    assert (first.states, first.transitions, first.trace) == (
        second.states,
        second.transitions,
        second.trace,
    )


# What is told -----------------------------------------------------------------------------------


def test_a_counterexample_is_told_in_sentences() -> None:
    """What repeats is told once, where it begins; all else stands in its order."""
    assert sentences(quick("slow-heart").trace) == (
        "tick 0: the owner's beat renews the lease",
        "tick 0: the store clock steps forward",
        "ticks 0 to 4: the sweeper looks and sees the job as a suspect, 2 times",
        "tick 3: the sweeper's beat is accepted",
        "tick 4: the store goes down",
        "ticks 5 to 7: the owner's beat reaches nobody, 3 times",
        "tick 7: the sweeper's beat reaches nobody",
        "tick 7: the store is back",
        "tick 8: the sweeper sends a sweep",
        "tick 8: the sweep orphans the job, whose owner lives",
    )


def test_a_counterexample_is_drawn() -> None:
    """Lanes below each other, ticks as columns, and within a tick events from left to right."""
    assert timeline(quick("slow-heart").trace) == (
        "tick             0  |1|2|3|4 |5|6|7  |8",
        "owner            R  | | | |  |x|x|x  |",
        "sweeper's heart     | | |.|  | | | x |",
        "sweeper            !| | | |! | | |   |s#",
        "store             > | | | | D| | |  U|",
    )


def test_a_legend_explains_only_what_is_drawn() -> None:
    """One line for each sign of this trace."""
    assert legend(quick("single-observation").trace) == (
        "sweeper          !  the sweeper looks and sees the job as a suspect",
        "sweeper          #  the sweep orphans the job, whose owner lives",
        "store            >  the store clock steps forward",
    )


def test_no_trace_is_told_by_nothing() -> None:
    """Where none was found there is nothing to tell."""
    assert sentences(()) == ()
    assert legend(()) == ()
    assert timeline(())[0] == "tick"


def test_a_sign_means_one_thing_in_its_lane() -> None:
    """No two happenings of a lane look alike."""
    for lane in Lane:
        signs = [what.sign for what in What if what.lane is lane]
        assert len(signs) == len(set(signs))
        assert all(len(sign) == 1 for sign in signs)


def test_a_run_ends_where_another_thing_happens_in_its_lane() -> None:
    """Beats before and after a failed one are two runs."""
    beats = (What.ACCEPTED, What.ACCEPTED, What.HEART_UNHEARD, What.ACCEPTED)
    assert sentences(tuple(Event(tick, what) for tick, what in enumerate(beats))) == (
        "ticks 0 to 1: the sweeper's beat is accepted, 2 times",
        "tick 2: the sweeper's beat reaches nobody",
        "tick 3: the sweeper's beat is accepted",
    )


# Windows ----------------------------------------------------------------------------------------

QUICK_CASES: Final = [
    case
    for case in CASES
    if case.flaps == 0 or (case.flaps == 1 and case.heartbeat == 8) or case == Case(ROWS[2], 1)
]


@pytest.mark.parametrize("case", QUICK_CASES, ids=str)
def test_the_formula_of_windows_is_exact_to_one_tick(case: Case) -> None:
    """The greatest window that is too short by the formula is refuted, and the next one holds."""
    found = bracket(case)
    assert found.too_short.refuted
    assert found.least.complete
    assert not found.least.refuted
    assert found.agrees


def in_heartbeats(case: Case) -> float:
    return case.too_short / case.heartbeat


def test_the_table_of_windows() -> None:
    """The greatest windows that are too short, in heartbeats, with a timeout near 0."""
    table = [[in_heartbeats(Case(row, flaps)) for flaps in range(4)] for row in ROWS]
    assert table == [[1, 3, 5, 7], [1, 2.25, 3.25, 4.25], [1, 1.5, 2, 2.5]]


@pytest.mark.parametrize("heartbeat", [800, 15_000, 60_000])
def test_what_a_policy_says_of_its_flaps_is_safe(heartbeat: int) -> None:
    """So many flaps as a policy promises are survived by the exact formula too; one more may be."""
    policy = LeasePolicy(heartbeat_interval_ms=Ms(heartbeat), lease_ttl_ms=Ms(6 * heartbeat))
    promised = policy.flaps_survived()
    timeout = policy.operation_timeout_ms
    assert promised >= 1
    assert Case(ROWS[2], promised, heartbeat, timeout).too_short < policy.confirm_after_ms
    for flaps in range(1, 20):
        case = Case(ROWS[2], flaps, heartbeat, timeout)
        assert case.too_short <= case.safe_side
        assert (
            policy.flaps_survived(case.safe_side)
            < flaps
            <= policy.flaps_survived(case.safe_side + 1)
        )
