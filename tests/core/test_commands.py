"""Commands refuse nonsense when they are made, and say what was expected and what was found."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.core.story import TERMS
from unswept.core import commands as c
from unswept.core.checks import MAX_BATCH, MAX_BYTES, MAX_ID_LENGTH, MAX_LABELS
from unswept.core.errors import MisuseError
from unswept.core.job import Process, Terms
from unswept.core.lease import Status
from unswept.core.units import MAX_COUNT, MAX_MS, Ms, StoreMs
from unswept.core.values import Chunk, Request, Result, Stream

Make = Callable[[Any], object]

# Every place for an id, by the name that a message gives it.
IDS: dict[str, list[Make]] = {
    "job_id": [
        lambda v: c.Admit(v, "A", TERMS),
        lambda v: c.Enqueue(v),
        lambda v: c.Withdraw(v, "A"),
        lambda v: c.Hold(v, 1),
        lambda v: c.Start(v, "A", 1, TERMS),
        lambda v: c.Output(v, "A", 1, Chunk(0, Stream.STDOUT, b""), Ms(1)),
        lambda v: c.Complete(v, "A", 1, Status.FAILED),
        lambda v: c.Release(v, "A", 1),
        lambda v: c.RequestCancel(v),
        lambda v: c.Requeue(v, 1),
        lambda v: c.Settle(v, 1, Status.FAILED),
        lambda v: c.ExpireQueued(v),
        lambda v: c.Delay(v, 1, 1, "A"),
        lambda v: c.Target(v, 1, 1, StoreMs(0)),
        lambda v: c.Find(v),
        lambda v: c.ReadRequest(v),
        lambda v: c.ReadOutput(v),
        lambda v: c.ForgetKeys((("p", "k", v),), Ms(1)),
    ],
    "owner": [
        lambda v: c.Admit("j", v, TERMS),
        lambda v: c.Withdraw("j", v),
        lambda v: c.Claim(v, 1, TERMS),
        lambda v: c.Start("j", v, 1, TERMS),
        lambda v: c.Output("j", v, 1, Chunk(0, Stream.STDOUT, b""), Ms(1)),
        lambda v: c.Complete("j", v, 1, Status.FAILED),
        lambda v: c.Release("j", v, 1),
    ],
    "instance": [
        lambda v: c.Register(v),
        lambda v: c.Deregister(v),
        lambda v: c.Heartbeat(v, TERMS),
        lambda v: c.ForgetInstances(((v, StoreMs(0)),), Ms(1)),
    ],
    "watched": [lambda v: c.Heartbeat("A", TERMS, watched=(v,))],
    "job_ids": [lambda v: c.ForgetEvents((v,), Ms(1))],
    "consumer": [lambda v: c.ForgetConsumer(v)],
    "sweeper": [lambda v: c.Sweep(v, ())],
    "actor": [lambda v: c.Delay("j", 1, 1, v)],
    "principal": [
        lambda v: Request(principal=v, request_key="k"),
        lambda v: c.ForgetKeys(((v, "k", "j"),), Ms(1)),
    ],
    "request_key": [
        lambda v: Request(principal="p", request_key=v),
        lambda v: c.ForgetKeys((("p", v, "j"),), Ms(1)),
    ],
    "boot_id": [lambda v: Process(1, 1, v)],
}
OPTIONAL_IDS: list[Make] = [
    lambda v: c.Requeue("j", 1, actor=v),
    lambda v: c.Settle("j", 1, Status.FAILED, v),
    lambda v: c.Suspects(v),
    lambda v: Request(principal=v),
]
LABELS: list[Make] = [
    lambda v: c.Register("A", role=v),
    lambda v: c.Register("A", host=v),
    lambda v: c.Enqueue("j", partition=v),
    lambda v: c.Claim("A", 1, TERMS, partition=v),
]
NO_ID = ["a\0b", "", "x" * (MAX_ID_LENGTH + 1), "\ud800", "a\nb", "\x7f", b"a", 7]


@pytest.mark.parametrize(
    ("name", "make"), [(name, make) for name, makes in IDS.items() for make in makes]
)
def test_what_is_no_id_is_refused(name: str, make: Make) -> None:
    """An id is 1 to 200 printable characters: a NUL once renewed somebody else's job."""
    make("x" * MAX_ID_LENGTH)
    make("o'h é \U0001f600 %_\"")
    for value in NO_ID:
        with pytest.raises(MisuseError, match=name):
            make(value)


