"""`unswept chart` as a user calls it."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from unswept.adapters.cli.main import app
from unswept.core.errors import MisuseError
from unswept.spec.drawings import mermaid, svg


def test_it_prints_mermaid() -> None:
    """What a document on the web renders."""
    shown = CliRunner().invoke(app, ["chart"])
    assert (shown.exit_code, shown.stdout) == (0, mermaid())


@pytest.mark.parametrize(("name", "drawn"), [("a.svg", svg()), ("a.mmd", mermaid())])
def test_it_writes_a_file(tmp_path: Path, name: str, drawn: str) -> None:
    """By the file's ending."""
    assert CliRunner().invoke(app, ["chart", "--out", str(tmp_path / name)]).exit_code == 0
    assert (tmp_path / name).read_text(encoding="utf-8") == drawn


@pytest.mark.parametrize(
    ("out", "said"),
    [("a.png", r"must end with \.svg or \.mmd"), ("none/a.svg", "cannot be written")],
)
def test_what_cannot_be_written_is_refused(tmp_path: Path, out: str, said: str) -> None:
    """With the reason."""
    refused = CliRunner().invoke(app, ["chart", "--out", str(tmp_path / out)])
    assert isinstance(refused.exception, MisuseError)
    assert refused.exit_code != 0
    with pytest.raises(MisuseError, match=said):
        raise refused.exception
