"""Counts: how much waits, is held and is orphaned, by partition."""

from __future__ import annotations

import pytest

from tests.core.story import story
from unswept.core.commands import Count
from unswept.core.errors import MisuseError
from unswept.core.replies import Counts, PartitionCount
from unswept.core.units import StoreMs


def test_jobs_are_counted_by_where_they_stand() -> None:
    """What is over is not counted; a partition that was asked for and has nothing is zero."""
    story(
        """
        0    count              -> nothing
        0    register A         -> registered, claims=0
        1    enqueue j1 in=gpu  -> enqueue: queued - e0 b0
        2    enqueue j2 in=gpu  -> enqueue: queued - e0 b0
        3    enqueue j3 in=gpu  -> enqueue: queued - e0 b0
        4    admit j4 A         -> admit: queued A e1 b1 d104
        5    admit j5 A         -> admit: queued A e1 b1 d105
        6    admit j6 A         -> admit: queued A e1 b1 d106
        7    claim A 1 in=gpu   -> got: j1 running A e1 b1 d57
        8    complete j4 A 1 completed -> complete: completed A e1 b1
        106  sweep S j5/1/1     -> j5 done
        107  count              -> - 0/1+0/1, gpu 2@2/0+1/0
        108  count cpu gpu      -> cpu 0/0+0/0, gpu 2@2/0+1/0
        """
    )


def test_a_total_is_the_sum() -> None:
    """Over the partitions that were counted; the oldest is the oldest of all."""
    rows = (
        PartitionCount("a", 1, StoreMs(7), 2, 3, 4),
        PartitionCount("b", 10, StoreMs(5), 20, 30, 40),
        PartitionCount("c"),
    )
    total = Counts(StoreMs(9), rows).total
    assert total == PartitionCount("", 11, StoreMs(5), 22, 33, 44)
    assert total.held == 55
    assert Counts(StoreMs(9), ()).total == PartitionCount("")


def test_a_partition_is_asked_for_once() -> None:
    """As every batch, it names no row twice."""
    with pytest.raises(MisuseError, match="partitions must name each row once, 'a' comes twice"):
        Count(("a", "a"))
    with pytest.raises(MisuseError, match="partitions must be a tuple, got 'gpu'"):
        Count("gpu")  # type: ignore[arg-type]
