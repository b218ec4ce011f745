"""What records come to: a word for each law and road, what is refuted, and what is a hole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from tests.adapters.evidence.made import OWED, Result, fill, judged_by, record
from unswept.adapters.chaos.fleet.verdict import CHECKS as OF_FLEETS
from unswept.adapters.chaos.verdict import CHECKS as OF_GATEWAYS
from unswept.adapters.evidence.declared import DECLARED
from unswept.adapters.evidence.dossier import Dossier, dossier
from unswept.adapters.evidence.places import places
from unswept.adapters.evidence.promises import LAWS_OF
from unswept.adapters.evidence.records import write
from unswept.adapters.evidence.roads import ROADS, laws_of
from unswept.adapters.evidence.verdicts import Kind, Verdict, together
from unswept.core.errors import MisuseError
from unswept.simulations.designs import DESIGNS
from unswept.spec.laws import BY_ID, LAWS, Judges

ROOT = Path(__file__).resolve().parents[3]


def said(told: Dossier, law: str, road: str) -> Verdict:
    (chapter,) = (each for each in told.chapters if each.law.id == law)
    (verdict,) = (entry.verdict for entry in chapter.entries if entry.road == road)
    return verdict


# Whole ------------------------------------------------------------------------------------------


def test_three_commands_leave_no_hole(tmp_path: Path) -> None:
    """Each law has a word by each road that is owed, with what stands behind it."""
    told = dossier(fill(tmp_path))
    assert (told.holes, told.refuted, told.stale) == ((), (), frozenset())
    assert str(said(told, "L3", "Proofs")) == "PROVED (1 theorem)"
    assert (
        str(said(told, "L3", "Explorer")) == "EXHAUSTED (1,000 states in 1 world, judged 700 times)"
    )
    assert said(told, "L12", "Explorer").kind is Kind.EXHAUSTED
    assert len(said(told, "L12", "Explorer").rows) == 2
    survived = "SURVIVED (20 seeds, 20.0 simulated hours on sqlite:, judged 4,321 times)"
    assert str(said(told, "L3", "Simulator")) == survived
    assert str(said(told, "L3", "Broken designs")) == "CAUGHT (1 broken design, by simulate)"
    assert {row.cells[0] for row in said(told, "L12", "Broken designs").rows} == {
        "without-l12",
        "lock-blind",
    }
    assert said(told, "L3", "Tests").kind is Kind.NAMED
    assert said(told, "L16", "Proofs").kind is Kind.NOT_JUDGED
    assert said(told, "L3", "Real runs").kind is Kind.NOT_RUN


def test_additions_speak_of_the_laws_that_they_can_judge(tmp_path: Path) -> None:
    """And say of the others why they do not."""
    told = dossier(fill(tmp_path, record("chaos"), record("audit"), record("twins")))
    assert told.holes == ()
    assert str(said(told, "L14", "Real runs")) == "SURVIVED (chaos)"
    assert said(told, "L9", "Real runs").kind is Kind.NOT_JUDGED
    assert str(said(told, "L1", "Audit")) == "SURVIVED (12,000 events of jobs.db)"
    assert str(said(told, "L8", "Audit")) == "NOT JUDGED HERE (answers)"
    assert str(said(told, "L1", "Broken twins")) == "CAUGHT (1 broken twin)"


# Holes ------------------------------------------------------------------------------------------


def test_without_records_all_that_is_owed_is_a_hole(tmp_path: Path) -> None:
    """A folder that is not there is one without records."""
    told = dossier(tmp_path / "nowhere")
    for road in (each for each in ROADS if each.owed):
        holes = [each for each in told.holes if each.startswith(f"{road.title}: HOLE")]
        assert len(holes) == 1
        assert holes[0].endswith(f"for {', '.join(judged_by(road.id))}")
    assert not [each for each in told.holes if each.startswith(("Audit", "Real runs", "Broken tw"))]


@pytest.mark.parametrize("missing", OWED)
def test_a_command_that_was_not_run_is_named(tmp_path: Path, missing: str) -> None:
    """By what to run."""
    fill(tmp_path)
    (tmp_path / f"{missing}.json").unlink()
    told = dossier(tmp_path)
    assert any(f"no record of unswept {missing}" in hole for hole in told.holes)


@pytest.mark.parametrize("name", [*OWED, "chaos", "audit", "twins"])
def test_evidence_of_other_sources_is_none(tmp_path: Path, name: str) -> None:
    """Also where nobody owed it: what is shown is fresh."""
    old = record(name)
    changed = {**old.sources, "core": "0" * 64}
    told = dossier(fill(tmp_path, evolve(old, sources=changed)))
    assert told.stale == {name}
    assert any(f"STALE (since unswept {name}: core changed)" in hole for hole in told.holes)


def test_evidence_of_another_version_is_none(tmp_path: Path) -> None:
    """Whatever its sources; and a shape that this version does not know is no error."""
    told = dossier(
        fill(
            tmp_path,
            record(
                "prove",
                lambda found: found.clear(),
                version="0.0.1",
                result={"exit_code": 0, "verdict": "held"},
            ),
        )
    )
    assert "STALE (since unswept prove: version changed)" in told.holes[0]


def drop(result: Result, name: str, law: str) -> None:
    if name == "prove":
        kept = [each for each in result["theorems"] if law not in laws_of(each)]
        result["theorems"] = kept
    elif name == "explore":
        del result["judged"][law]
        del result["table"]["judged"][law]
    else:
        del result["checked"][law]


@pytest.mark.parametrize(
    ("name", "road"), [("prove", "Proofs"), ("explore", "Explorer"), ("simulate", "Simulator")]
)
def test_a_law_that_was_never_judged_is_a_hole(tmp_path: Path, name: str, road: str) -> None:
    """Though all others were."""
    told = dossier(fill(tmp_path, record(name, lambda found: drop(found, name, "L3"))))
    assert told.holes == (f"{road}: HOLE (unswept {name} did not put it to the test) for L3",)


def test_a_law_that_caught_nothing_is_a_hole(tmp_path: Path) -> None:
    """It may be that it cannot catch anything."""

    def uncaught(found: Result) -> None:
        found["designs"] = [each for each in found["designs"] if each["law"] != "L9"]

    told = dossier(fill(tmp_path, record("simulate", uncaught)))
    assert told.holes == (
        "Broken designs: HOLE (unswept simulate did not put it to the test) for L9",
    )


def test_a_run_that_fell_short_is_a_hole(tmp_path: Path) -> None:
    """Whatever it says of each law."""

    def short(found: Result) -> None:
        found |= {"exit_code": 4, "verdict": "coverage_short", "never": ["a late heal"]}
        found["short"] = ["a late heal", "claim under 3 of 30 faults, too few"]
        found["designs"][0]["expected"] = ["L99"]

    told = dossier(fill(tmp_path, record("simulate", short)))
    lacking = "never a late heal; claim under 3 of 30 faults, too few; without-l1 was caught by L1"
    assert told.holes == (f"unswept simulate ended coverage short: {lacking}",)


def blind(found: Result) -> None:
    found["theorems"][0]["broken"] = {"verdict": "proved", "seconds": 1.0}
    found["exit_code"] = 1


def first(found: Result, of: str, verdict: str) -> None:
    found[of][0] |= {"verdict": verdict, "why": "lease=1"}


@pytest.mark.parametrize(
    ("name", "change", "hole"),
    [
        ("prove", lambda r: first(r, "theorems", "undetermined"), "Proofs: UNDETERMINED"),
        ("explore", lambda r: first(r, "searches", "undetermined"), "Explorer: UNDETERMINED"),
        (
            "simulate",
            lambda r: r.update(unequal_seed=4),
            "Simulator: UNDETERMINED (seed 4 gave two",
        ),
        (
            "chaos",
            lambda r: r.update(never=["kills"]),
            "Real runs: UNDETERMINED (unswept chaos: nev",
        ),
        (
            "twins",
            blind,
            "Broken twins: UNDETERMINED",
        ),
    ],
)
def test_what_was_not_found_out_is_no_pass(
    tmp_path: Path, name: str, change: Callable[[Any], None], hole: str
) -> None:
    """It is a hole, and said apart from what was not tried."""
    told = dossier(fill(tmp_path, record(name, change)))
    assert told.undetermined
    assert any(each.startswith(hole) for each in told.holes)
    assert told.refuted == ()


# Refuted ----------------------------------------------------------------------------------------


def violated(found: Result) -> None:
    found |= {"violation": {"law": "L3", "offence": "j1 went back"}, "violated_seed": 7}
    found |= {"replay": "unswept simulate --seed 7", "exit_code": 1, "verdict": "refuted"}


def broken_step(found: Result) -> None:
    broken: Result = {"verdict": "refuted", "laws": ["L3"], "offences": ["L3: j1 went back"]}
    found["table"]["searches"][0] |= broken


def live_job_swept(found: Result) -> None:
    found["searches"][0] |= {"verdict": "refuted", "law": "L12", "trace": [{}]}


def offended(found: Result) -> None:
    found["verdicts"][0] |= {"count": 2, "offences": [{"said": "j1 was swept too soon"}]}


@pytest.mark.parametrize(
    ("name", "change", "refuted"),
    [
        ("prove", lambda r: first(r, "theorems", "refuted"), "L1, Proofs: about_l1, but not for"),
        ("explore", live_job_swept, "L12, Explorer: 1 step forward: after 1 event"),
        ("explore", broken_step, "L3, Explorer: claims, 2 instances, 2 jobs: j1 went back, after"),
        ("simulate", violated, "L3, Simulator: seed 7: j1 went back; unswept simulate --seed 7"),
        (
            "chaos",
            lambda r: r["promises"].update({"no job is lost": ["j1 is gone"]}),
            "L14, Real runs: unswept chaos: j1 is gone",
        ),
        ("audit", offended, "L1, Audit: 2 offences in jobs.db: j1 was swept too soon"),
    ],
)
def test_a_counterexample_is_shown(
    tmp_path: Path, name: str, change: Callable[[Any], None], refuted: str
) -> None:
    """Under its law and its road, with what to replay."""
    told = dossier(fill(tmp_path, record(name, change)))
    assert any(each.startswith(refuted) for each in told.refuted), told.refuted


def test_what_breaks_no_law_is_refuted_all_the_same(tmp_path: Path) -> None:
    """A reply that differs from the pure store's is of no law in the catalogue."""

    def differs(found: Result) -> None:
        violated(found)
        found["violation"]["law"] = "LOCKSTEP"

    told = dossier(fill(tmp_path, record("simulate", differs)))
    assert told.refuted == ("unswept simulate ended refuted: LOCKSTEP: j1 went back",)


