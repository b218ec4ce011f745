"""The verdict on made-up evidence: every check is seen to hold, and to fail."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from attrs import evolve

from tests.adapters.chaos.made_up import (
    BEATEN,
    DONE,
    END,
    KILLED,
    LAST,
    ORPHANED,
    SEEN,
    STARTED,
    SWEEPER,
    SWEPT,
    TTL,
    MadeUp,
    all_well,
    cut,
    deed,
    store,
)
from unswept.adapters.chaos.history import Cause
from unswept.adapters.chaos.plan import POLICY
from unswept.adapters.chaos.records import Act, Answered, Deed, LoopStood, Slots, Stalled, Work
from unswept.adapters.chaos.sweeps import RECOVERY_MS
from unswept.adapters.chaos.verdict import CHECKS
from unswept.core.lease import Kind, Status
from unswept.core.replies import Found
from unswept.core.units import MonoMs, StoreMs
from unswept.core.values import Event

CUT_SHORT = "no lease was cut short"
HEALTHY = "no healthy owner lost a job"
WINDOW = "a sweep takes a whole window"
WHY = "orphan events say why"
AGREE = "orphan events agree with the owner's file"
LOST = "no job is lost"
OVER = "what is over stays over"
ENDS = "ends are what was acknowledged"
IN_TIME = "the dead are found in time"
SLOTS = "slots are the live rows"


def test_a_run_in_which_all_is_well_holds() -> None:
    """And says how much there was of what counts."""
    violations, counts = all_well().judged()
    assert violations == ()
    assert counts["orphan events"] == 1
    assert counts[f"swept, the owner: {Cause.DEAD}"] == 1
    assert counts["dead owners' jobs orphaned in time"] == 1
    assert counts["jobs admitted"] == 2
    assert counts["completions acknowledged"] == 1
    assert counts["chunks of output acknowledged"] == 1


# Each way to break a promise, and who has to notice ---------------------------------------------


def a_beat_that_the_sweep_passed_over(run: MadeUp) -> None:
    """Its owner was told of a renewal just before the sweep."""
    run.driver = cut(run.driver, Deed)
    run.owner.stamp(SEEN + 500, "Heartbeat", SWEPT)


def a_sweep_within_the_lease(run: MadeUp) -> None:
    """The sweep comes before the deadline that the owner was told."""
    at = StoreMs(store(LAST + 2) + TTL - 1)
    run.change_event(Kind.ORPHAN, at=at, deadline=StoreMs(at - 400), first_seen_at=StoreMs(at - 10))


def an_owner_that_lives(run: MadeUp) -> None:
    """Nothing was done to it, and it saw nothing of itself; it only stopped to beat."""
    run.driver = [line for line in run.driver if getattr(line, "gateway", None) != 1]


def an_owner_that_was_killed_after_it_had_time(run: MadeUp) -> None:
    """It was well for longer than a renewal takes before it was killed."""
    later = LAST + RECOVERY_MS + 50
    run.driver = [
        evolve(line, since=MonoMs(later), at=MonoMs(later))
        if isinstance(line, Deed) and line.gateway == 1 and line.act is not Act.START
        else line
        for line in run.driver
    ]


def an_owner_that_was_stopped_and_continued(run: MadeUp) -> None:
    """It ran again for long enough to renew, and was swept all the same."""
    an_owner_that_lives(run)
    run.driver += [deed(Act.STOP, 1, LAST + 100), deed(Act.CONTINUE, 1, SEEN)]


def a_process_job_under_a_blocked_loop(run: MadeUp) -> None:
    """Its process surely lived all the while, so that it was to be vouched for."""
    an_owner_that_lives(run)
    run.owner.lines += [
        Work(MonoMs(STARTED), SWEPT, END),
        LoopStood(MonoMs(BEATEN[0]), MonoMs(END)),
    ]


def one_look(run: MadeUp) -> None:
    """The sweeper swept at first sight."""
    run.change_event(Kind.ORPHAN, first_seen_at=store(ORPHANED - 5))


def a_heart_that_missed(run: MadeUp) -> None:
    """The sweeper's own beats had a gap in the window."""
    run.without_beats(ORPHANED - 800, ORPHANED - 800 + POLICY.gap_ms + POLICY.retry_ms)


