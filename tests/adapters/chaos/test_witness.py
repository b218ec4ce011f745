"""The files of evidence: what is written when, and what a process that is killed leaves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from unswept.adapters.chaos.books import Notebook
from unswept.adapters.chaos.history import History
from unswept.adapters.chaos.plan import POLICY
from unswept.adapters.chaos.records import (
    Act,
    Answered,
    Born,
    Deed,
    Drained,
    End,
    Failed,
    HoldName,
    Line,
    LoopStood,
    Sent,
    Slots,
    Stalled,
    Stamp,
    Work,
    instance_of,
    read,
)
from unswept.adapters.chaos.witness import BatchingWitness, Witness, witnessed
from unswept.adapters.gateway.lane import Batching
from unswept.adapters.sqlite import SqliteStore
from unswept.core import commands as c
from unswept.core.errors import MisuseError, OutcomeUnknownError
from unswept.core.lease import Status
from unswept.core.memory import MemoryStore
from unswept.core.replies import Accepted
from unswept.core.units import MonoMs, StoreMs
from unswept.core.values import Chunk, Result, Stream

R = TypeVar("R")
ME = "gateway-me"
TERMS = POLICY.terms()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with SqliteStore(tmp_path / "jobs.db", durability="normal") as opened:
        yield opened


def history(path: Path) -> History:
    return History(1, tuple(read(path)))


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    """Every kind of line, the same in every part."""
    at = MonoMs(17)
    lines: list[Line] = [
        Born(at, ME),
        Sent(at, 1, "Heartbeat", (HoldName("job", 1), HoldName("other", 2))),
        Answered(
            at,
            1,
            StoreMs(99),
            ("job",),
            (Stamp("job", 1, 120),),
            (End("job", 1, "failed", None, False),),
            ("gone",),
            (0, 1),
        ),
        Failed(at, 2, "StoreUnavailableError"),
        Work(at, "job", 500),
        Stalled(at, MonoMs(3)),
        LoopStood(at),
        Drained(at, True),
        Deed(at, at, Act.KILL, 4),
        Slots(at, 1, 2, 3, 4, 5, 6, True),
    ]
    book = Notebook(tmp_path / "book")
    for line in lines:
        book.write(line)
    book.close()
    assert read(tmp_path / "book") == lines
    assert instance_of(tmp_path / "book") == ME


def test_half_a_line_is_not_read(tmp_path: Path) -> None:
    """A process may be killed in the middle of its last line."""
    book = Notebook(tmp_path / "book")
    book.write(Born(MonoMs(1), ME))
    book.close()
    with (tmp_path / "book").open("ab") as torn:
        torn.write(b'{"is": "Sent", "at": 5')
    assert read(tmp_path / "book") == [Born(MonoMs(1), ME)]


def test_what_the_store_acknowledges_is_in_the_file(tmp_path: Path, store: SqliteStore) -> None:
    """Grants, stamps, ends, chunks and withdrawals of one job's life."""
    witness = Witness(store, Notebook(tmp_path / "book"))
    hold = HoldName("job", 1)
    admitted = witness.execute(c.Admit("job", ME, TERMS))
    started = witness.execute(c.Start("job", ME, 1, TERMS))
    assert isinstance(admitted, Accepted)
    assert isinstance(started, Accepted)
    witness.execute(c.Start("job", ME, 1, TERMS))  # a repeat, which stamps nothing
    beaten = witness.execute(c.Heartbeat(ME, TERMS, (c.Hold("job", 1), c.Hold("no", 1))))
    chunk = Chunk(0, Stream.STDOUT, b"hello")
    witness.execute(c.Output("job", ME, 1, chunk, POLICY.late_output_ms))
    done = witness.execute(c.Complete("job", ME, 1, Status.FAILED, Result(exit_code=7)))
    witness.execute(c.Complete("job", ME, 1, Status.FAILED, Result(exit_code=7)))
    witness.execute(c.Withdraw("never", ME))
    witness.execute(c.Find("job"))
    found = history(tmp_path / "book")
    assert found.granted == {"job"}
    assert [(stamp.at, stamp.deadline) for stamp in found.stamps[hold]] == [
        (reply.at, reply.at + POLICY.lease_ttl_ms) for reply in (admitted, started, beaten)
    ]
    ends = [end for answer in found.answers() for end in answer.ends]
    assert ends == [End("job", 1, "failed", 7, True), End("job", 1, "failed", 7, False)]
    [taken] = [exchange for exchange in found.exchanges if exchange.sent.command == "Output"]
    assert taken.sent.holds == (hold,)
    assert taken.answer is not None
    assert taken.answer.chunks == (0,)
    assert [job for answer in found.answers() for job in answer.withdrawn] == ["never"]
    assert done.at == next(answer.store_at for answer in found.answers() if answer.ends)
    assert "Find" not in {exchange.sent.command for exchange in found.exchanges}


def test_what_is_sent_is_in_the_file_before_it_is_sent(tmp_path: Path, store: SqliteStore) -> None:
    """And what is answered before anybody hears of it."""
    seen: list[list[str]] = []

    class Looking:
        def execute(self, command: c.Command[R]) -> R:
            seen.append([type(line).__name__ for line in read(tmp_path / "book")])
            return store.execute(command)

    witness = Witness(Looking(), Notebook(tmp_path / "book"))
    witness.execute(c.Heartbeat(ME, TERMS))
    witness.execute(c.Heartbeat(ME, TERMS))
    assert seen == [["Sent"], ["Sent", "Answered", "Sent"]]


def test_what_goes_together_is_written_one_by_one(tmp_path: Path, store: SqliteStore) -> None:
    """A store that carries out several commands at once still does so under its witness."""
    witness = witnessed(store, Notebook(tmp_path / "book"))
    assert isinstance(witness, BatchingWitness)
    witness.execute_all([c.Admit("job", ME, TERMS), c.Start("job", ME, 1, TERMS)])
    with pytest.raises(MisuseError):
        witness.execute_all([c.Find("job")])
    found = history(tmp_path / "book")
    assert [exchange.sent.command for exchange in found.exchanges][:2] == ["Admit", "Start"]
    assert found.granted == {"job"}
    assert len(found.stamps[HoldName("job", 1)]) == 2


def test_a_store_without_batches_has_none_under_its_witness(tmp_path: Path) -> None:
    """So that a gateway sends it one command at a time."""
    witness = witnessed(MemoryStore(lambda: StoreMs(0)), Notebook(tmp_path / "book"))
    assert not isinstance(witness, Batching)


def test_an_error_is_no_answer(tmp_path: Path) -> None:
    """Whether the stamp was taken is not known: the file says that it was sent."""

    class Broken:
        def execute(self, command: c.Command[R]) -> R:
            raise OutcomeUnknownError("the connection broke")

    witness = Witness(Broken(), Notebook(tmp_path / "book"))
    with pytest.raises(OutcomeUnknownError):
        witness.execute(c.Heartbeat(ME, TERMS, (c.Hold("job", 1),)))
    found = history(tmp_path / "book")
    assert found.unanswered == {HoldName("job", 1): 1}
    assert found.stamps == {}
    assert found.beats == ()
