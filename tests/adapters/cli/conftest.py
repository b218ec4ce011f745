"""Commands that keep what they find keep it in a folder of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The test runs in an empty folder."""
    monkeypatch.chdir(tmp_path)