def a_heart_that_stopped_before_the_sweep(run: MadeUp) -> None:
    """The last accepted beat of the sweeper is too long ago."""
    run.without_beats(ORPHANED - POLICY.gap_ms - 100, END)


def an_event_without_a_first_sight(run: MadeUp) -> None:
    run.change_event(Kind.ORPHAN, first_seen_at=None)


def an_event_without_a_last_beat(run: MadeUp) -> None:
    run.change_event(Kind.ORPHAN, beat_at=None)


def a_deadline_that_was_not_past_at_first_sight(run: MadeUp) -> None:
    run.change_event(Kind.ORPHAN, deadline=store(SEEN + 100))


def a_sweep_by_the_owner(run: MadeUp) -> None:
    run.change_event(Kind.ORPHAN, actor="gateway-owner")


def a_sweep_by_a_stranger(run: MadeUp) -> None:
    run.change_event(Kind.ORPHAN, actor="gateway-stranger")


def a_stamp_that_the_store_forgot(run: MadeUp) -> None:
    run.change_event(Kind.ORPHAN, beats=3)


def a_stamp_that_nobody_sent(run: MadeUp) -> None:
    run.change_event(Kind.ORPHAN, beats=5)


def a_last_beat_that_was_not_the_last(run: MadeUp) -> None:
    run.change_event(Kind.ORPHAN, beat_at=store(BEATEN[0] + 2))


def a_row_that_is_gone(run: MadeUp) -> None:
    run.found[SWEPT] = None


def a_row_of_another_owner(run: MadeUp) -> None:
    run.change_row(SWEPT, lease={"owner": SWEEPER})


def a_completion_after_the_completion(run: MadeUp) -> None:
    again = Event(DONE, 1, Kind.CANCEL, store(4_000), Status.CANCELED, None)
    run.events.append(again)


def a_row_that_ended_otherwise_than_its_event(run: MadeUp) -> None:
    run.change_row(DONE, finished_at=store(2_700))


def a_completion_that_is_not_there(run: MadeUp) -> None:
    run.change_row(DONE, lease={"status": Status.FAILED})


def a_completion_with_another_exit_code(run: MadeUp) -> None:
    found = run.found[DONE]
    assert found is not None
    assert found.result is not None
    run.found[DONE] = evolve(found, result=evolve(found.result, exit_code=3))


def a_completion_at_another_time(run: MadeUp) -> None:
    at = store(2_603)
    run.change_row(DONE, finished_at=at)
    run.change_event(Kind.COMPLETE, DONE, at=at)


def a_chunk_that_is_gone(run: MadeUp) -> None:
    run.chunks = frozenset()


def a_withdrawn_job_that_runs(run: MadeUp) -> None:
    run.owner.tell(KILLED - 50, "Withdraw", "given up", withdrawn=("given up",))
    run.found["given up"] = _running(run)


def a_dead_owner_whose_job_nobody_sweeps(run: MadeUp) -> None:
    """A gateway was steady to the end, long after the bound."""
    run.events = [event for event in run.events if event.kind is not Kind.ORPHAN]
    run.found[SWEPT] = _running(run)


def a_dead_owner_whose_job_is_swept_late(run: MadeUp) -> None:
    late = ORPHANED + POLICY.sweep_interval_ms + 2 * POLICY.operation_timeout_ms
    run.change_event(Kind.ORPHAN, at=store(late))


def a_slot_without_a_row(run: MadeUp) -> None:
    run.driver.append(Slots(MonoMs(END - 40), 2, 2, 1, 0, 2, 0, False))


