"""`unswept prove` finds the fault that is planted in a copy of the library, and names the law."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("core", "spec", "simulations", "adapters")

pytest.importorskip("crosshair")
pytest.importorskip("sqlglot")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the library, to be imported from where it lies; what is compiled comes along, and
    fits by its times unless a test edits the source."""
    for folder in FOLDERS:
        shutil.copytree(
            ROOT / folder, tmp_path / "unswept" / folder, ignore=shutil.ignore_patterns(".*")
        )
    return tmp_path


def prove(copy: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the JSON of `unswept prove` on a copy."""
    main = "from unswept.adapters.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", main, "prove", "--json", "--workers", "1", *arguments],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    assert said["exit_code"] == done.returncode
    return done.returncode, said


def edit(copy: Path, file: str, was: str, becomes: str) -> None:
    path = copy / "unswept" / file
    text = path.read_text(encoding="utf-8")
    assert text.count(was) == 1, f"{file} says {text.count(was)} times: {was}"
    path.write_text(text.replace(was, becomes), encoding="utf-8")


@frozen
class Fault:
    """An edit, and the theorem and the law that it breaks."""

    file: str
    was: str
    becomes: str
    theorem: str
    law: str


LEASE = "core/lease.py"
SQL = "adapters/sql/statements.py"
RENEWED = """    if lease.status not in MOVES[Kind.RENEW].leaves:
        return _status_refusal(lease)
"""
COMPLETED = """(L3, L4)\"\"\"
    if refusal := fence(lease, owner, epoch):
        return refusal
    if lease.status not in MOVES[Kind.COMPLETE]"""

FAULTS = {
    "the core's sweep takes a deadline equal to now": Fault(
        LEASE,
        "if lease.deadline >= now:",
        "if lease.deadline > now:",
        "a_sweep_takes_only_the_suspect_it_saw",
        "L2",
    ),
    "and so breaks the promise of the whole ttl": Fault(
        LEASE,
        "if lease.deadline >= now:",
        "if lease.deadline > now:",
        "a_sweep_waits_for_the_whole_ttl",
        "L1",
    ),
    "the SQL's sweep takes a deadline equal to now": Fault(
        SQL,
        "{OWNED} AND deadline < :now",
        "{OWNED} AND deadline <= :now",
        "sqlite_orphan_is_the_core",
        "SQL L1/L2",
    ),
    "complete does not ask for the epoch": Fault(
        LEASE,
        COMPLETED,
        COMPLETED.replace("owner, epoch", "owner, lease.epoch"),
        "complete_is_fenced",
        "L3",
    ),
    "a renewal takes the greater deadline": Fault(
        LEASE,
        "        deadline=StoreMs(now + ttl_ms),\n        ttl_ms=greatest,",
        "        deadline=StoreMs(max(now + ttl_ms, lease.deadline or 0)),\n"
        "        ttl_ms=greatest,",
        "a_renewal_overwrites",
        "L1",
    ),
    "a delay may come twice": Fault(
        LEASE,
        "    if lease.delayed_at is not None:\n        return Refusal.DELAYED_BEFORE\n",
        "",
        "a_delay_is_the_epochs_first",
        "L9",
    ),
    "a renewal forgets a terminal status": Fault(
        LEASE,
        RENEWED,
        RENEWED.replace(".leaves:", ".leaves | {Status.EXPIRED}:"),
        "renew_leaves_what_is_over",
        "L4",
    ),
    "the SQL takes no job whose not_before is NULL": Fault(
        SQL,
        "(not_before IS NULL OR not_before <= :now)",
        "(not_before <= :now)",
        "sqlite_claim_is_the_core",
        "SQL L1/L7",
    ),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_planted_fault_is_refuted(copy: Path, fault: Fault) -> None:
    """The theorem that the fault breaks is refuted with a counterexample, under its law."""
    edit(copy, fault.file, fault.was, fault.becomes)
    code, said = prove(copy, "--only", fault.theorem)
    (theorem,) = said["theorems"]
    assert (code, theorem["verdict"], theorem["law"]) == (1, "refuted", fault.law)
    assert "status" in theorem["why"] or "lease" in theorem["why"]


def test_what_stands_is_proved(copy: Path) -> None:
    """Without a fault the same theorem is proved, and each theorem asked for is counted."""
    code, said = prove(copy, "--only", "sqlite_orphan_is_the_core")
    assert (code, said["verdict"], said["proved"]) == (0, "held", 1)
    assert [theorem["verdict"] for theorem in said["theorems"]] == ["proved"]


def test_what_cannot_be_found_out_is_no_pass(copy: Path) -> None:
    """A theorem that draws texts and compares them is undetermined, and the exit code says so."""
    edit(
        copy,
        "spec/theorems/leases.py",
        "def an_eviction_takes_only_what_is_over(\n",
        "def an_eviction_takes_only_what_is_over(\n    text: str, other: str,\n",
    )
    edit(
        copy,
        "spec/theorems/leases.py",
        "    if rules.may_evict(lease, epoch, finished_at, retention_ms, now) is not None:",
        "    if text == other or rules.may_evict(lease, epoch, finished_at, retention_ms, now):",
    )
    edit(copy, "adapters/proofs/prover.py", "SECONDS: Final = 120.0", "SECONDS: Final = 3.0")
    code, said = prove(copy, "--only", "an_eviction_takes_only_what_is_over")
    assert (code, said["verdict"]) == (3, "undetermined")


def test_twins_are_shown_with_their_counterexamples(copy: Path) -> None:
    """A theorem's witness and its broken twin are both refuted, which is as it must be."""
    code, said = prove(copy, "--twins", "--only", "a_delay_is_the_epochs_first")
    (theorem,) = said["theorems"]
    assert code == 0
    assert "delayed_at" in theorem["twin"]
    assert "delayed_at" in theorem["broken"]["why"]
    assert theorem["witness"]["why"]


def test_a_theorem_that_notices_nothing_is_found_out(copy: Path) -> None:
    """A twin that does not break its theorem makes --twins fail."""
    edit(
        copy,
        "spec/theorems/leases.py",
        'Edit(rules.delay, "lease.delayed_at is not None", "False")',
        'Edit(rules.delay, "lease.delayed_at is not None", "lease.delayed_at")',
    )
    edit(
        copy,
        "spec/theorems/leases.py",
        "return lease.delayed_at is None and after.delayed_at == asked.now",
        "return True",
    )
    code, said = prove(copy, "--twins", "--only", "a_delay_is_the_epochs_first")
    assert (code, said["theorems"][0]["broken"]["verdict"]) == (1, "proved")


def test_without_its_tools_nothing_is_proved(copy: Path) -> None:
    """Where CrossHair is not installed, the verdict is undetermined, not a pass."""
    edit(copy, "adapters/proofs/runs.py", '"crosshair": ', '"no_such_module": ')
    code, said = prove(copy)
    assert (code, said["verdict"]) == (3, "undetermined")
    assert "crosshair-tool" in said["why"]


def test_only_names_what_there_is(copy: Path) -> None:
    """A name that no theorem and no law has is a usage error."""
    main = "from unswept.adapters.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", main, "prove", "--only", "nothing"],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "--only" in done.stderr