@pytest.mark.parametrize("make", OPTIONAL_IDS)
def test_an_id_that_may_be_absent_is_an_id_otherwise(make: Make) -> None:
    """None is allowed where an id may be absent, and nothing else that is no id."""
    make(None)
    for value in NO_ID:
        with pytest.raises(MisuseError):
            make(value)


@pytest.mark.parametrize("make", LABELS)
def test_a_label_may_be_empty(make: Make) -> None:
    """A partition, role or host may be empty, and is printable otherwise."""
    make("")
    for value in set(NO_ID) - {""}:
        with pytest.raises(MisuseError):
            make(value)


# (name, least, greatest, maker)
NUMBERS: list[tuple[str, int, int, Make]] = [
    ("epoch", 0, MAX_COUNT, lambda v: c.Hold("j", v)),
    ("epoch", 0, MAX_COUNT, lambda v: c.Start("j", "A", v, TERMS)),
    ("epoch", 0, MAX_COUNT, lambda v: c.Complete("j", "A", v, Status.FAILED)),
    ("epoch", 0, MAX_COUNT, lambda v: c.Release("j", "A", v)),
    (
        "epoch",
        0,
        MAX_COUNT,
        lambda v: c.Output("j", "A", v, Chunk(0, Stream.STDOUT, b""), Ms(1)),
    ),
    ("epoch", 0, MAX_COUNT, lambda v: c.Requeue("j", v)),
    ("epoch", 0, MAX_COUNT, lambda v: c.Settle("j", v, Status.FAILED)),
    ("epoch", 0, MAX_COUNT, lambda v: c.Delay("j", v, 1, "A")),
    ("epoch", 0, MAX_COUNT, lambda v: c.Target("j", v, 1, StoreMs(0))),
    ("beats", 0, MAX_COUNT, lambda v: c.Delay("j", 1, v, "A")),
    ("beats", 0, MAX_COUNT, lambda v: c.Target("j", 1, v, StoreMs(0))),
    ("chunk", 0, MAX_COUNT, lambda v: Chunk(v, Stream.STDOUT, b"")),
    ("claim_no", 1, MAX_COUNT, lambda v: c.Claim("A", v, TERMS)),
    ("claim_no", 0, MAX_COUNT, lambda v: c.Register("A", claim_no=v)),
    ("limit", 1, 1_000, lambda v: c.Claim("A", 1, TERMS, limit=v)),
    ("limit", 1, c.MAX_PAGE, lambda v: c.Suspects(limit=v)),
    ("limit", 1, c.MAX_PAGE, lambda v: c.ReadEvents(limit=v)),
    ("limit", 1, c.MAX_PAGE, lambda v: c.ReadOutput("j", limit=v)),
    ("limit", 1, c.MAX_PAGE, lambda v: c.LookOverdue(Ms(1), Ms(1), Ms(1), v)),
    ("after", 0, MAX_COUNT, lambda v: c.ReadEvents(after=v)),
    ("first", 0, MAX_COUNT, lambda v: c.ReadOutput("j", first=v)),
    ("priority", -(2**31), 2**31 - 1, lambda v: c.Enqueue("j", priority=v)),
    ("first_seen_at", 0, MAX_MS, lambda v: c.Target("j", 1, 1, v)),
    ("seen_at", 0, MAX_MS, lambda v: c.ForgetInstances((("A", v),), Ms(1))),
    ("dedup_window_ms", 0, MAX_MS, lambda v: c.Admit("j", "A", TERMS, dedup_window_ms=v)),
    ("dedup_window_ms", 0, MAX_MS, lambda v: c.ForgetKeys((), v)),
    ("dedup_window_ms", 0, MAX_MS, lambda v: c.LookOverdue(Ms(1), Ms(1), v)),
    ("retention_ms", 1, MAX_MS, lambda v: c.LookOverdue(v, Ms(1), Ms(1))),
    ("instance_gc_ms", 1, MAX_MS, lambda v: c.LookOverdue(Ms(1), v, Ms(1))),
    (
        "event_retention_ms",
        1,
        MAX_MS,
        lambda v: c.LookOverdue(Ms(1), Ms(1), Ms(1), event_retention_ms=v),
    ),
    ("event_retention_ms", 1, MAX_MS, lambda v: c.ForgetEvents((), v)),
    ("retention_ms", 1, MAX_MS, lambda v: c.Evict((), v)),
    ("instance_gc_ms", 1, MAX_MS, lambda v: c.ForgetInstances((), v)),
    (
        "late_output_ms",
        1,
        MAX_MS,
        lambda v: c.Output("j", "A", 1, Chunk(0, Stream.STDOUT, b""), v),
    ),
    ("lease_ttl_ms", 1, MAX_MS, lambda v: Terms(v, Ms(1), Ms(1), Ms(1))),
    ("http_grace_ms", 1, MAX_MS, lambda v: Terms(Ms(1), v, Ms(1), Ms(1))),
    ("first_beat_ttl_ms", 1, MAX_MS, lambda v: Terms(Ms(1), Ms(1), v, Ms(1))),
    ("confirm_ms", 1, MAX_MS, lambda v: Terms(Ms(1), Ms(1), Ms(1), v)),
    ("pid", 0, MAX_COUNT, lambda v: Process(v, 1, "boot")),
    ("start", 0, MAX_COUNT, lambda v: Process(1, v, "boot")),
    ("exit_code", -MAX_COUNT, MAX_COUNT, lambda v: Result(exit_code=v)),
    ("http_status", -MAX_COUNT, MAX_COUNT, lambda v: Result(http_status=v)),
]


