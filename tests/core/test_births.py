"""Ids are born once (L6), equal requests get one job (L15), and finished jobs stay used (L14)."""

from __future__ import annotations

import pytest

from tests.core.story import story


def test_an_id_that_was_withdrawn_first_is_never_admitted() -> None:
    """A withdrawal that overtakes its admit or enqueue spends the id. (L6)"""
    story(
        """
        0  withdraw j1 A  -> withdrawn
        1  admit j1 A     -> refused spent
        2  enqueue j1     -> refused spent
        3  withdraw j1 A  -> withdrawn
        4  find j1        -> refused spent
        5  events         -> nothing
        """
    )


def test_an_evicted_id_is_never_queued_again() -> None:
    """An enqueue that comes after the eviction of its job does nothing. (L6, L14)"""
    story(
        """
        0     enqueue j1 until=10  -> enqueue: queued - e0 b0
        11    expire j1            -> expire: expired - e1 b0
        1012  evict j1/1           -> j1 done
        1013  enqueue j1           -> refused spent
        1014  admit j1 A           -> refused spent
        1015  withdraw j1 A        -> withdrawn
        1016  evict j1/1           -> j1 repeated
        1017  evict j9/1           -> j9 absent
        1018  complete j1 A 1 completed -> refused spent
        1019  events               -> enqueue/0, expire/1, evict/1
        """
    )


def test_an_id_is_its_first_owners() -> None:
    """The same first owner repeats, whatever became of the job; anybody else is refused. (L6)"""
    story(
        """
        0   admit j1 A requeueable -> admit: queued A e1 b1 d100
        1   admit j1 A             -> repeated: queued A e1 b1 d100
        2   admit j1 B             -> refused id_used: queued A e1 b1 d100
        3   enqueue j1             -> refused id_used: queued A e1 b1 d100
        4   release j1 A 1         -> release: queued - e2 b1
        5   admit j1 A             -> repeated: queued - e2 b1
        6   enqueue j1             -> refused id_used: queued - e2 b1
        7   enqueue j2             -> enqueue: queued - e0 b0
        8   enqueue j2             -> repeated: queued - e0 b0
        9   admit j2 A             -> refused id_used: queued - e0 b0
        10  events                 -> admit/1, release/2, enqueue/0
        """
    )


def test_withdraw_ends_or_asks() -> None:
    """The caller's queued job fails, nobody's is canceled, and a running one is asked. (L7)"""
    story(
        """
        0  admit j1 A     -> admit: queued A e1 b1 d100
        1  withdraw j1 B  -> request_cancel: queued A e1 b1 d100 c1
        2  withdraw j1 A  -> withdraw: failed A e1 b1 c1
        3  withdraw j1 A  -> refused already_terminal: failed A e1 b1 c1
        4  enqueue j2     -> enqueue: queued - e0 b0
        5  withdraw j2 A  -> cancel: canceled - e1 b0 c5
        6  admit j3 A     -> admit: queued A e1 b1 d106
        7  start j3 A 1   -> start: running A e1 b2 d107
        8  withdraw j3 A  -> request_cancel: running A e1 b2 d107 c8
        9  withdraw j3 A  -> repeated: running A e1 b2 d107 c8
        10 start j1 A 1   -> refused already_terminal: failed A e1 b1 c1
        """
    )


@pytest.mark.parametrize(
    ("ending", "joined"),
    [
        ("5 start j1 A 1 -> start: running A e1 b2 d105", "running A e1 b2 d105"),
        ("5 complete j1 A 1 completed -> complete: completed A e1 b1", "completed A e1 b1"),
        ("5 release j1 A 1 -> release: queued - e2 b1", "queued - e2 b1"),
        ("5 complete j1 A 1 failed -> complete: failed A e1 b1", None),
        ("5 complete j1 A 1 canceled -> complete: canceled A e1 b1", None),
        ("5 withdraw j1 A -> withdraw: failed A e1 b1", None),
    ],
)
def test_only_a_completed_or_living_twin_is_handed_out(ending: str, joined: str | None) -> None:
    """An equal request gets a job that is completed, queued or running, and no other. (L15)"""
    reply = f"joined j1: {joined}" if joined else "admit: queued B e1 b1 d110"
    story(
        f"""
        0   admit j1 A key=p/k requeueable  -> admit: queued A e1 b1 d100
        {ending}
        10  admit j2 B key=p/k -> {reply}
        """
    )


def test_a_suspect_or_an_orphan_is_not_handed_out() -> None:
    """A job that may be dead is no answer to a request. (L15)"""
    story(
        """
        0    admit j1 A key=p/k window=900  -> admit: queued A e1 b1 d100
        100  admit j2 B key=p/k window=900  -> joined j1: queued A e1 b1 d100
        101  admit j4 B key=p/k window=900  -> admit: queued B e1 b1 d201
        202  sweep C j4/1/1                 -> j4 done
        203  admit j3 C key=p/k window=900  -> admit: queued C e1 b1 d303
        """
    )


def test_an_expired_twin_is_not_handed_out_and_an_enqueue_is_none() -> None:
    """Only an admit leaves a dedup key; an enqueued job is nobody's twin. (L15)"""
    story(
        """
        0  enqueue j1              -> enqueue: queued - e0 b0
        1  admit j2 A key=p/k      -> admit: queued A e1 b1 d101
        2  admit j3 A              -> admit: queued A e1 b1 d102
        3  admit j4 A              -> admit: queued A e1 b1 d103
        """
    )


