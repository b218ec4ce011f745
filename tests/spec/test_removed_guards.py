"""Each guard of the core is removed, one at a time, and every road must notice by itself.

`python -m tests.spec.test_removed_guards` prints the matrix as `docs/specification.md` has it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.spec.guards import GUARDS, LEASE_GUARDS, SET_GUARDS, Guard
from tests.spec.mutants import ROOT, Mutant, mutant
from unswept.simulations.conformance import NonconformanceError, history, refute

pytest.importorskip("crosshair")

SPECIFICATION = ("small states", "traces", "steps")
"""It has leases and no sets."""
COLUMNS = ("proofs", *SPECIFICATION, "explorer", "kit")
NOT_ASKED = "–"


def found(broken: Mutant) -> dict[str, str | None]:
    """What each road that speaks of the guard came upon; None: nothing."""
    guard = broken.guard
    roads = [*(["proofs"] if guard.theorems else []), "explorer"]
    if guard in LEASE_GUARDS:
        return broken.judged([*roads, *SPECIFICATION])
    verdicts = broken.judged(roads)
    with broken.stores() as make_store:
        verdicts["kit"] = said(refute(make_store))
    return verdicts


def said(error: NonconformanceError | None) -> str | None:
    """The command whose replies part, or the law that is broken."""
    if error is None:
        return None
    problem, second, *_ = str(error).splitlines()
    return problem.partition(":")[0] if problem.startswith("L") else second.split()[1].split("(")[0]


def row(guard: Guard, roads: dict[str, str | None]) -> str:
    """A row of the matrix."""
    cells = (roads.get(column, NOT_ASKED) or "**nothing**" for column in COLUMNS)
    return f"| {guard.law} | {guard.name} | {guard.matters} | {' | '.join(cells)} |"


HEAD = f"| law | guard | without it | {' | '.join(COLUMNS)} |"


@pytest.mark.parametrize("guard", GUARDS, ids=[guard.name for guard in GUARDS])
def test_without_a_guard_every_road_fails(
    guard: Guard, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Each road that speaks of the guard refutes the core that lacks it, and the page says how."""
    roads = found(mutant(tmp_path, guard))
    line = row(guard, roads)
    record_property(HEAD, line)
    assert None not in roads.values(), line
    assert line in table()


def table() -> list[str]:
    page = (ROOT / "docs/specification.md").read_text("utf-8")
    return [line for line in page.splitlines() if line.startswith("| ")]


def test_the_page_has_a_row_for_each_guard() -> None:
    """The matrix on the page is that of the guards which are removed, in their order."""
    lines = table()
    rows = lines[lines.index(HEAD) + 2 :]
    assert [line.split(" | ")[1] for line in rows] == [guard.name for guard in GUARDS]


def test_enough_guards_are_removed() -> None:
    """Ten and more of the lease's, from each law that one lease keeps, and some of the sets'."""
    assert len(LEASE_GUARDS) >= 10
    assert {guard.law for guard in LEASE_GUARDS} == {"L1", "L2", "L3", "L4", "L7", "L9"}
    assert {guard.law for guard in SET_GUARDS} == {"L5", "L6", "L15", "F1"}


def test_a_core_that_lacks_nothing_is_not_found_out(tmp_path: Path) -> None:
    """What fails is the mutant, not the way to it; of the explorer its own tests show that."""
    nothing = Guard(
        "nothing",
        "L7",
        "lease.py",
        "        return Refusal.CANCEL_PENDING\n    return changed(_stamp",
        "        return Refusal.CANCEL_PENDING\n\n    return changed(_stamp",
        "all is as it was",
        ("request_cancel_keeps_the_first_request",),
    )
    sound = mutant(tmp_path, nothing)
    assert {*sound.judged(["proofs", *SPECIFICATION]).values()} == {None}
    with sound.stores() as make_store:
        assert history(make_store, 1, 60)


def test_a_guard_that_is_gone_is_missed(tmp_path: Path) -> None:
    """A mutant that would change nothing, or more than it says, is not made."""
    lost = Guard("lost", "L1", "lease.py", "no such text", "", "", ())
    with pytest.raises(AssertionError, match="0 times, not once"):
        mutant(tmp_path, lost)


def main() -> None:
    """Print the matrix."""
    print(f"{HEAD}\n|{' --- |' * (len(COLUMNS) + 3)}")
    for guard in GUARDS:
        with TemporaryDirectory() as folder:
            print(row(guard, found(mutant(Path(folder), guard))), flush=True)


if __name__ == "__main__":
    main()