@pytest.mark.parametrize(("name", "least", "greatest", "make"), NUMBERS)
def test_a_number_is_whole_and_within_its_bounds(
    name: str, least: int, greatest: int, make: Make
) -> None:
    """An epoch of -1 or 2^63, a bool, a float and a text are no numbers here; bounds are."""
    make(least)
    make(greatest)
    for value in (least - 1, greatest + 1):
        with pytest.raises(MisuseError, match=rf"{name} must be .* got {value}"):
            make(value)
    for wrong in (True, False, 1.0, "1", float("nan")):
        with pytest.raises(MisuseError, match=f"{name} must be a whole number"):
            make(wrong)


@pytest.mark.parametrize("name", ["queue_deadline", "not_before"])
def test_a_store_time_may_be_absent(name: str) -> None:
    """A queue deadline or a not_before is a store time, or None."""
    for value in (None, 0, MAX_MS):
        c.Enqueue("j", **{name: value})  # type: ignore[arg-type]
    for wrong in (-1, MAX_MS + 1, True, 1.5):
        with pytest.raises(MisuseError, match=name):
            c.Enqueue("j", **{name: wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("transport", lambda v: c.Admit("j", "A", TERMS, transport=v)),
        ("requeue", lambda v: c.Admit("j", "A", TERMS, requeue=v)),
        ("transport", lambda v: c.Enqueue("j", v)),
        ("requeue", lambda v: c.Enqueue("j", requeue=v)),
        ("outcome", lambda v: c.Complete("j", "A", 1, v)),
        ("outcome", lambda v: c.Settle("j", 1, v)),
        ("stream", lambda v: Chunk(0, v, b"")),
        ("terms", lambda v: c.Admit("j", "A", v)),
        ("terms", lambda v: c.Claim("A", 1, v)),
        ("terms", lambda v: c.Start("j", "A", 1, v)),
        ("terms", lambda v: c.Heartbeat("A", v)),
        ("request", lambda v: c.Enqueue("j", request=v)),
        ("result", lambda v: c.Complete("j", "A", 1, Status.FAILED, v)),
        ("process", lambda v: c.Start("j", "A", 1, TERMS, v)),
        ("chunk", lambda v: c.Output("j", "A", 1, v, Ms(1))),
        ("fresh", lambda v: c.Admit("j", "A", TERMS, fresh=v)),
        ("force", lambda v: c.Requeue("j", 1, v)),
    ],
)
def test_a_value_of_another_kind_is_refused(name: str, make: Make) -> None:
    """The text of an enum's member is not the member, and what counts as true is not True."""
    for value in ("completed", "process", "never", "stdout", 1, b"", object()):
        with pytest.raises(MisuseError, match=name):
            make(value)


@pytest.mark.parametrize("outcome", [Status.EXPIRED, Status.QUEUED, Status.ORPHANED])
def test_an_owner_cannot_end_a_job_as_anything(outcome: Status) -> None:
    """An owner completes, fails or cancels; an authority only cancels or fails an orphan."""
    with pytest.raises(MisuseError, match="outcome must be one of canceled, completed, failed"):
        c.Complete("j", "A", 1, outcome)
    with pytest.raises(MisuseError, match="outcome must be one of canceled, failed, got"):
        c.Settle("j", 1, outcome)
    with pytest.raises(MisuseError, match="got completed"):
        c.Settle("j", 1, Status.COMPLETED)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("holds", lambda ids: c.Heartbeat("A", TERMS, tuple(c.Hold(i, 1) for i in ids))),
        ("watched", lambda ids: c.Heartbeat("A", TERMS, watched=tuple(ids))),
        ("targets", lambda ids: c.Sweep("A", tuple(c.Target(i, 1, 1, StoreMs(0)) for i in ids))),
        ("targets", lambda ids: c.Evict(tuple(c.Hold(i, 1) for i in ids), Ms(1))),
        ("seen", lambda ids: c.ForgetInstances(tuple((i, StoreMs(0)) for i in ids), Ms(1))),
        ("seen", lambda ids: c.ForgetKeys(tuple(("p", i, "j") for i in ids), Ms(1))),
        ("job_ids", lambda ids: c.ForgetEvents(tuple(ids), Ms(1))),
    ],
)
def test_a_batch_names_each_row_once(name: str, make: Make) -> None:
    """Two answers to one hold would contradict each other, so the second is named. (L8)"""
    make(())
    make(("b", "a"))
    with pytest.raises(MisuseError, match=rf"{name} must name each row once, .*'a'.* comes twice"):
        make(("a", "b", "a"))


