"""Each hold of a heartbeat gets one answer, the first that applies. (L8)"""

from __future__ import annotations

from tests.core.story import TERMS, story
from unswept.core import commands as c
from unswept.core import replies as r
from unswept.core.job import Job, OnOrphan, Transport, admit
from unswept.core.lease import RequeueRule, Status
from unswept.core.memory import MemoryStore
from unswept.core.records import changed
from unswept.core.refusal import Refusal
from unswept.core.replies import Answer
from unswept.core.units import StoreMs
from unswept.core.world import hold_answer


def test_one_bad_hold_does_not_spoil_the_others() -> None:
    """Answers come one per hold, in the order of the holds, each for itself. (L8)"""
    story(
        """
        0    register A                -> registered, claims=0
        0    admit absent A            -> admit: queued A e1 b1 d100
        0    complete absent A 1 failed -> complete: failed A e1 b1
        0    admit fenced A requeueable -> admit: queued A e1 b1 d100
        0    release fenced A 1        -> release: queued - e2 b1
        0    admit stranger B          -> admit: queued B e1 b1 d100
        0    admit over A              -> admit: queued A e1 b1 d100
        0    complete over A 1 failed  -> complete: failed A e1 b1
        0    admit orphan A            -> admit: queued A e1 b1 d100
        101  sweep B orphan/1/1        -> orphan done
        101  admit live A              -> admit: queued A e1 b1 d201
        150  cancel live               -> request_cancel: queued A e1 b1 d201 c150
        1001 evict absent/1            -> absent done
        1002 beat A never/1 absent/1 fenced/1 stranger/1 over/1 orphan/1 live/1 -> \
                 never absent, absent absent, fenced fenced, stranger fenced, over terminal, \
                 orphan orphaned, live renewed d1102 c150
        """
    )


def answer_to(job: Job, epoch: int, refusal: Refusal) -> Answer:
    return hold_answer(job, epoch, refusal).answer


def test_the_first_answer_that_applies_is_given() -> None:
    """Another epoch or owner comes before how the job stands: that hold has ended. (L3, L8)"""
    story(
        """
        0    admit j1 A              -> admit: queued A e1 b1 d100
        101  sweep B j1/1/1          -> j1 done
        102  beat B j1/1             -> j1 fenced (not registered)
        102  beat A j1/2             -> j1 fenced (not registered)
        103  complete j1 A 1 failed  -> heal: failed A e1 b1
        104  beat B j1/1             -> j1 fenced (not registered)
        104  beat A j1/0             -> j1 fenced (not registered)
        104  beat A j1/1             -> j1 terminal (not registered)
        """
    )


def test_an_orphan_is_not_renewed() -> None:
    """A swept job keeps no deadline, whoever beats for it; its beats stand still. (L4, L11)"""
    story(
        """
        0    admit j1 A      -> admit: queued A e1 b1 d100
        101  sweep B j1/1/1  -> j1 done
        110  beat A j1/1     -> j1 orphaned (not registered)
        111  find j1         -> found: orphaned A e1 b1
        """
    )


def test_only_named_holds_are_renewed() -> None:
    """What an instance owns and does not name keeps its deadline. (L8)"""
    story(
        """
        0   admit j1 A  -> admit: queued A e1 b1 d100
        0   admit j2 A  -> admit: queued A e1 b1 d100
        50  beat A j1/1 -> j1 renewed d150 (not registered)
        51  find j2     -> found: queued A e1 b1 d100
        """
    )


def test_an_empty_beat_is_accepted_and_shows_the_instance() -> None:
    """A beat without holds is a beat; the instances table only helps people."""
    story(
        """
        0    beat A           -> nothing (not registered)
        0    register A       -> registered, claims=0
        400  beat A           -> nothing
        900  forget A/0       -> forgot 0
        900  forget A/400     -> forgot 0
        901  forget A/400     -> forgot 1
        902  beat A           -> nothing (not registered)
        """
    )


def test_a_heartbeat_stamps_by_the_jobs_transport() -> None:
    """An http job is renewed for its grace, a process job for the lease ttl, in one beat. (L1)"""
    story(
        """
        0   admit j1 A http     -> admit: queued A e1 b1 d300
        0   admit j2 A          -> admit: queued A e1 b1 d100
        10  beat A j1/1 j2/1    -> j1 renewed d310, j2 renewed d110 (not registered)
        """
    )


def test_renewed_and_orphaned_answers_bear_the_cancel_request() -> None:
    """Whoever may still end the job learns of the request with every beat. (L7)"""
    job = admit(
        "j", "A", Transport.PROCESS, RequeueRule.NEVER, OnOrphan.MARK, None, TERMS, StoreMs(0)
    )
    asked = changed(job, lease=changed(job.lease, cancel_requested_at=StoreMs(5)))
    orphaned = changed(asked, lease=changed(asked.lease, status=Status.ORPHANED, deadline=None))
    assert hold_answer(asked, 1, asked) == r.HoldAnswer(
        "j", 1, Answer.RENEWED, StoreMs(100), StoreMs(5)
    )
    assert hold_answer(orphaned, 1, Refusal.ORPHANED) == r.HoldAnswer(
        "j", 1, Answer.ORPHANED, None, StoreMs(5)
    )
    assert answer_to(asked, 2, Refusal.STALE_EPOCH) is Answer.FENCED
    assert answer_to(asked, 1, Refusal.NOT_OWNER) is Answer.FENCED
    assert answer_to(asked, 1, Refusal.ALREADY_TERMINAL) is Answer.TERMINAL


def test_the_pure_store_locks_no_row() -> None:
    """With one caller at a time nothing is ever locked, whatever is watched."""
    store = MemoryStore(lambda: StoreMs(0))
    beaten = store.execute(c.Heartbeat("A", TERMS, watched=("j1", "j2")))
    assert beaten == r.Beaten(StoreMs(0), (), (), registered=False)
