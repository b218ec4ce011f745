"""The status table, run as a chart by another library, takes the steps that the functions take."""

from __future__ import annotations

import pytest
from attrs import evolve

from unswept.core.lease import ACTIVE, MOVES, TERMINAL, Kind, Move, Status
from unswept.spec.charts import STATES, Walker, chart, differences, leases, steps_of_functions


def test_the_table_and_the_functions_take_the_same_steps() -> None:
    """Status by status and trigger by trigger, chart and functions agree."""
    assert differences() == ()


def test_every_move_is_taken_and_every_shape_of_lease_is_asked_about() -> None:
    """The comparison is not empty: each move of the table occurs, from each status that it has."""
    steps = steps_of_functions()
    assert {step.kind for step in steps} == set(MOVES)
    assert len(steps) == 35
    assert {lease.status for lease in leases()} == set(Status)


@pytest.mark.parametrize(
    ("kind", "broken", "said"),
    [
        (
            Kind.COMPLETE,
            evolve(MOVES[Kind.COMPLETE], leaves=frozenset({Status.RUNNING})),
            "only in the functions: complete takes a job from queued to failed, "
            "under the same epoch",
        ),
        (
            Kind.ORPHAN,
            evolve(MOVES[Kind.ORPHAN], leaves=frozenset({*ACTIVE, Status.COMPLETED})),
            "only in the table: orphan takes a job from completed to orphaned, "
            "under the same epoch",
        ),
        (
            Kind.HEAL,
            evolve(MOVES[Kind.HEAL], reaches=frozenset({Status.COMPLETED, Status.FAILED})),
            "only in the functions: heal takes a job from orphaned to canceled, "
            "under the same epoch",
        ),
        (
            Kind.REQUEUE,
            evolve(MOVES[Kind.REQUEUE], epoch_step=0),
            "only in the functions: requeue takes a job from orphaned to queued, nobody's, "
            "under the next epoch",
        ),
        (
            Kind.EVICT,
            evolve(MOVES[Kind.EVICT], leaves=TERMINAL - {Status.EXPIRED}),
            "only in the functions: evict takes a job from expired to gone, under the same epoch",
        ),
    ],
)
def test_a_broken_table_is_caught(kind: Kind, broken: Move, said: str) -> None:
    """A wrong cell comes back as the step in which table and functions part."""
    assert said in differences({**MOVES, kind: broken})


@pytest.mark.parametrize("kind", MOVES)
def test_a_missing_row_is_caught(kind: Kind) -> None:
    """No row of the table is idle: without it the functions take steps that the chart does not."""
    table: dict[Kind, Move] = {other: move for other, move in MOVES.items() if other is not kind}
    found = differences(table)
    assert found
    assert all(said.startswith(f"only in the functions: {kind} takes") for said in found)


def test_the_chart_has_no_other_way() -> None:
    """The machine has the states of the table and no automatic transitions between them."""
    machine = chart(Walker())
    assert set(machine.states) == set(STATES)
    assert not [name for name in machine.events if name.split("_to_")[0] not in set(MOVES)]