def test_a_part_counts_only_against(tmp_path: Path) -> None:
    """One seed that broke a law outweighs twenty that did not; what it judged shows nothing."""
    part = record("simulate", violated, whole=False)
    told = dossier(fill(tmp_path, part))
    assert said(told, "L3", "Simulator").kind is Kind.REFUTED
    assert len(said(told, "L4", "Simulator").rows) == 1
    (tmp_path / "simulate.json").unlink()
    assert said(dossier(tmp_path), "L4", "Simulator").kind is Kind.HOLE


@pytest.mark.parametrize(
    ("name", "change", "road"),
    [
        ("prove", lambda r: first(r, "theorems", "refuted"), "Proofs"),
        ("explore", live_job_swept, "Explorer"),
        ("simulate", violated, "Broken designs"),
    ],
)
def test_what_else_a_part_found_is_no_evidence(
    tmp_path: Path, name: str, change: Callable[[Any], None], road: str
) -> None:
    """It did not range over all, whichever theorem, search or seed it was."""
    write(record(name, change, whole=False), tmp_path)
    assert said(dossier(tmp_path), "L4", road).kind is Kind.HOLE


def test_what_a_part_refuted_of_other_sources_is_forgotten(tmp_path: Path) -> None:
    """It may be mended; whether it is, the whole run of these sources says."""
    told = dossier(fill(tmp_path, record("simulate", violated, whole=False, sources={})))
    assert (told.holes, told.refuted, told.stale) == ((), (), frozenset({"simulate-refuted"}))
    assert [each.stem for each in told.records] == [*sorted(set(OWED))]


