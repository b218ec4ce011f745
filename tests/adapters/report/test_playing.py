"""A kept script is carried out on its store and drawn, its steps apart and its times true."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from tests.adapters.report.scripts import SWEPT, TWO_STEP_CLAIM, script
from unswept.adapters.report.composing import compose
from unswept.adapters.report.page import Subject, page
from unswept.adapters.report.picture import Picture
from unswept.adapters.report.playing import played
from unswept.adapters.report.reading import Trace, find, is_script
from unswept.adapters.report.spreading import spread
from unswept.core.errors import MisuseError
from unswept.simulations.campaign import EPOCH


@pytest.fixture
def broken(tmp_path: Path) -> Trace:
    return played(script(tmp_path, TWO_STEP_CLAIM, "two-step-claim"))


def drawn(folder: Path, store: str = "memory:") -> Picture:
    return compose(played(script(folder, SWEPT, store=store)))


def test_the_violation_is_where_its_step_is_drawn(broken: Trace) -> None:
    """The last step breaks the law, and stands apart from those of the same moment."""
    picture = compose(broken)
    assert [said.verb for said in picture.commands] == ["Register", "Enqueue", "Claim"]
    times = [said.at for said in picture.commands]
    assert times == sorted(set(times))
    assert picture.violation is not None
    assert (picture.violation.law, picture.violation.at) == ("WF", times[-1])
    assert picture.violation.job == "q1"
    assert picture.ends > times[-1]
    assert [(lane.id, lane.touched) for lane in picture.jobs] == [("q1", True)]


def test_everybody_has_a_lane_by_what_they_do(broken: Trace, tmp_path: Path) -> None:
    """Who claims is a runner, who holds or sweeps a gateway, and the others are clients."""
    kinds = {lane.name: lane.kind for lane in compose(broken).instances}
    assert kinds == {"r1": "runner", "producer": "client"}
    assert {lane.name: lane.kind for lane in drawn(tmp_path).instances} == {
        "i1": "gateway",
        "i2": "gateway",
    }


def test_a_step_is_never_drawn_behind_a_later_moment(tmp_path: Path) -> None:
    """Steps of one moment are drawn before the next, which stands where it was told."""
    picture = drawn(tmp_path)
    assert picture.commands[0].at == 0
    assert 0 < picture.commands[1].at < 60_000
    assert picture.commands[2].at == 60_000
    assert [said.store_at - EPOCH for said in picture.commands] == [0, 0, 60_000, 30_000, 150_001]


def test_a_deadline_is_drawn_by_the_clock_and_not_by_where_its_stamp_is_drawn(
    tmp_path: Path,
) -> None:
    """The start's deadline is a ttl behind its moment, though its mark stands a little later."""
    (job,) = drawn(tmp_path).jobs
    assert [stamp.deadline for stamp in job.stamps[:2]] == [90_000, 90_000]
    assert job.stamps[1].at > 0


def test_a_step_back_of_the_store_clock_is_a_fault(tmp_path: Path) -> None:
    """True time stands still there."""
    picture = drawn(tmp_path)
    assert picture.steps == ((picture.commands[2].at + (picture.commands[3].at - 60_000), -30_000),)
    assert picture.commands[4].at == 60_000 + 120_001


def test_a_script_that_breaks_nothing_says_which_law_holds(tmp_path: Path) -> None:
    """On the real design the steps do no harm; every law that looked is counted."""
    trace = played(script(tmp_path, TWO_STEP_CLAIM))
    assert trace.violation is None
    text = page(Subject(trace, compose(trace)))
    assert "<h1>No law was broken; WF holds here</h1>" in text
    assert trace.end is not None
    assert trace.end["checked"]["WF"] == 2


def test_a_script_is_told_to_the_store_that_it_was_found_on(tmp_path: Path) -> None:
    """A file in its name is not touched: a fresh one is compared with the pure store."""
    file = script(tmp_path, TWO_STEP_CLAIM, store=f"sqlite:{tmp_path / 'jobs.db'}")
    trace = played(file)
    assert trace.end is not None
    assert trace.end["checked"]["LOCKSTEP"] > 3
    assert [entry.name for entry in tmp_path.iterdir()] == [file.name]


def test_the_page_says_what_it_was_shrunk_to(broken: Trace) -> None:
    """Steps, seed, design, store; what only a whole run has is left out."""
    text = page(Subject(broken, compose(broken), replay="unswept replay a.script.jsonl"))
    assert "<dt>shrunk to</dt><dd>3 steps</dd>" in text
    assert "<dt>found in</dt><dd>seed 7</dd>" in text
    assert "<dt>design</dt><dd>two-step-claim</dd>" in text
    assert "WF was broken · script of seed 7 · unswept" in text
    assert "What must sometimes happen" not in text
    assert "live jobs swept" not in text


def test_a_folder_of_scripts_is_no_folder_of_traces(tmp_path: Path) -> None:
    """A script is named itself."""
    file = script(tmp_path, TWO_STEP_CLAIM)
    assert is_script(file)
    with pytest.raises(MisuseError, match="no trace"):
        find(tmp_path, None)


def test_what_no_time_passes_in_is_spread_all_the_same(broken: Trace) -> None:
    """And what has one moment for each step is left as it is."""
    assert [line["at"] for line in spread(broken).lines if line["type"] == "command"] == [
        0,
        1_000,
        2_000,
    ]
    assert broken.end is not None
    one = evolve(broken, lines=broken.lines[:3], end={**broken.end, "at": 0})
    assert [line["at"] for line in spread(one).lines] == [line["at"] for line in one.lines]
