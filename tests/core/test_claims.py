"""Claims: what they take, in which order, and what their numbers are for."""

from __future__ import annotations

from tests.core.story import story


def test_a_claim_takes_by_priority_then_age_then_id() -> None:
    """The lowest priority number goes first, then the oldest, then the least id."""
    story(
        """
        0  register A            -> registered, claims=0
        0  enqueue j4 priority=1 -> enqueue: queued - e0 b0
        1  enqueue j3            -> enqueue: queued - e0 b0
        1  enqueue j2            -> enqueue: queued - e0 b0
        2  enqueue j1            -> enqueue: queued - e0 b0
        2  enqueue j5 priority=-1 -> enqueue: queued - e0 b0
        3  claim A 1             -> got: j5 running A e1 b1 d53
        3  claim A 2 limit=2     -> got: j2 running A e1 b1 d53, j3 running A e1 b1 d53
        3  claim A 3 limit=9     -> got: j1 running A e1 b1 d53, j4 running A e1 b1 d53
        3  claim A 4             -> got: nothing
        """
    )


def test_a_claim_stays_in_its_partition() -> None:
    """A job is claimed only by who asks for its partition; the empty one is one too."""
    story(
        """
        0  register A       -> registered, claims=0
        0  enqueue j1 in=gpu -> enqueue: queued - e0 b0
        0  enqueue j2       -> enqueue: queued - e0 b0
        1  claim A 1 limit=9 -> got: j2 running A e1 b1 d51
        1  claim A 2 in=cpu -> got: nothing
        1  claim A 3 in=gpu -> got: j1 running A e1 b1 d51
        """
    )


def test_a_claim_offers_all_labels_that_a_job_requires() -> None:
    """Required is a subset of offered; what is offered beyond it, and its order, do not matter."""
    story(
        """
        0  register A                -> registered, claims=0
        0  enqueue j1 labels=gpu+cpu -> enqueue: queued - e0 b0
        1  enqueue j2 labels=cpu     -> enqueue: queued - e0 b0
        2  enqueue j3                -> enqueue: queued - e0 b0
        3  claim A 1 limit=9         -> got: j3 running A e1 b1 d53
        4  claim A 2 labels=gpu      -> got: nothing
        5  claim A 3 labels=CPU      -> got: nothing
        6  claim A 4 labels=tpu+cpu  -> got: j2 running A e1 b1 d56
        7  claim A 5 labels=cpu+gpu+cpu -> got: j1 running A e1 b1 d57
        """
    )


def test_labels_change_nothing_about_the_order() -> None:
    """By priority, then age, then id, over all sets of labels that the claim may have."""
    story(
        """
        0  register A                          -> registered, claims=0
        0  enqueue j6                          -> enqueue: queued - e0 b0
        0  enqueue j5 labels=x                 -> enqueue: queued - e0 b0
        0  enqueue j4 labels=y                 -> enqueue: queued - e0 b0
        1  enqueue j2 labels=y                 -> enqueue: queued - e0 b0
        1  enqueue j1 labels=z                 -> enqueue: queued - e0 b0
        1  enqueue j3 labels=x+y priority=-1   -> enqueue: queued - e0 b0
        2  claim A 1 labels=x+y limit=3 -> got: j3 running A e1 b1 d52, j4 running A e1 b1 d52, \
j5 running A e1 b1 d52
        2  claim A 2 labels=x+y limit=3 -> got: j2 running A e1 b1 d52, j6 running A e1 b1 d52
        """
    )


def test_an_instance_that_is_not_registered_takes_nothing() -> None:
    """A claim needs a registered claimer; what it holds already is no matter of that."""
    story(
        """
        0  enqueue j1       -> enqueue: queued - e0 b0
        1  claim A 1        -> refused not_registered
        2  register A       -> registered, claims=0
        3  claim A 1        -> got: j1 running A e1 b1 d53
        4  deregister A     -> deregistered
        5  claim A 1        -> refused not_registered
        6  beat A j1/1      -> j1 renewed d106 (not registered)
        """
    )


def test_a_claim_number_takes_once() -> None:
    """A repeated claim gets what it took and still holds; an older number takes nothing new."""
    story(
        """
        0  register A               -> registered, claims=0
        0  enqueue j1 requeueable   -> enqueue: queued - e0 b0
        0  enqueue j2               -> enqueue: queued - e0 b0
        0  enqueue j3               -> enqueue: queued - e0 b0
        1  claim A 2 limit=2        -> got: j1 running A e1 b1 d51, j2 running A e1 b1 d51
        2  claim A 2 limit=2        -> again: j1 running A e1 b1 d51, j2 running A e1 b1 d51
        3  claim A 1                -> again: nothing
        4  release j1 A 1           -> release: queued - e2 b1
        5  claim A 2                -> again: j2 running A e1 b1 d51
        6  complete j2 A 1 failed   -> complete: failed A e1 b1
        7  claim A 2                -> again: nothing
        8  claim A 3 limit=9        -> got: j1 running A e3 b2 d58, j3 running A e1 b1 d58
        9  events                   -> enqueue/0, enqueue/0, enqueue/0, claim/1, claim/1, \
            release/2, complete/1, claim/3, claim/1
        """
    )


