"""Postgres replays the traces of the specification; SQL with a wrong guard does not."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.adapters.postgres.shared_schema import BROKEN, SharedSchema, broken_schema
from unswept.spec.agreement import itf
from unswept.spec.agreement.judged import Judged
from unswept.spec.agreement.replay import Clock, Disagreement, replay

FOLDER = Path(__file__).resolve().parents[1] / "spec" / "traces"
TRACES = sorted(FOLDER.glob("*.itf.json"))
SOME = [FOLDER / "bustle_0.itf.json", FOLDER / "step_6.itf.json"]


def disagreement(schema: SharedSchema, traces: Iterable[Path]) -> Disagreement | None:
    for trace in traces:
        clock = Clock()
        if found := replay(itf.read(trace), schema.make_store(clock), clock):
            return found
    return None


@pytest.mark.parametrize(
    ("asynchronous", "traces"),
    # The statements are the same: what may differ is how they are sent.
    [(False, TRACES), (True, SOME)],
    ids=["blocking", "asynchronous"],
)
def test_postgres_replays_the_traces_of_the_specification(
    asynchronous: bool, traces: list[Path], postgres_url: str
) -> None:
    """After every command each row is, field by field, what the specification says."""
    schema = SharedSchema(postgres_url, asynchronous=asynchronous)
    try:
        assert traces
        assert disagreement(schema, traces) is None
    finally:
        schema.close()


def test_postgres_behaves_as_the_specification_says(postgres_url: str) -> None:
    """Each command leaves the rows that a step of the specification leaves."""
    schema, clock = SharedSchema(postgres_url), Clock()
    try:
        judged = Judged(schema.make_store(clock), clock, ("j1", "j2"))
        assert replay(itf.read(SOME[1]), judged, clock) is None
        assert len(judged.offences) > 20
        assert set(judged.offences) == {None}
    finally:
        schema.close()


@pytest.mark.parametrize("name", BROKEN)
def test_a_wrong_guard_fails_the_replay(name: str, postgres_url: str) -> None:
    """SQL that differs from the rule by one comparison leaves a row that the traces do not have.
    (L1, L3)"""
    with broken_schema(name, postgres_url) as broken:
        assert disagreement(broken, TRACES) is not None