def a_row_without_a_slot(run: MadeUp) -> None:
    run.driver.append(Slots(MonoMs(END - 40), 2, 1, 0, 0, 2, 0, False))


def a_job_that_never_finishes(run: MadeUp) -> None:
    run.driver.append(Slots(MonoMs(END - 40), 2, 0, 0, 1, 1, 0, False))


def a_slot_that_is_left(run: MadeUp) -> None:
    run.driver.append(Slots(MonoMs(END - 5), 2, 1, 0, 0, 0, 1, True))


def _running(run: MadeUp) -> Found:
    found = run.found[SWEPT]
    assert found is not None
    deadline = StoreMs(store(LAST + 2) + TTL)
    lease = evolve(found.job.lease, status=Status.RUNNING, deadline=deadline)
    return evolve(found, job=evolve(found.job, lease=lease, orphaned_at=None))


Break = Callable[[MadeUp], None]
BREAKS: tuple[tuple[Break, str], ...] = (
    (a_beat_that_the_sweep_passed_over, CUT_SHORT),
    (a_sweep_within_the_lease, CUT_SHORT),
    (an_owner_that_lives, HEALTHY),
    (an_owner_that_was_killed_after_it_had_time, HEALTHY),
    (an_owner_that_was_stopped_and_continued, HEALTHY),
    (a_process_job_under_a_blocked_loop, HEALTHY),
    (one_look, WINDOW),
    (a_heart_that_missed, WINDOW),
    (a_heart_that_stopped_before_the_sweep, WINDOW),
    (an_event_without_a_first_sight, WHY),
    (an_event_without_a_last_beat, WHY),
    (a_deadline_that_was_not_past_at_first_sight, WHY),
    (a_sweep_by_the_owner, WHY),
    (a_sweep_by_a_stranger, WHY),
    (a_stamp_that_the_store_forgot, AGREE),
    (a_stamp_that_nobody_sent, AGREE),
    (a_last_beat_that_was_not_the_last, AGREE),
    (a_row_that_is_gone, LOST),
    (a_row_of_another_owner, LOST),
    (a_completion_after_the_completion, OVER),
    (a_row_that_ended_otherwise_than_its_event, OVER),
    (a_completion_that_is_not_there, ENDS),
    (a_completion_with_another_exit_code, ENDS),
    (a_completion_at_another_time, ENDS),
    (a_chunk_that_is_gone, ENDS),
    (a_withdrawn_job_that_runs, ENDS),
    (a_dead_owner_whose_job_nobody_sweeps, IN_TIME),
    (a_dead_owner_whose_job_is_swept_late, IN_TIME),
    (a_slot_without_a_row, SLOTS),
    (a_row_without_a_slot, SLOTS),
    (a_job_that_never_finishes, SLOTS),
    (a_slot_that_is_left, SLOTS),
)


@pytest.mark.parametrize(("broken", "check"), BREAKS, ids=[each.__name__ for each, _ in BREAKS])
def test_what_is_broken_is_noticed(broken: Break, check: str) -> None:
    """Each lie in the evidence is noticed by the check whose promise it breaks."""
    run = all_well()
    broken(run)
    assert check in run.broken()


def test_every_check_is_seen_to_fail() -> None:
    """None of them is there for nothing."""
    assert {check for _, check in BREAKS} == set(CHECKS)


# What is no offence -----------------------------------------------------------------------------


def test_a_stamp_that_was_sent_and_never_answered_may_have_been_taken() -> None:
    """The store may be ahead of the file by just what was sent."""
    run = all_well()
    run.owner.fail(LAST + 100, "Heartbeat", SWEPT)
    run.change_event(Kind.ORPHAN, beats=5)
    assert run.broken() == set()
    run.change_event(Kind.ORPHAN, beats=6)
    assert run.broken() == {AGREE}


