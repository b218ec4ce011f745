"""What a cancel request does, and what it never undoes. (L7)"""

from __future__ import annotations

from tests.core.story import story


def test_the_first_cancel_requests_time_stays() -> None:
    """No later request, beat, start or end replaces the first request's time. (L7)"""
    story(
        """
        0   admit j1 A                 -> admit: queued A e1 b1 d100
        5   start j1 A 1               -> start: running A e1 b2 d105
        10  cancel j1                  -> request_cancel: running A e1 b2 d105 c10
        20  cancel j1                  -> repeated: running A e1 b2 d105 c10
        30  beat A j1/1                -> j1 renewed d130 c10 (not registered)
        40  withdraw j1 B              -> repeated: running A e1 b3 d130 c10
        50  complete j1 A 1 completed  -> complete: completed A e1 b3 c10
        60  cancel j1                  -> refused already_terminal: completed A e1 b3 c10
        """
    )


def test_a_first_start_under_a_cancel_is_refused() -> None:
    """A job that was to be canceled before it started does not start. (L7)"""
    story(
        """
        0   admit j1 A               -> admit: queued A e1 b1 d100
        10  cancel j1                -> request_cancel: queued A e1 b1 d100 c10
        20  start j1 A 1             -> refused cancel_pending: queued A e1 b1 d100 c10
        30  beat A j1/1              -> j1 renewed d130 c10 (not registered)
        40  complete j1 A 1 canceled -> complete: canceled A e1 b2 c10
        """
    )


def test_a_start_that_is_repeated_under_a_cancel_still_stands() -> None:
    """Only a first start is refused: who started before learns of the cancel, and runs. (L7)"""
    story(
        """
        0   admit j1 A       -> admit: queued A e1 b1 d100
        5   start j1 A 1     -> start: running A e1 b2 d105
        10  cancel j1        -> request_cancel: running A e1 b2 d105 c10
        15  start j1 A 1     -> repeated: running A e1 b2 d105 c10
        """
    )


def test_nobodys_job_is_canceled_at_once() -> None:
    """A request that finds a job in the queue, or orphaned, ends it and fences what was. (L7)"""
    story(
        """
        0    enqueue j1               -> enqueue: queued - e0 b0
        10   cancel j1                -> cancel: canceled - e1 b0 c10
        20   cancel j1                -> repeated: canceled - e1 b0 c10
        30   admit j2 A               -> admit: queued A e1 b1 d130
        131  sweep B j2/1/1           -> j2 done
        140  cancel j2                -> cancel: canceled - e2 b1 c140
        150  complete j2 A 1 completed -> refused stale_epoch: canceled - e2 b1 c140
        160  events                   -> enqueue/0, cancel/1, admit/1, orphan/1, cancel/2, \
            stale_result/1
        """
    )


def test_a_job_swept_under_a_cancel_stays_orphaned_and_heals() -> None:
    """A pending request does not end an orphan by itself: its owner may still heal it. (L7)"""
    story(
        """
        0    admit j1 A                -> admit: queued A e1 b1 d100
        5    start j1 A 1              -> start: running A e1 b2 d105
        10   cancel j1                 -> request_cancel: running A e1 b2 d105 c10
        106  sweep B j1/1/2            -> j1 done
        107  beat A j1/1               -> j1 orphaned c10 (not registered)
        108  complete j1 A 1 completed -> heal: completed A e1 b2 c10
        """
    )


def test_a_request_that_finds_an_orphan_with_a_pending_cancel_ends_it() -> None:
    """Asked anew, nobody's job is canceled at once, and the first request's time stays. (L7)"""
    story(
        """
        0    admit j1 A                -> admit: queued A e1 b1 d100
        10   cancel j1                 -> request_cancel: queued A e1 b1 d100 c10
        101  sweep B j1/1/1            -> j1 done
        102  cancel j1                 -> cancel: canceled - e2 b1 c10
        103  beat A j1/1               -> j1 fenced (not registered)
        """
    )


def test_a_release_or_requeue_under_a_cancel_cancels() -> None:
    """A job that nobody wants any more does not go back to the queue. (L7)"""
    story(
        """
        0    admit j1 A requeueable    -> admit: queued A e1 b1 d100
        0    admit j2 A requeueable    -> admit: queued A e1 b1 d100
        10   cancel j1                 -> request_cancel: queued A e1 b1 d100 c10
        10   cancel j2                 -> request_cancel: queued A e1 b1 d100 c10
        20   release j1 A 1            -> release: canceled - e2 b1 c10
        101  sweep B j2/1/1            -> j2 done
        102  requeue j2 1              -> requeue: canceled - e2 b1 c10
        103  requeue j2 1              -> repeated: canceled - e2 b1 c10
        """
    )


def test_a_requeued_job_is_asked_again() -> None:
    """A request that comes after a requeue ends the job in the queue. (L7)"""
    story(
        """
        0    admit j1 A requeueable    -> admit: queued A e1 b1 d100
        101  sweep B j1/1/1            -> j1 done
        102  requeue j1 1              -> requeue: queued - e2 b1
        103  cancel j1                 -> cancel: canceled - e3 b1 c103
        """
    )


def test_a_cancel_that_comes_first_is_remembered() -> None:
    """Its id is spent, so that the late enqueue or admit queues nothing; others are untouched."""
    story(
        """
        0   cancel j1     -> withdrawn
        1   cancel j1     -> withdrawn
        2   enqueue j1    -> refused spent
        3   admit j1 A    -> refused spent
        4   enqueue j2    -> enqueue: queued - e0 b0
        5   cancel j1     -> withdrawn
        6   find j1       -> refused spent
        """
    )
