"""What a run leaves behind, and what it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from tests.adapters.evidence.made import record
from unswept.adapters.cli import keep_record
from unswept.adapters.cli.keep_record import Keeper
from unswept.adapters.evidence import records
from unswept.adapters.evidence.records import VARIABLE, folder, read, read_all, write
from unswept.core.errors import MisuseError

HELD: dict[str, Any] = {"verdict": "held", "exit_code": 0}
REFUTED: dict[str, Any] = {"verdict": "refuted", "exit_code": 1}
SHORT: dict[str, Any] = {"verdict": "coverage_short", "exit_code": 4}


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of this test's records."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "kept"))
    return tmp_path / "kept"


def names(kept: Path) -> list[str]:
    return sorted(path.name for path in kept.iterdir()) if kept.exists() else []


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Also its kind, and a fresh one is fresh."""
    told = record("prove", of="sqlite")
    path = write(told, tmp_path)
    assert path.name == "prove-sqlite.json"
    assert read(path) == told
    assert told.changed() == ()
    assert evolve(told, version="0").changed() == ("version",)
    assert [*read_all(tmp_path)] == [told]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no JSON"),
        ("[]", "is no record of format 1"),
        ('{"format": 2}', "is no record of format 1"),
        ('{"format": 1, "name": "prove"}', "is damaged"),
    ],
)
def test_a_file_that_is_no_record_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """Its name is said, for it is to be removed."""
    (tmp_path / "odd.json").write_text(text)
    with pytest.raises(MisuseError, match=rf"odd\.json {message}"):
        read_all(tmp_path)


def test_records_lie_in_this_directory_or_where_the_variable_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The variable is for those who run the commands elsewhere."""
    monkeypatch.delenv(VARIABLE)
    assert folder() == records.FOLDER
    monkeypatch.setenv(VARIABLE, "/elsewhere")
    assert folder() == Path("/elsewhere")


def test_a_whole_run_is_kept_with_what_it_was_and_when(kept: Path) -> None:
    """And no password in it."""
    Keeper("audit", "unswept audit postgresql://me:pw@h/d", "postgresql://me:pw@h/d").keep(HELD)
    (told,) = read_all(kept)
    assert told.command == "unswept audit postgresql://me@h/d"
    assert told.stem == "audit-postgresql-me-h-d"
    assert "pw" not in (kept / f"{told.stem}.json").read_text()
    assert (told.whole, told.result, told.changed()) == (True, HELD, ())
    assert told.began.endswith("+00:00")


def test_a_part_is_kept_only_where_it_refutes(kept: Path) -> None:
    """Under a name of its own, beside the whole."""
    Keeper("prove", "unswept prove").keep(HELD)
    Keeper("prove", "unswept prove --only L3").keep(HELD, whole=False)
    assert names(kept) == ["prove.json"]
    Keeper("prove", "unswept prove --only L3").keep(REFUTED, whole=False)
    assert names(kept) == ["prove-refuted.json", "prove.json"]
    assert read(kept / "prove.json").command == "unswept prove"


@pytest.mark.parametrize(
    ("result", "weight", "stays"),
    [(HELD, 5.0, True), (SHORT, 5.0, True), (REFUTED, 5.0, False), (HELD, 20.0, False)],
)
def test_less_of_the_same_replaces_nothing_unless_it_refutes(
    kept: Path,
    capsys: pytest.CaptureFixture[str],
    result: dict[str, Any],
    weight: float,
    stays: bool,
) -> None:
    """A thousand seeds are not forgotten for twenty, and that is said."""
    Keeper("simulate", "the first").keep(HELD, weight=10.0)
    Keeper("simulate", "the second").keep(result, weight=weight)
    assert read(kept / "simulate.json").command == ("the first" if stays else "the second")
    assert ("tried more of the same sources" in capsys.readouterr().err) == stays


def test_less_of_other_sources_replaces_more_of_the_old(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evidence of what is no more weighs nothing."""
    Keeper("simulate", "the first").keep(HELD, weight=10.0)
    monkeypatch.setattr(keep_record, "hashes", lambda name: {"core": "other"})
    Keeper("simulate", "the second").keep(HELD, weight=1.0)
    assert read(kept / "simulate.json").command == "the second"


def test_what_ran_while_the_sources_changed_is_not_kept(
    kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody knows of which sources it was."""
    keeper = Keeper("prove", "unswept prove")
    monkeypatch.setattr(keep_record, "hashes", lambda name: {"core": "other"})
    keeper.keep(HELD)
    assert names(kept) == []
    assert "the sources changed while it ran" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is said, for the page will have a hole."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "file" / "kept"))
    Keeper("prove", "unswept prove").keep(HELD)
    assert "could not be kept for the evidence page" in capsys.readouterr().err
