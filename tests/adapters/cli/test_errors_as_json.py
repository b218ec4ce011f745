"""Whoever asks for one JSON object gets one, also where a command could not do what it is for."""

from __future__ import annotations

import json

import pytest

from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.main import main

OUT_OF_REACH = [("doctor",), ("orphans",), ("sweep",), ("sweep", "--dry-run"), ("job", "j")]


def ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[object, str, str]:
    """The exit code, and what is printed."""
    monkeypatch.setattr("sys.argv", ["unswept", *words])
    with pytest.raises(SystemExit) as stopped:
        main()
    told = capsys.readouterr()
    return stopped.value.code, told.out, told.err


@pytest.mark.parametrize("words", OUT_OF_REACH, ids=" ".join)
def test_a_store_that_is_not_there_is_one_object(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the exit code and why; people find the same words where errors stand."""
    asked = (*words, "--store", "sqlite:no/such.db")
    code, out, err = ended(monkeypatch, capsys, *asked, "--json")
    told = json.loads(out)
    assert (told["verdict"], told["exit_code"]) == ("undetermined", code)
    assert code == ExitCode.UNDETERMINED
    assert "found no file" in told["why"]
    assert told["why"] in err
    assert ended(monkeypatch, capsys, *asked)[1] == ""


def test_words_that_cannot_be_are_one_object(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And no password is in it."""
    url = "mysql://me:tr0ub4dor@host/db"
    code, out, _ = ended(monkeypatch, capsys, "doctor", "--store", url, "--json")
    assert json.loads(out)["exit_code"] == code == ExitCode.USAGE
    assert "tr0ub4dor" not in out
