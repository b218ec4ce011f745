"""Commands that keep what they find keep it in a folder of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.cli.doctors import POLICY
from tests.adapters.cli.places import Place


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The test runs in an empty folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(params=["sqlite", "postgres"])
def store_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A store of each kind, in which nothing is yet."""
    if request.param == "sqlite":
        folder = tmp_path / "store"
        folder.mkdir()
        return Place(f"sqlite:{folder / 'jobs.db'}", None)
    url = request.getfixturevalue("postgres_url")
    return Place(url, request.getfixturevalue("postgres_schema"))


@pytest.fixture
def doctors_config(tmp_path: Path) -> str:
    """The policy whose bounds a doctor judges by."""
    file = tmp_path / "doctors.toml"
    file.write_text(POLICY)
    return str(file)