def test_a_delay_is_no_stamp_of_the_owner() -> None:
    """It counts among the beats, and moves the deadline; the last beat stays."""
    run = all_well()
    delayed = Event(
        SWEPT, 1, Kind.DELAY, store(LAST + TTL + 50), Status.RUNNING, "gateway-owner", SWEEPER
    )
    run.events.insert(-1, delayed)
    run.change_event(Kind.ORPHAN, beats=5)
    assert run.broken() == set()


@pytest.mark.parametrize(
    ("ail", "cause"),
    [
        (lambda run: run.driver.append(deed(Act.STOP, 1, LAST + 50)), Cause.STOPPED),
        (
            lambda run: run.owner.lines.append(LoopStood(MonoMs(100), MonoMs(END))),
            Cause.BLOCKED,
        ),
        (
            lambda run: run.owner.lines.append(Stalled(MonoMs(END), MonoMs(LAST + 50))),
            Cause.STARVED,
        ),
        (
            lambda run: [
                run.owner.fail(at, "Heartbeat", SWEPT) for at in range(LAST + 50, END, 200)
            ],
            Cause.UNANSWERED,
        ),
        (lambda run: run.driver.append(deed(Act.DOWN, None, LAST + 50)), Cause.DOWN),
        (lambda run: run.driver.append(deed(Act.LOCK, None, LAST + 50)), Cause.LOCKED),
        (
            lambda run: run.driver.extend(
                deed(Act.CUT, 1, at, at + 50) for at in range(LAST + 50, END, 200)
            ),
            Cause.CUT_OFF,
        ),
    ],
)
def test_an_owner_that_was_ill_is_counted_with_its_illness(
    ail: Callable[[MadeUp], object], cause: Cause
) -> None:
    """Stopped, blocked, starved, unanswered, down, locked or cut off all the while."""
    run = all_well()
    an_owner_that_lives(run)
    ail(run)
    violations, counts = run.judged()
    assert HEALTHY not in {violation.check for violation in violations}
    assert counts[f"swept, the owner: {cause}"] == 1


def test_without_a_steady_gateway_nothing_is_due() -> None:
    """The bound has a premise; where it did not hold, the case is counted apart."""
    run = all_well()
    a_dead_owner_whose_job_nobody_sweeps(run)
    run.without_beats(LAST + TTL, LAST + TTL + 2 * POLICY.steady_ms)
    violations, counts = run.judged()
    assert violations == ()
    assert counts["apart: orphaned late or not at all, no gateway was steady all the while"] == 1


def test_a_gateway_that_drains_is_no_steady_one() -> None:
    """It sweeps nobody any more."""
    run = all_well()
    a_dead_owner_whose_job_nobody_sweeps(run)
    run.driver.append(deed(Act.TERM, 2, SEEN))
    assert run.broken() == set()


def test_while_nobody_could_renew_nothing_is_due() -> None:
    """And the reason is told."""
    run = all_well()
    a_dead_owner_whose_job_nobody_sweeps(run)
    run.driver += [deed(Act.LOCK, None, SEEN), deed(Act.UNLOCK, None, SEEN + 900)]
    run.without_beats(SEEN, SEEN + 900)
    violations, counts = run.judged()
    assert violations == ()
    assert counts["apart: orphaned late or not at all, the store locked meanwhile"] == 1


def test_a_clock_that_was_set_is_noticed() -> None:
    """No offset fits all answers any more; what needs one is counted apart."""
    run = all_well()
    an_owner_that_lives(run)
    run.sweeper.tell(END, "Heartbeat")
    last = run.sweeper.lines[-1]
    assert isinstance(last, Answered)
    run.sweeper.lines[-1] = evolve(last, store_at=store(END + 60_000))
    violations, counts = run.judged()
    assert HEALTHY not in {violation.check for violation in violations}
    assert counts["apart: sweeps while a clock was set"] == 2