def test_a_claim_that_took_nothing_has_used_its_number() -> None:
    """A claim that comes again after work has arrived takes none of it."""
    story(
        """
        0  register A   -> registered, claims=0
        1  claim A 1    -> got: nothing
        2  enqueue j1   -> enqueue: queued - e0 b0
        3  claim A 1    -> again: nothing
        4  claim A 2    -> got: j1 running A e1 b1 d54
        """
    )


def test_registering_again_keeps_the_greatest_claim_number() -> None:
    """Neither a repeated registration nor a cleaned-up row makes an old claim number new."""
    story(
        """
        0    register A           -> registered, claims=0
        1    claim A 5            -> got: nothing
        2    register A claims=3  -> registered, claims=5
        503  forget A/2           -> forgot 1
        504  register A           -> registered, claims=5
        505  enqueue j1           -> enqueue: queued - e0 b0
        506  claim A 5            -> again: nothing
        507  deregister A         -> deregistered
        508  claim A 6            -> refused not_registered
        509  register A           -> registered, claims=5
        """
    )


def test_a_claim_is_no_job_of_another_owner() -> None:
    """Two owners may use the same number; each gets its own jobs."""
    story(
        """
        0  register A   -> registered, claims=0
        0  register B   -> registered, claims=0
        0  enqueue j1   -> enqueue: queued - e0 b0
        0  enqueue j2   -> enqueue: queued - e0 b0
        1  claim A 1    -> got: j1 running A e1 b1 d51
        1  claim B 1    -> got: j2 running B e1 b1 d51
        2  claim A 1    -> again: j1 running A e1 b1 d51
        """
    )


def test_an_orphan_is_not_what_a_claim_still_holds() -> None:
    """A claimed job that was swept is not handed out by its claim's repeat."""
    story(
        """
        0   register A      -> registered, claims=0
        0   enqueue j1      -> enqueue: queued - e0 b0
        1   claim A 1       -> got: j1 running A e1 b1 d51
        52  sweep B j1/1/1  -> j1 done
        53  claim A 1       -> again: nothing
        """
    )


def test_a_claim_ends_the_queue_deadline() -> None:
    """A job that was claimed in time, and comes back to the queue, does not expire. (L14)"""
    story(
        """
        0    register A                       -> registered, claims=0
        0    enqueue j1 until=50 requeueable  -> enqueue: queued - e0 b0
        10   claim A 1                        -> got: j1 running A e1 b1 d60
        51   expire j1                        -> refused already_running: running A e1 b1 d60
        52   release j1 A 1 from=70           -> release: queued - e2 b1
        53   expire j1                        -> refused not_due: queued - e2 b1
        69   claim A 2                        -> got: nothing
        70   claim A 3                        -> got: j1 running A e3 b2 d120
        """
    )


def test_a_claimed_jobs_first_beat_stamps_the_whole_ttl() -> None:
    """A claim stamps the first-beat ttl, its start nothing, and a beat the lease ttl. (L1)"""
    story(
        """
        0   register A            -> registered, claims=0
        0   enqueue j1            -> enqueue: queued - e0 b0
        0   claim A 1             -> got: j1 running A e1 b1 d50
        10  start j1 A 1 pid=7    -> repeated: running A e1 b1 d50
        20  beat A j1/1           -> j1 renewed d120
        """
    )


def test_a_budget_bounds_what_is_held() -> None:
    """A claim takes no more than its owner's budget leaves; beyond it, it is refused and its number
    is used up. What is over, or no claim's, does not count; a new registration sets it anew."""
    story(
        """
        0  register A budget=2 -> registered, claims=0
        0  enqueue j1          -> enqueue: queued - e0 b0
        1  enqueue j2          -> enqueue: queued - e0 b0
        2  enqueue j3          -> enqueue: queued - e0 b0
        3  admit j9 A          -> admit: queued A e1 b1 d103
        4  claim A 1 limit=9   -> got: j1 running A e1 b1 d54, j2 running A e1 b1 d54
        5  claim A 2           -> refused budget
        6  complete j1 A 1 completed -> complete: completed A e1 b1
        7  claim A 2           -> again: nothing
        8  claim A 3 limit=9   -> got: j3 running A e1 b1 d58
        9  claim A 4           -> refused budget
        10 register A          -> registered, claims=4
        11 claim A 5           -> got: nothing
        """
    )
