"""The folder of a campaign's traces: made, guarded, and kept as Parquet."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from unswept.adapters.traces.folder import TraceFolder
from unswept.adapters.traces.store import TraceStore
from unswept.adapters.traces.tables import TABLES
from unswept.adapters.urls import SimulatedStore
from unswept.core.errors import MisuseError
from unswept.simulations.campaign import run_seeds, tasks
from unswept.simulations.run import Settings
from unswept.simulations.workers import processes

PARQUET = {f"{table.name}.parquet" for table in TABLES}

_ALL = "FROM trace.{} ORDER BY ALL"
"""DuckDB reads with many threads, and rows come in no order of their own."""


def campaign(folder: TraceFolder, seeds: list[int], workers: int = 1) -> list[str]:
    settings = Settings(seed=1, hours=0.1)
    store = SimulatedStore("memory:")
    folder.prepare()
    todo = tasks(settings, seeds, store, pickle.loads(pickle.dumps(folder)))
    with processes(workers) as crew:
        digests = [checked.outcome.digest for checked in run_seeds(todo, crew)]
    folder.finish(seeds)
    return digests


def names(path: Path) -> set[str]:
    return {entry.name for entry in path.iterdir()}


def test_a_campaign_leaves_a_trace_per_seed_and_parquet(tmp_path: Path) -> None:
    """The traces tell the runs that the campaign reports; Parquet says the same as they."""
    path = tmp_path / "new" / "traces"
    digests = campaign(TraceFolder(path, "memory:"), [3, 1, 2])
    assert names(path) == PARQUET | {f"seed-{seed}.jsonl" for seed in (1, 2, 3)}
    of_seed = dict(zip((3, 1, 2), digests, strict=True))
    with TraceStore(path) as parquet:
        assert dict(parquet.query("SELECT seed, digest FROM ends").rows) == of_seed
        assert set(parquet.query("SELECT store FROM runs").rows) == {("memory:",)}
        by_parquet = {table.name: parquet.query(_ALL.format(table.name)) for table in TABLES}
        with pytest.raises(MisuseError, match="disabled by configuration"):
            parquet.query("SELECT * FROM read_text('/etc/hostname')")
        with pytest.raises(MisuseError, match="one SELECT"):
            parquet.query(f"COPY (SELECT 1) TO '{path}/runs.parquet'")
    for name in PARQUET:
        (path / name).unlink()
    with TraceStore(path) as lines:
        by_lines = {table.name: lines.query(_ALL.format(table.name)) for table in TABLES}
    assert by_parquet == by_lines
    assert by_lines["changes"].rows


def test_the_traces_do_not_depend_on_the_workers(tmp_path: Path) -> None:
    """Byte for byte; and tracing changes no run: the first seed is run again without."""
    for workers in (1, 2):
        campaign(TraceFolder(tmp_path / str(workers), "memory:", "1"), [1, 2], workers)
    for seed in (1, 2):
        one, two = (tmp_path / folder / f"seed-{seed}.jsonl" for folder in ("1", "2"))
        assert one.read_bytes() == two.read_bytes()


def test_traces_of_seeds_that_the_campaign_does_not_report_go(tmp_path: Path) -> None:
    """How far other workers ran ahead of a violation is chance."""
    folder = TraceFolder(tmp_path, "memory:")
    campaign(folder, [1, 2])
    folder.finish([1])
    assert names(tmp_path) == PARQUET | {"seed-1.jsonl"}
    with TraceStore(tmp_path) as traces:
        assert traces.query("SELECT seed FROM runs").rows == ((1,),)
    folder.prepare()
    folder.finish([])
    assert names(tmp_path) == set()


def test_a_folder_with_anything_else_is_left_alone(tmp_path: Path) -> None:
    """Nothing in it goes; earlier traces do, where there is nothing but traces."""
    folder = TraceFolder(tmp_path, "memory:")
    (tmp_path / "seed-9.jsonl").write_text("old")
    (tmp_path / "runs.parquet").write_text("old")
    thesis = tmp_path / "thesis.txt"
    thesis.write_text("mine")
    with pytest.raises(MisuseError, match=r"must name a new folder.* has thesis\.txt"):
        folder.prepare()
    assert names(tmp_path) == {"seed-9.jsonl", "runs.parquet", "thesis.txt"}
    thesis.unlink()
    folder.prepare()
    assert names(tmp_path) == set()


def test_a_folder_with_the_name_of_a_trace_is_left_alone(tmp_path: Path) -> None:
    """No campaign has made it."""
    (tmp_path / "seed-1.jsonl").mkdir()
    with pytest.raises(MisuseError, match=r"must name a new folder.* has seed-1\.jsonl"):
        TraceFolder(tmp_path, "memory:").prepare()


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    """What is there already is named."""
    file = tmp_path / "traces"
    file.write_text("mine")
    with pytest.raises(MisuseError, match="traces cannot be one: File exists"):
        TraceFolder(file, "memory:").prepare()
    assert file.read_text() == "mine"
