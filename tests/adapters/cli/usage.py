"""How a command refuses words that cannot be."""

from __future__ import annotations

import pytest

from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.main import main


def refusal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> str:
    """What is said of these words, which are refused as a usage error."""
    monkeypatch.setattr("sys.argv", ["unswept", *words])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == ExitCode.USAGE
    return capsys.readouterr().err