@pytest.mark.parametrize(
    ("name", "change", "said_"),
    [
        (
            "prove",
            lambda r: r["theorems"].append(
                {"name": "x_shifts", "law": "shift", "verdict": "undetermined"}
            ),
            "unswept prove ended undetermined: x_shifts is undetermined",
        ),
        (
            "explore",
            lambda r: r["searches"][1].update(verdict="exhausted", law=None),
            "unswept explore ended undetermined: lock-blind was not refuted",
        ),
    ],
)
def test_what_is_of_no_law_is_owed_too(
    tmp_path: Path, name: str, change: Callable[[Any], None], said_: str
) -> None:
    """A theorem on which others rest, a search that must find something."""

    def ended(found: Result) -> None:
        change(found)
        found |= {"exit_code": 3, "verdict": "undetermined"}

    told = dossier(fill(tmp_path, record(name, ended)))
    assert told.undetermined
    assert told.holes == (said_,)


def test_a_damaged_record_is_refused(tmp_path: Path) -> None:
    """By its name: a fresh one has the shape that this version writes."""
    fill(tmp_path, record("simulate", lambda found: found.pop("checked")))
    with pytest.raises(MisuseError, match=r"simulate\.json is damaged"):
        dossier(tmp_path)


def test_several_records_of_one_road_say_the_worst(tmp_path: Path) -> None:
    """Two stores, two campaigns: both are shown."""
    other = record("simulate", lambda found: found.update(store="memory:"), of="memory")
    told = dossier(fill(tmp_path, other))
    assert len(said(told, "L3", "Simulator").rows) == 2
    assert "memory:" in said(told, "L3", "Simulator").said
    write(evolve(other, sources={}), tmp_path)
    assert said(dossier(tmp_path), "L3", "Simulator").kind is Kind.STALE
    assert together(()) is None