def test_a_key_names_its_newest_job() -> None:
    """A job that was asked for afresh takes the key, and an older twin is not found again. (L15)"""
    story(
        """
        0  admit j1 A key=p/k        -> admit: queued A e1 b1 d100
        1  admit j2 A key=p/k fresh  -> admit: queued A e1 b1 d101
        2  admit j3 B key=p/k        -> joined j2: queued A e1 b1 d101
        3  withdraw j2 A             -> withdraw: failed A e1 b1
        4  admit j4 B key=p/k        -> admit: queued B e1 b1 d104
        """
    )


def test_an_admit_that_joined_has_used_its_id() -> None:
    """Delivered again when the twin is no answer any more, it makes no job that nobody holds."""
    story(
        """
        0    admit j1 A key=p/k  -> admit: queued A e1 b1 d100
        1    admit j2 B key=p/k  -> joined j1: queued A e1 b1 d100
        2    complete j1 A 1 failed  -> complete: failed A e1 b1
        3    admit j2 B key=p/k  -> joined j1: failed A e1 b1
        4    admit j2 C key=p/k  -> refused id_used
        5    enqueue j2          -> refused id_used
        6    withdraw j2 B       -> withdrawn
        7    admit j3 C key=p/k  -> admit: queued C e1 b1 d107
        """
    )


def test_dedup_never_joins_strangers() -> None:
    """Another principal's equal key is another request. (L15)"""
    story(
        """
        0  admit j1 A key=p/k  -> admit: queued A e1 b1 d100
        1  admit j2 A key=q/k  -> admit: queued A e1 b1 d101
        2  admit j3 A key=p/m  -> admit: queued A e1 b1 d102
        """
    )


def test_the_own_id_comes_before_the_request_key() -> None:
    """A repeated admit gets its own job, also when the key names another by now. (L6, L15)"""
    story(
        """
        0  admit j1 A key=p/k        -> admit: queued A e1 b1 d100
        1  admit j2 A key=p/k fresh  -> admit: queued A e1 b1 d101
        2  admit j1 A key=p/k        -> repeated: queued A e1 b1 d100
        """
    )


def test_a_key_whose_job_is_gone_is_free() -> None:
    """Eviction leaves the key dangling, and a dangling key joins nothing. (L15)"""
    story(
        """
        0     admit j1 A key=p/k window=9000      -> admit: queued A e1 b1 d100
        1     complete j1 A 1 completed           -> complete: completed A e1 b1
        1001  admit j2 A key=p/k window=9000      -> joined j1: completed A e1 b1
        1002  evict j1/1                          -> j1 done
        1003  admit j2 A key=p/k window=9000      -> refused spent
        1004  admit j3 A key=p/k window=9000      -> admit: queued A e1 b1 d1104
        """
    )


def test_retention_never_touches_what_is_not_terminal() -> None:
    """However old, a job that is queued, running or orphaned stays. (L14)"""
    story(
        """
        0        enqueue j1         -> enqueue: queued - e0 b0
        0        admit j2 A         -> admit: queued A e1 b1 d100
        0        admit j3 A         -> admit: queued A e1 b1 d100
        101      sweep B j3/1/1     -> j3 done
        9000000  evict j1/0 j2/1 j3/1 -> j1 not_terminal, j2 not_terminal, j3 not_terminal
        9000001  overdue            -> nothing
        """
    )


def test_an_enqueue_says_which() -> None:
    """A repeated enqueue changes nothing and says what stands: queued already, running, orphaned,
    finished, canceled, expired; of a job that is gone, that its id is spent."""
    story(
        """
        0     register A                   -> registered, claims=0
        0     enqueue j1 requeueable       -> enqueue: queued - e0 b0
        1     enqueue j1                   -> repeated: queued - e0 b0
        2     claim A 1                    -> got: j1 running A e1 b1 d52
        3     enqueue j1                   -> repeated: running A e1 b1 d52
        53    sweep S j1/1/1               -> j1 done
        54    enqueue j1                   -> repeated: orphaned A e1 b1
        55    complete j1 A 1 completed    -> heal: completed A e1 b1
        56    enqueue j1                   -> repeated: completed A e1 b1
        57    enqueue j2                   -> enqueue: queued - e0 b0
        58    cancel j2                    -> cancel: canceled - e1 b0 c58
        59    enqueue j2                   -> repeated: canceled - e1 b0 c58
        60    enqueue j3 until=60          -> enqueue: queued - e0 b0
        61    expire j3                    -> expire: expired - e1 b0
        62    enqueue j3                   -> repeated: expired - e1 b0
        1056  evict j1/1                   -> j1 done
        1057  enqueue j1                   -> refused spent
        """
    )


def test_an_expiry_says_which() -> None:
    """Expired, now or before; claimed, by whom; or absent, and then nothing is remembered."""
    story(
        """
        0    register A            -> registered, claims=0
        0    enqueue j1 until=9    -> enqueue: queued - e0 b0
        10   expire j1             -> expire: expired - e1 b0
        11   expire j1             -> repeated: expired - e1 b0
        12   enqueue j2 until=19   -> enqueue: queued - e0 b0
        13   claim A 1             -> got: j2 running A e1 b1 d63
        20   expire j2             -> refused already_running: running A e1 b1 d63
        21   expire j3             -> refused absent
        22   enqueue j3            -> enqueue: queued - e0 b0
        """
    )
