"""The events that a pure store keeps: each keeps its number, whatever else goes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from unswept.core.event_log import EventLog, event_key
from unswept.core.lease import Kind, Status
from unswept.core.units import StoreMs
from unswept.core.values import Event

JOBS = ("a", "b", "c")


def told(job_id: str, epoch: int, at: int = 0) -> Event:
    return Event(job_id, epoch, Kind.START, StoreMs(at), Status.RUNNING, "o")


@given(
    st.lists(st.tuples(st.sampled_from(JOBS), st.integers(1, 9), st.booleans())),
    st.integers(0, 30),
)
def test_it_is_a_list_with_holes(steps: list[tuple[str, int, bool]], after: int) -> None:
    """As a plain list has it, from whichever end it is read. (L5)"""
    log = EventLog()
    rows: list[Event | None] = []
    for job_id, epoch, goes in steps:
        event = told(job_id, epoch)
        if goes:
            log.remove(job_id)
            rows = [None if row is None or row.job_id == job_id else row for row in rows]
        elif event not in rows:
            log.append(event)
            rows.append(event)
    kept = [(number, row) for number, row in enumerate(rows, 1) if row is not None]
    assert list(log.behind(0)) == kept
    assert list(log.behind(after)) == [row for row in kept if row[0] > after]
    assert {key: log.number(key) for key in log} == {event_key(row): n for n, row in kept}
    assert list(log.values()) == [row for _, row in kept]
    assert (len(log), log.newest) == (len(kept), len(rows))


def test_a_number_is_never_used_again() -> None:
    """Not even that of the newest of all, if it went."""
    log = EventLog([told("a", 1), told("b", 1)])
    log.remove("b")
    log.append(told("c", 1))
    assert list(log.behind(0)) == [(1, told("a", 1)), (3, told("c", 1))]
    assert (event_key(told("b", 1)) in log, log.number(event_key(told("b", 1)))) == (False, None)


def test_an_event_that_is_written_again_keeps_its_number() -> None:
    """One key, one row: the second overwrites the first, as a broken store might. (L5)"""
    log = EventLog([told("a", 1), told("b", 1)])
    log.append(told("a", 1, at=5))
    assert list(log.behind(0)) == [(1, told("a", 1, at=5)), (2, told("b", 1))]


def test_a_copy_is_changed_apart() -> None:
    """A world is a value: the next one leaves it as it was."""
    log = EventLog([told("a", 1)])
    other = log.copy()
    other.append(told("b", 1))
    other.remove("a")
    assert (list(log), log.newest) == ([event_key(told("a", 1))], 1)
    assert (list(other), other.newest) == ([event_key(told("b", 1))], 2)
