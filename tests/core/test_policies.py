"""What a sweep does beyond marking a job orphaned, as the job's policy says."""

from __future__ import annotations

import re

import pytest

from tests.core.story import TERMS, Storyteller, story
from unswept.core import commands as c
from unswept.core.errors import MisuseError
from unswept.core.job import OnOrphan
from unswept.core.lease import RequeueRule
from unswept.core.replies import EventsPage


def test_a_requeue_in_the_sweep_fences_the_old_owner() -> None:
    """The job is to be had again at once; what its old owner still sends is stale."""
    story(
        """
        0    register B                            -> registered, claims=0
        0    admit j1 A requeueable then=requeue/3 -> admit: queued A e1 b1 d100
        100  sweep S j1/1/1                        -> j1 not_expired
        101  sweep S j1/1/1                        -> j1 done
        102  find j1                               -> found: queued - e2 b1
        103  beat A j1/1                           -> j1 fenced (not registered)
        104  complete j1 A 1 completed             -> refused stale_epoch: queued - e2 b1
        105  claim B 1                             -> got: j1 running B e3 b2 d155
        106  events -> admit/1, orphan/1, requeue/2, stale_result/1, claim/3
        """
    )


def test_spent_attempts_fail_the_job() -> None:
    """An admit and each claim is an attempt; an authority's requeue goes beyond the bound."""
    story(
        """
        0    register B                            -> registered, claims=0
        0    admit j1 A requeueable then=requeue/2 -> admit: queued A e1 b1 d100
        101  sweep S j1/1/1                        -> j1 done
        102  claim B 1                             -> got: j1 running B e3 b2 d152
        153  sweep S j1/3/2                        -> j1 done
        154  find j1                               -> found: failed - e4 b2
        155  requeue j1 4                          -> refused already_terminal: failed - e4 b2
        156  events -> admit/1, orphan/1, requeue/2, claim/3, orphan/3, settle/4
        """
    )


def test_a_job_fails_in_the_sweep() -> None:
    """Its owner is fenced: nothing heals it."""
    story(
        """
        0    admit j1 A then=fail      -> admit: queued A e1 b1 d100
        101  sweep S j1/1/1            -> j1 done
        102  complete j1 A 1 completed -> refused stale_epoch: failed - e2 b1
        """
    )


def test_a_held_job_waits_for_a_person() -> None:
    """It stays orphaned and may heal, as one that is only marked."""
    story(
        """
        0    admit j1 A then=hold      -> admit: queued A e1 b1 d100
        101  sweep S j1/1/1            -> j1 done
        102  find j1                   -> found: orphaned A e1 b1
        103  complete j1 A 1 completed -> heal: completed A e1 b1
        """
    )


def test_a_pending_cancel_ends_what_would_be_requeued() -> None:
    """The wish is older than the requeue; one that is only marked stays orphaned. (L7)"""
    story(
        """
        0    admit j1 A requeueable then=requeue/3 -> admit: queued A e1 b1 d100
        0    admit j2 A requeueable                -> admit: queued A e1 b1 d100
        1    cancel j1                             -> request_cancel: queued A e1 b1 d100 c1
        1    cancel j2                             -> request_cancel: queued A e1 b1 d100 c1
        101  sweep S j1/1/1 j2/1/1                 -> j1 done, j2 done
        102  find j1                               -> found: canceled - e2 b1 c1
        102  find j2                               -> found: orphaned A e1 b1 c1
        """
    )


def test_the_events_say_why() -> None:
    """The sweep's event and that of what its policy did bear the cause."""
    teller = Storyteller.of_pure_store()
    for line in (
        "0 register A",
        "0 admit j1 A",
        "0 admit j2 lost",
        "0 admit j3 A then=hold",
        "0 admit j4 A then=fail",
        "0 admit j5 A requeueable then=requeue/1",
        "0 admit j6 A",
        "1 cancel j6",
        "101 sweep S j1/1/1 j2/1/1 j3/1/1 j4/1/1 j5/1/1 j6/1/1",
    ):
        teller.tell(line)
    page = teller.store.execute(c.ReadEvents())
    assert isinstance(page, EventsPage)
    causes = [f"{event.job_id} {event.kind} {event.cause}" for event in page.events if event.cause]
    assert causes == [
        "j1 orphan lease_expired",
        "j2 orphan owner_lost",
        "j3 orphan outcome_unknown",
        "j4 orphan lease_expired",
        "j5 orphan lease_expired",
        "j6 orphan canceled",
        "j4 settle lease_expired",
        "j5 settle attempts_spent",
    ]


@pytest.mark.parametrize(
    ("rule", "policy", "most", "says"),
    [
        ("never", OnOrphan.REQUEUE, 3, "on_orphan = requeue needs requeue = allowed, got never"),
        ("allowed", OnOrphan.REQUEUE, None, "max_attempts must be a whole number, got None"),
        ("allowed", OnOrphan.REQUEUE, 0, "max_attempts must be 1 to"),
        ("allowed", OnOrphan.FAIL, 3, "max_attempts (3) is for on_orphan = requeue, got fail"),
        ("allowed", "fail", None, "on_orphan must be a OnOrphan, got 'fail'"),
    ],
)
def test_a_policy_that_cannot_work_is_refused(
    rule: str, policy: OnOrphan, most: int | None, says: str
) -> None:
    """For an enqueue and for an admit."""
    requeue = RequeueRule(rule)
    with pytest.raises(MisuseError, match=re.escape(says)):
        c.Enqueue("j", requeue=requeue, on_orphan=policy, max_attempts=most)
    with pytest.raises(MisuseError, match=re.escape(says)):
        c.Admit("j", "A", TERMS, requeue=requeue, on_orphan=policy, max_attempts=most)
