"""Seeds as tests: `pytest --unswept-seeds N`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from unswept.adapters.sqlite import SqliteStore

pytest_plugins = ("pytester",)


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No plugin is loaded but those that a test names, whether unswept is installed or not."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def run(pytester: pytest.Pytester, *words: str) -> pytest.RunResult:
    return pytester.runpytest("-p", "unswept.adapters.pytest_plugin", *words)


def test_each_seed_is_a_test(pytester: pytest.Pytester) -> None:
    """They stand beside the project's own, under ids of their own."""
    pytester.makepyfile("def test_own(): pass")
    words = ("--unswept-seeds", "3", "--unswept-hours", "0.05", "--unswept-store", "memory:")
    result = run(pytester, "-v", *words)
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["unswept[[]seed-1[]] PASSED*", "unswept[[]seed-3[]] PASSED*"])


def test_one_of_them_can_be_chosen(pytester: pytest.Pytester) -> None:
    """By `-k`, as any test."""
    result = run(pytester, "--unswept-seeds", "3", "--unswept-hours", "0.05", "-k", "seed-2")
    result.assert_outcomes(passed=1, deselected=2)


def test_a_violation_fails_with_its_text_and_its_replay(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The offence, the last events, and the command; no traceback through the simulator."""
    monkeypatch.setattr(SqliteStore, "execute", lambda store, command: None)
    words = ("--unswept-seeds", "1", "--unswept-hours", "0.01", "--unswept-store", "sqlite:")
    result = run(pytester, *words, "--unswept-faults", "none")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "LOCKSTEP was broken by seed 1: *: the store under test answered NoneType, the pure *",
            "The last events before it*",
            "*unswept simulate --store sqlite: --seed 1 --hours 0.01 * --faults none *",
        ]
    )
    assert "Traceback" not in result.stdout.str()


def test_it_is_off_unless_asked_for(pytester: pytest.Pytester) -> None:
    """A project that merely has unswept installed sees nothing of it."""
    pytester.makepyfile("def test_own(): pass")
    run(pytester).assert_outcomes(passed=1)


def test_it_costs_nothing_where_it_is_not_used() -> None:
    """To load the plugin is not to load the simulator, nor the command line."""
    said = (
        "import sys, pytest; before = set(sys.modules); import unswept.adapters.pytest_plugin; "
        "print(*sorted(set(sys.modules) - before))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", said], capture_output=True, text=True, check=True
    ).stdout
    assert ran.split() == ["unswept", "unswept.adapters", "unswept.adapters.pytest_plugin"]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--unswept-seeds", "0"), "--seeds"),
        (("--unswept-seeds", "1", "--unswept-faults", "bogus"), "bogus"),
        (("--unswept-seeds", "1", "--unswept-hours", "0"), "--hours"),
        (("--unswept-seeds", "1", "--unswept-store", "mysql:x"), "mysql:x"),
    ],
)
def test_wrong_words_are_usage_errors(
    pytester: pytest.Pytester, words: tuple[str, ...], named: str
) -> None:
    """pytest's own code for them, and the word is named."""
    result = run(pytester, *words)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert named in result.stderr.str()
