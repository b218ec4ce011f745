"""Words that cannot be: each command refuses them as a usage error, by name, and nothing runs."""

from __future__ import annotations

import pytest

from tests.adapters.cli.usage import refusal

REFUSED = [
    (("explore", "--design", "bogus"), "bogus"),
    (("explore", "--workers", "0"), "--workers"),
    (("explore", "--limit", "0"), "--limit"),
    (("explore", "--instances", "0"), "--instances"),
    (("explore", "--leases", "7"), "--leases"),
    (("explore", "--depth", "0"), "--depth"),
    (("explore", "--depth", "3", "--design", "lock-blind"), "--depth"),
    (("explore", "--depth", "3", "--design", "bogus"), "bogus"),
    (("explore", "--windows", "--design", "lock-blind"), "--windows"),
    (("mutants", "bogus"), "bogus"),
    (("mutants", "unswept"), "unswept"),
    (("mutants", "--seeds", "0"), "0"),
    (("scenarios", "C4"), "no scenario C4"),
    (("scenarios", "--store", "mysql://a"), "store must be"),
    (("simulate", "--seeds", "0"), "--seeds"),
    (("simulate", "--seed", "-1"), "--seed"),
    (("simulate", "--hours", "0"), "--hours"),
    (("simulate", "--hours", "nan"), "--hours"),
    (("simulate", "--instances", "0"), "--instances"),
    (("simulate", "--runners", "-1"), "--runners"),
    (("simulate", "--workers", "0"), "--workers"),
    (("simulate", "--faults", "outage,bogus"), "bogus"),
    (("simulate", "--design", "bogus"), "bogus"),
    (("simulate", "--store", "mysql:x"), "mysql:x"),
    (("simulate", "--shard", "0/3"), "--shard"),
    (("simulate", "--shard", "4/3"), "--shard"),
    (("simulate", "--shard", "1"), "--shard"),
    (("simulate", "--shard", "1/2", "--seed", "3"), "--seed"),
    (("simulate", "--time-budget", "10"), "--time-budget"),
    (("simulate", "--time-budget", "0s"), "--time-budget"),
    (("simulate", "--junit", "no/such/folder/x.xml"), "got no/such/folder/x.xml"),
    (("simulate", "--jobs", "0"), "--jobs"),
    (("simulate", "--job-minutes", "nan"), "--job-minutes"),
]


@pytest.mark.parametrize(("words", "named"), REFUSED, ids=[" ".join(words) for words, _ in REFUSED])
def test_wrong_words_are_usage_errors(
    words: tuple[str, ...],
    named: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit 2, and whatever is wrong is named."""
    assert named in refusal(monkeypatch, capsys, *words)
