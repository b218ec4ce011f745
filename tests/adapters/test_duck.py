"""DuckDB as the commands use it: in memory, and silent."""

from __future__ import annotations

import pytest

from unswept.adapters.duck import in_memory

LONG = "SELECT count(*) FROM range(3000000) a, range(3) b WHERE a.range * b.range % 7 = 3"


def test_a_long_query_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """Standard output belongs to the command: with `--json`, to whoever reads it."""
    with in_memory() as connection:
        connection.execute("SET progress_bar_time = 1")
        connection.execute("SET threads = 1")
        assert connection.execute(LONG).fetchall() == [(857142,)]
    assert capfd.readouterr() == ("", "")


def test_its_configuration_is_the_callers() -> None:
    """What an audit sets is set."""
    with in_memory({"preserve_insertion_order": "false"}) as connection:
        [(value,)] = connection.execute(
            "SELECT current_setting('preserve_insertion_order')"
        ).fetchall()
    assert value is False