# Data -------------------------------------------------------------------------------------------


def test_what_is_declared_is_so() -> None:
    """A declaration for what a road could show would hide a hole."""
    by_id = {road.id: road for road in ROADS}
    for road, laws in DECLARED.items():
        assert by_id[road].owed
        assert set(laws) <= set(BY_ID)
    caught = {law for design in DESIGNS.values() for law in design.caught_by}
    assert not caught & set(DECLARED["designs"])
    steps = {law.id for law in LAWS if law.judges is Judges.STEP}
    assert set(DECLARED["explorer"]) == set(BY_ID) - steps - {"L12", "L13"}
    assert set(DECLARED["simulator"]) == {law.id for law in LAWS if law.judges is Judges.CODE}


def test_no_theorem_is_about_a_law_that_is_declared_not_to_be_proved() -> None:
    """And every other law has one."""
    pytest.importorskip("sqlglot")
    from unswept.adapters.proofs.catalogue import theorems

    proved = {law for each in theorems() for law in laws_of({"law": each.law})}
    assert proved <= set(BY_ID)
    assert proved.isdisjoint(DECLARED["proofs"])
    assert proved | set(DECLARED["proofs"]) == set(BY_ID)


def test_every_promise_of_a_real_run_has_its_laws() -> None:
    """One that is new is noticed."""
    assert set(LAWS_OF) == {*OF_GATEWAYS, *OF_FLEETS}
    assert {law for laws in LAWS_OF.values() for law in laws} <= set(BY_ID)


def test_each_law_is_found_in_the_code() -> None:
    """The line has its id, or the function that judges; L16 alone has no predicate."""
    found = places()
    for law in LAWS:
        sentence, *others = found[law.id]
        lines = (ROOT / sentence.file).read_text("utf-8").splitlines()
        assert f'"{law.id}",' in lines[sentence.line - 1] + lines[sentence.line]
        predicates = [place for place in others if place.what == "predicate"]
        assert bool(predicates) == (law.broken is not None)
        for place in others:
            line = (ROOT / place.file).read_text("utf-8").splitlines()[place.line - 1]
            assert line.startswith("def _") or law.id.lower() in line.lower()
    assert {place.what for place in found["L1"]} == {
        "sentence",
        "predicate",
        "specification in Quint",
        "SQL over traces",
    }