def test_the_same_hold_under_two_epochs_is_twice_too() -> None:
    """A job has one epoch at a time, so a beat names it once. (L8)"""
    with pytest.raises(MisuseError, match="comes twice"):
        c.Heartbeat("A", TERMS, (c.Hold("a", 1), c.Hold("a", 2)))


def test_a_batch_is_a_tuple_of_one_kind_and_bounded() -> None:
    """A list may change under a command, so it is refused; so is a batch without a bound."""
    hold = c.Hold("a", 1)
    with pytest.raises(MisuseError, match="holds must be a tuple"):
        c.Heartbeat("A", TERMS, [hold])  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match="holds must hold Hold only"):
        c.Heartbeat("A", TERMS, (hold, "a"))  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match=f"at most {MAX_BATCH} members, got {MAX_BATCH + 1}"):
        c.Heartbeat("A", TERMS, (hold,) * (MAX_BATCH + 1))
    with pytest.raises(MisuseError, match="seen must hold tuples of 2"):
        c.ForgetInstances((("A",),), Ms(1))  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match="seen must hold tuples of 3"):
        c.ForgetKeys((("p", "k"),), Ms(1))  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match="job_ids must hold str only"):
        c.ForgetEvents((1,), Ms(1))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("payload", lambda v: Request(v)),
        ("body", lambda v: Result(body=v)),
        ("data", lambda v: Chunk(0, Stream.STDOUT, v)),
    ],
)
def test_bytes_are_bytes_up_to_50_mib(name: str, make: Make) -> None:
    """A text is not bytes, and 50 MiB is the most."""
    most = bytes(MAX_BYTES)
    make(most)
    with pytest.raises(MisuseError, match=f"{name} must be at most {MAX_BYTES} bytes"):
        make(most + b"\0")
    for wrong in ("text", bytearray(b"x"), None):
        with pytest.raises(MisuseError, match=f"{name} must be bytes"):
            make(wrong)


def test_a_request_key_needs_a_principal() -> None:
    """A key without a principal would join strangers. (L15)"""
    with pytest.raises(MisuseError, match="request_key needs a principal"):
        Request(request_key="k")


def test_a_message_shows_no_flood() -> None:
    """A long wrong value is cut in the message that refuses it."""
    with pytest.raises(MisuseError) as caught:
        c.Find("\n" * 100_000)
    assert len(str(caught.value)) < 200


def test_labels_are_a_set() -> None:
    """Sorted and each once, whatever collection they came in: equal sets are equal commands."""
    enqueue = c.Enqueue("j", labels=["b", "a", "b"])
    assert enqueue.labels == ("a", "b")
    assert enqueue == c.Enqueue("j", labels=frozenset({"a", "b"}))
    assert c.Claim("A", 1, TERMS, labels=("b", "a")).labels == ("a", "b")
    assert len(c.Enqueue("j", labels=[str(n) for n in range(MAX_LABELS)]).labels) == MAX_LABELS


@pytest.mark.parametrize(
    "make", [lambda v: c.Enqueue("j", labels=v), lambda v: c.Claim("A", 1, TERMS, labels=v)]
)
@pytest.mark.parametrize(
    ("labels", "says"),
    [
        ("gpu", "labels must be a collection of strings, got 'gpu'"),
        (None, "labels must be a collection of strings, got None"),
        (("",), "labels must have 1 to 200 characters"),
        (("a\0",), "labels must be printable characters only"),
        ((1,), "labels must be a string, got 1"),
        ([str(n) for n in range(65)], "labels must be at most 64, got 65"),
    ],
)
def test_labels_that_are_none_are_refused(make: Make, labels: Any, says: str) -> None:
    """The message names what was given and the bound."""
    with pytest.raises(MisuseError, match=re.escape(says)):
        make(labels)
