"""The picture of a run says what its trace says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.report.traces import JOB, STEP, STORE_CLOCK, lines, write
from unswept.adapters.report.composing import compose
from unswept.adapters.report.picture import Band, Bar, Picture, Stamp
from unswept.adapters.report.reading import Line, read


def picture_of(told: list[Line], tmp_path: Path) -> Picture:
    return compose(read(write(tmp_path / "run.jsonl", told)))


@pytest.fixture
def picture(tmp_path: Path) -> Picture:
    return picture_of(lines(), tmp_path)


def test_a_job_has_a_bar_for_each_status_owner_and_epoch(picture: Picture) -> None:
    """What lasts at the end lasts to the end, and a renewal begins no new bar."""
    assert picture.jobs[0].bars == [
        Bar(1_000, 70_000, "running", "a", 1),
        Bar(70_000, 70_000, "orphaned", "a", 1),
        Bar(70_000, 70_000, "queued", None, 2),
    ]
    assert picture.jobs[1].bars == [Bar(60_000, 70_000, "running", "b", 1)]


def test_an_evicted_job_has_no_bar_any_more(tmp_path: Path) -> None:
    """Its last bar ends with its row."""
    told = lines(violated=False)
    evicted = {**told[-3], "at": 65_000, "n": 4}
    evicted["changes"] = [{**told[-3]["changes"][0], "transition": "evict", "after": None}]
    picture = picture_of([*told[:-1], evicted, told[-1]], tmp_path)
    assert picture.jobs[1].bars == [Bar(60_000, 65_000, "running", "b", 1)]


def test_a_deadline_is_told_in_true_time_and_outlived_if_nothing_stamped_it_anew(
    tmp_path: Path,
) -> None:
    """The store clock's offset at the stamp counts, not a later one."""
    told = lines(violated=False)
    told[-1]["at"] = 200_000
    stamps = picture_of(told, tmp_path).jobs[0].stamps
    assert stamps == [
        Stamp(1_000, 91_000, outlived=False),
        Stamp(20_000, 110_000, outlived=True),
    ]


def test_the_jobs_of_the_violation_are_touched(picture: Picture) -> None:
    """The one that it names and those that the same command changed, and no other."""
    assert [(lane.id, lane.touched) for lane in picture.jobs] == [(JOB, True), ("b-1", False)]


def test_a_job_that_only_the_offence_names_is_touched(tmp_path: Path) -> None:
    """Its id is a word of the sentence."""
    told = lines()
    told[-2] |= {"job": None, "offence": "the sweep (of b-1, or so) was wrong"}
    touched = [lane.id for lane in picture_of(told, tmp_path).jobs if lane.touched]
    assert touched == [JOB, "b-1"]


def test_an_instance_lives_from_its_boot_to_its_end(tmp_path: Path) -> None:
    """In phases, and standing still in between; a kill ends all of these."""
    told = lines()
    killed = {**told[2], "at": 60_500, "event": "killed"}
    lane = picture_of([*told[:-2], killed, *told[-2:]], tmp_path).instances[0]
    assert lane.lives == [(0, 60_500)] if lane.name == "b" else [(0, 70_000)]
    (a,) = (each for each in picture_of(told, tmp_path).instances if each.name == "a")
    assert a.phases == [(0, 500, "registering"), (500, 70_000, "steady")]
    assert a.stills == [(31_000, 41_000)]
    assert (a.heartbeat_ms, a.ttl_ms, a.host) == (15_000, 90_000, "h0")


def test_who_only_sends_commands_has_a_lane_too(tmp_path: Path) -> None:
    """A trace need not say of a client that it boots."""
    told = lines()
    told[-3]["sender"] = "authority"
    last = picture_of(told, tmp_path).instances[-1]
    assert (last.name, last.kind, last.lives) == ("authority", "client", [(0, 70_000)])


def test_a_fault_lasts_from_its_beginning_to_its_end(picture: Picture) -> None:
    """One that has not ended lasts to the end of the run."""
    assert picture.bands == (
        Band("outage", 30_000, 40_000, None),
        Band("stall", 31_000, 41_000, "a"),
        Band("row-lock", 50_000, 70_000, JOB),
    )


def test_two_faults_of_a_name_end_in_the_order_in_which_they_began(tmp_path: Path) -> None:
    """Flaps overlap."""
    told = lines(violated=False)
    flaps: list[Line] = [
        {"type": "fault", "at": at, "name": "outage", "event": event, "on": None}
        for at, event in (
            (61_000, "begins"),
            (62_000, "begins"),
            (63_000, "ends"),
            (65_000, "ends"),
        )
    ]
    bands = picture_of([*told[:-1], *flaps, told[-1]], tmp_path).bands
    assert bands[-2:] == (
        Band("outage", 61_000, 63_000, None),
        Band("outage", 62_000, 65_000, None),
    )


def test_a_step_of_the_store_clock_is_no_band(picture: Picture) -> None:
    """It is told when it stepped, and by how much."""
    assert picture.steps == ((55_000, STEP),)
    assert picture.store_clock == STORE_CLOCK


def test_a_trace_that_was_cut_short_ends_with_its_last_line(tmp_path: Path) -> None:
    """And what lasts then lasts to there."""
    assert picture_of(lines()[:7], tmp_path).ends == 20_000
