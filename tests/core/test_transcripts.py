"""Whole lives of jobs, as conversations that a reader can check by eye; see
`unswept.simulations.scenarios.language`."""

from __future__ import annotations

from tests.core.story import story


def test_a_gateways_job_from_admit_to_eviction() -> None:
    """A job that its owner runs itself is born owned, beats, ends, and is evicted. (L1, L4, L14)"""
    story(
        """
        0     register A                     -> registered, claims=0
        0     admit j1 A                     -> admit: queued A e1 b1 d100
        10    start j1 A 1 pid=7             -> start: running A e1 b2 d110
        40    beat A j1/1                    -> j1 renewed d140
        50    output j1 A 1 0 hello          -> output: running A e1 b3 d140
        60    complete j1 A 1 completed code=0 -> complete: completed A e1 b3
        70    find j1                        -> found: completed A e1 b3 code=0
        71    print j1                       -> e1: hello
        1060  evict j1/1                     -> j1 not_due
        1061  evict j1/1                     -> j1 done
        1062  find j1                        -> refused spent
        1063  events                         -> admit/1, start/1, complete/1, evict/1
        """
    )


def test_a_fleets_job_that_outlives_a_dead_runner() -> None:
    """A runner dies; its job is swept, requeued and run by another under a new epoch. (L2, L3)"""
    story(
        """
        0    register A                  -> registered, claims=0
        0    register B                  -> registered, claims=0
        0    enqueue j1 requeueable      -> enqueue: queued - e0 b0
        10   claim A 1                   -> got: j1 running A e1 b1 d60
        20   start j1 A 1 pid=7          -> repeated: running A e1 b1 d60
        30   beat A j1/1                 -> j1 renewed d130
        130  suspects                    -> nothing
        131  suspects                    -> j1/1/2
        131  sweep B j1/1/2              -> j1 done
        132  requeue j1 1                -> requeue: queued - e2 b2
        140  claim B 1                   -> got: j1 running B e3 b3 d190
        150  beat A j1/1                 -> j1 fenced
        151  output j1 A 1 0 late        -> refused stale_epoch: running B e3 b3 d190
        152  complete j1 A 1 completed   -> refused stale_epoch: running B e3 b3 d190
        160  complete j1 B 3 completed   -> complete: completed B e3 b3
        170  events                      -> enqueue/0, claim/1, orphan/1, requeue/2, claim/3, \
            stale_result/1, complete/3
        """
    )


def test_a_late_owner_heals_its_orphan() -> None:
    """An orphan's owner that was only slow still ends it, under the same epoch. (L4)"""
    story(
        """
        0    admit j1 A                  -> admit: queued A e1 b1 d100
        5    start j1 A 1                -> start: running A e1 b2 d105
        106  sweep B j1/1/2              -> j1 done
        107  beat A j1/1                 -> j1 orphaned (not registered)
        108  output j1 A 1 0 still-here  -> output: orphaned A e1 b2
        109  complete j1 A 1 failed      -> heal: failed A e1 b2
        110  complete j1 A 1 failed      -> repeated: failed A e1 b2
        111  complete j1 A 1 completed   -> refused already_terminal: failed A e1 b2
        112  events                      -> admit/1, start/1, orphan/1, heal/1
        """
    )


def test_a_clock_that_steps_back_shortens_the_next_stamp() -> None:
    """A stamp overwrites the deadline and never takes the greater. (L1)"""
    story(
        """
        500  admit j1 A    -> admit: queued A e1 b1 d600
        400  beat A j1/1   -> j1 renewed d500 (not registered)
        500  suspects      -> nothing
        501  suspects      -> j1/1/2
        501  beat A j1/1   -> j1 renewed d601 (not registered)
        502  sweep B j1/1/2 -> j1 beats_moved
        """
    )


def test_evidence_delays_a_sweep_once() -> None:
    """A live pid stamps a suspect once in its epoch, by its own ttl, and no second time. (L9)"""
    story(
        """
        0    admit j1 A      -> admit: queued A e1 b1 d100
        100  delay B j1 1 1  -> refused not_expired: queued A e1 b1 d100
        101  delay B j1 1 1  -> delay: queued A e1 b2 d201
        102  delay B j1 1 1  -> refused beats_moved: queued A e1 b2 d201
        150  sweep B j1/1/1  -> j1 beats_moved
        202  delay B j1 1 2  -> refused delayed_before: queued A e1 b2 d201
        202  sweep B j1/1/2  -> j1 done
        203  requeue j1 1 force -> requeue: queued - e2 b2
        203  register A      -> registered, claims=0
        204  claim A 1       -> got: j1 running A e3 b3 d254
        255  delay B j1 3 3  -> delay: running A e3 b4 d305
        """
    )
