"""A campaign on a Dask cluster comes to the very same as on this machine."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.adapters.cli.usage import refusal
from unswept.adapters import cluster
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.main import app, main

distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::UserWarning")


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """A scheduler and a worker of two threads, in this process and on loopback."""
    with distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=2,
        processes=False,
        protocol="tcp://",
        host="127.0.0.1",
        dashboard_address=None,
    ) as started:
        yield started.scheduler_address


def told(*words: str) -> Any:
    result = CliRunner().invoke(app, ["simulate", "--json", *words])
    return result.exit_code, json.loads(result.stdout)


@pytest.mark.parametrize(
    "words",
    [
        ("--seeds", "3", "--hours", "0.3", "--design", "blanket-sweep", "--store", "memory:"),
        ("--seeds", "2", "--hours", "0.05", "--design", "lock-blind"),
    ],
)
def test_it_comes_to_the_same(scheduler: str, words: tuple[str, ...]) -> None:
    """The same totals and the same first violation."""
    assert told(*words, "--scheduler", scheduler) == told(*words, "--workers", "1")


def test_a_scheduler_that_does_not_answer_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 3 within the timeout: nothing was found out."""
    monkeypatch.setattr(cluster, "TIMEOUT_S", 0.2)
    monkeypatch.setattr(
        "sys.argv", ["unswept", "simulate", "--scheduler", "tcp://127.0.0.1:1", "--seeds", "1"]
    )
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == ExitCode.UNDETERMINED
    assert "tcp://127.0.0.1:1 did not answer within 0.2 s" in capsys.readouterr().err


def test_workers_with_other_code_are_refused(
    scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They might give other runs for the same seeds."""
    monkeypatch.setattr(cluster, "code", lambda: threading.current_thread().name)
    with (
        pytest.raises(cluster.ClusterError, match="another version"),
        cluster.on_cluster(scheduler),
    ):
        pass


def test_without_dask_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, with what to install."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    said = refusal(monkeypatch, capsys, "simulate", "--scheduler", "tcp://127.0.0.1:1")
    assert "pip install 'unswept[dask]'" in said


@pytest.mark.parametrize("words", [("--scheduler", "nonsense://x"), ("--scheduler", "")])
def test_an_address_that_is_none_is_refused(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, and the option is named."""
    assert "--scheduler" in refusal(monkeypatch, capsys, "simulate", *words)


def test_a_cluster_and_local_processes_exclude_each_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, and both options are named."""
    words = ("--scheduler", "tcp://127.0.0.1:1", "--workers", "2")
    said = refusal(monkeypatch, capsys, "simulate", *words)
    assert "--scheduler" in said
    assert "--workers" in said
