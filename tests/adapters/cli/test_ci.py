"""What CI reads of a campaign, and how it cuts one: JUnit XML, GitHub, shards, time budgets."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from attrs import evolve
from typer.testing import CliRunner, Result

from tests.adapters.cli.usage import refusal
from unswept.adapters.cli import github, junit
from unswept.adapters.cli import simulate as simulate_module
from unswept.adapters.cli.exit_codes import ExitCode
from unswept.adapters.cli.main import app
from unswept.adapters.cli.simulate_options import Campaign
from unswept.adapters.cli.simulate_report import Report
from unswept.simulations.campaign import Shard, Totals
from unswept.simulations.headline import Cell
from unswept.simulations.marks import Mark
from unswept.simulations.mutants import Verdict
from unswept.simulations.profiles import PROFILES
from unswept.simulations.run import Found, Settings
from unswept.spec.laws import LAWS, Judges

BROKEN = ("--store", "memory:", "--design", "single-observation", "--workers", "1")
UNSHRUNK = (*BROKEN, "--no-shrink")
"""Enough where a script is not looked at."""
SHORT = ("--store", "memory:", "--hours", "0.05", "--workers", "1")
OFFENCE = "j1 was swept, 100% live\nand <held>, by i2 \x00]]> | it"
HELD = Report(Campaign(Settings(1), "memory:"), Totals(seeds=3))
REFUTED = evolve(
    HELD,
    totals=Totals(
        seeds=1,
        violation=Found("L12", OFFENCE, 7, ("0.001  i1 boots", "0.007  VIOLATION")),
        violated_seed=7,
    ),
)

pytestmark = pytest.mark.usefixtures("elsewhere")


def run(*words: str, **env: str | None) -> Result:
    clean: dict[str, str | None] = {"GITHUB_ACTIONS": None, "GITHUB_STEP_SUMMARY": None}
    return CliRunner(env={"COLUMNS": "200", **clean, **env}).invoke(app, list(words))


# JUnit ------------------------------------------------------------------------------------------


def parsed(report: Report) -> Xml.Element:
    return Xml.fromstring(junit.document(report))


def test_a_violation_is_the_one_failure(tmp_path: Path) -> None:
    """With the offence, the last events and the command that replays it."""
    file = tmp_path / "unswept.xml"
    result = run("simulate", *BROKEN, "--junit", str(file))
    assert result.exit_code == ExitCode.REFUTED
    root = Xml.parse(file).getroot()
    [failed] = root.findall("testsuite/testcase[failure]")
    failure = failed.find("failure")
    assert failure is not None
    assert failed.get("name", "").startswith("L12: A fault during which")
    assert failure.get("message", "").startswith("L12 was broken by seed")
    assert failure.text is not None
    assert "The last events before it" in failure.text
    [replay] = re.findall("  (unswept simulate .*)", result.output)
    assert replay in failure.text


def test_the_numbers_of_each_suite_are_those_of_its_cases() -> None:
    """Readers that sum them up and readers that count come to the same; the root has the sums."""
    report = evolve(REFUTED, designs=(Verdict.of("slow-heart"),))
    root = parsed(report)
    sums: Counter[str] = Counter()
    for suite in root.findall("testsuite"):
        found = {
            "tests": len(suite.findall("testcase")),
            "failures": len(suite.findall("testcase/failure")),
            "skipped": len(suite.findall("testcase/skipped")),
        }
        assert {name: int(suite.get(name, "-1")) for name in found} == found
        sums.update(found)
    assert {name: int(root.get(name, "-1")) for name in sums} == dict(sums)
    assert root.get("errors") == "0"
    assert sums["failures"] == 2


def test_every_law_has_its_case_and_unjudged_ones_are_skipped() -> None:
    """A law that never judged is no passed test."""
    judged = Counter({law.id: 1 for law in LAWS if law.id != "L9"})
    root = parsed(evolve(HELD, totals=Totals(seeds=1, checked=judged)))
    names = {case.get("name", "").split(":")[0]: case for case in root.iter("testcase")}
    for law in LAWS:
        if law.judges is not Judges.CODE:
            skipped = names[law.id].find("skipped") is not None
            assert skipped == (law.id == "L9")


def test_what_xml_cannot_hold_is_replaced() -> None:
    """A control character in an offence breaks no reader, and all else comes through."""
    [failure] = parsed(REFUTED).iter("failure")
    assert failure.text is not None
    assert OFFENCE.replace("\x00", "\ufffd") in failure.text


def test_what_a_whole_campaign_owes_fails_where_it_is_missing() -> None:
    """And is skipped where it is not owed."""
    owing = evolve(HELD, totals=Totals(seeds=20))
    [suite] = parsed(owing).findall("testsuite[@name='unswept.coverage']")
    assert suite.get("failures") == str(len(Mark) + len(owing.matrix.thin({})))
    [suite] = parsed(HELD).findall("testsuite[@name='unswept.coverage']")
    assert suite.get("skipped") == str(len(Mark))


def test_a_seed_that_is_not_the_same_twice_fails() -> None:
    """It is a test of its own, with the command."""
    [failure] = parsed(evolve(HELD, totals=Totals(seeds=1, unequal_seed=3))).iter("failure")
    assert failure.get("message") == "seed 3 gave two different runs"
    assert "--seed 3 " in str(failure.text)


# GitHub -----------------------------------------------------------------------------------------


def unescaped(command: str) -> tuple[str, str]:
    """An annotation's title and message, as GitHub's runner reads them."""
    found = re.fullmatch(r"::error title=([^:,\n\r]*)::([^\n\r]*)", command)
    assert found is not None, command

    def back(text: str) -> str:
        return re.sub("%(0A|0D|25|3A|2C)", lambda code: chr(int(code[1], 16)), text)

    return back(found[1]), back(found[2])


def test_an_annotation_says_what_broke_and_how_to_see_it_again() -> None:
    """On one line, whatever stands in the offence."""
    [command] = github.workflow_commands(REFUTED)
    title, message = unescaped(command)
    assert title == "unswept: L12 was broken by seed 7"
    assert message.startswith(OFFENCE)
    assert message.endswith(f"Replay it: {REFUTED.replay}")


def test_all_that_fails_a_build_is_annotated() -> None:
    """A design that nothing caught, what was owed, a seed that differs; and nothing if it held."""
    assert not list(github.workflow_commands(HELD))
    short = evolve(
        HELD,
        totals=Totals(seeds=20, unequal_seed=1),
        designs=(Verdict.of("slow-heart"),),
    )
    titles = [unescaped(command)[0] for command in github.workflow_commands(short)]
    assert titles == [
        "unswept: not deterministic",
        "unswept: slow-heart was not caught",
        "unswept: not everything was put to the test",
    ]


def test_on_github_it_is_on_by_itself(tmp_path: Path) -> None:
    """Annotations come out, and the summary is added to what stands there."""
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    told = run("simulate", *UNSHRUNK, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary))
    assert "\n::error title=unswept%3A L12" in told.output
    text = summary.read_text()
    assert text.startswith("before\n")
    assert "❌ unswept simulate: A law was broken." in text
    assert "--design single-observation" in text


@pytest.mark.parametrize("words", [("--no-github",), ()])
def test_elsewhere_it_is_off(words: tuple[str, ...], tmp_path: Path) -> None:
    """And can be turned off there."""
    actions = "true" if words else None
    summary = str(tmp_path / "s.md")
    told = run("simulate", *UNSHRUNK, *words, GITHUB_ACTIONS=actions, GITHUB_STEP_SUMMARY=summary)
    assert "::error" not in told.output
    assert not (tmp_path / "s.md").exists()


def test_json_stays_one_object_beside_annotations() -> None:
    """They go to the other stream, which GitHub reads as well."""
    told = run("simulate", *UNSHRUNK, "--json", "--github")
    assert json.loads(told.stdout)["exit_code"] == ExitCode.REFUTED
    assert "::error" in told.stderr


def test_the_summary_shows_tables_and_hides_no_markup() -> None:
    """The headline table, the designs, and an offence whose signs are not Markdown's."""
    full = evolve(
        REFUTED,
        designs=(Verdict.of("slow-heart"),),
        table=tuple(Cell("unswept", profile, 0, 2) for profile in PROFILES),
    )
    text = github.summary(full)
    assert f"| design | {' | '.join(PROFILES)} |\n" in text
    assert f"| `unswept` |{' 0 |' * len(PROFILES)}" in text
    assert "| `slow-heart` | **nothing** |" in text
    assert "&lt;held&gt;" in text
    assert f"````text\n{REFUTED.replay}\n````" in text


# Shards and budgets -----------------------------------------------------------------------------


def shard_files(folder: Path, number: int, *words: str) -> list[str]:
    names = []
    for index in range(1, number + 1):
        told = run("simulate", "--json", "--shard", f"{index}/{number}", *words)
        (folder / f"{index}.json").write_text(told.stdout)
        names.append(str(folder / f"{index}.json"))
    return names


@pytest.fixture
def few_designs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two broken designs of one seed each stand for all: what matters is that they are spread."""
    monkeypatch.setattr(simulate_module, "broken_designs", lambda: ["blanket-sweep", "forgetful"])
    monkeypatch.setattr(simulate_module, "SEEDS", 1)


@pytest.mark.usefixtures("few_designs")
def test_shards_are_merged_to_what_one_run_says(tmp_path: Path) -> None:
    """The very same JSON and exit code, in whatever order the files are named."""
    words = ("--seeds", "5", *SHORT)
    whole = run("simulate", "--json", *words)
    parts = shard_files(tmp_path, 3, *words)
    merged = run("merge", "--json", *reversed(parts))
    assert merged.stdout == whole.stdout
    assert merged.exit_code == whole.exit_code
    seeds = [
        [found["outcome"]["seed"] for found in json.loads(Path(part).read_text())["outcomes"]]
        for part in parts
    ]
    assert seeds == [[1, 4], [2, 5], [3]]


def test_a_violation_in_a_shard_is_the_whole_campaigns(tmp_path: Path) -> None:
    """The first one counts, and what other shards ran after it does not; a script is kept where
    the run was."""
    design = ("--store", "memory:", "--design", "two-step-claim", "--workers", "1")
    words = ("--seeds", "6", *design, "--hours", "0.1", "--no-shrink")
    whole = run("simulate", "--json", *words)
    assert whole.exit_code == ExitCode.REFUTED
    merged = run("merge", "--json", *shard_files(tmp_path, 2, *words))
    assert merged.stdout == whole.stdout
    assert merged.exit_code == ExitCode.REFUTED


def test_a_shard_says_that_it_is_one() -> None:
    """In its last lines; quotas do not bind for it."""
    report = evolve(
        HELD,
        campaign=evolve(HELD.campaign, seeds=100, shard=Shard(2, 3)),
        totals=Totals(seeds=33),
    )
    assert report.counted.startswith("33 of 33 in shard 2 of 3 of 100 seeds, ")
    assert report.code is ExitCode.HELD
    whole = evolve(report, campaign=evolve(report.campaign, shard=None))
    assert whole.code is ExitCode.COVERAGE_SHORT


def broken_files() -> dict[str, Any]:
    shard = {"shard": {"index": 1, "count": 2}}
    return {
        "no such file": None,
        "no shard of a campaign": {},
        "damaged, or of another version": shard,
    }


@pytest.mark.parametrize("said", broken_files())
def test_files_that_are_no_shards_are_refused(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, and the file is named."""
    file = tmp_path / "part.json"
    if (content := broken_files()[said]) is not None:
        file.write_text(json.dumps(content))
    told = refusal(monkeypatch, capsys, "merge", str(file))
    assert said in told.lower()
    assert "part.json" in told


def test_shards_that_do_not_belong_together_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One missing, one twice, one of another campaign: each is said."""
    words = ("--seeds", "2", "--design", "slow-heart", *SHORT)
    one, two = shard_files(tmp_path, 2, *words)
    assert "missing: 2" in refusal(monkeypatch, capsys, "merge", one)
    assert "given twice: 1" in refusal(monkeypatch, capsys, "merge", one, one, two)
    other = json.loads(Path(two).read_text())
    other["settings"]["hours"] = 2.0
    Path(two).write_text(json.dumps(other))
    assert "settings differ" in refusal(monkeypatch, capsys, "merge", one, two)


def test_a_time_budget_ends_what_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """The seeds that ran are those of any run; the report says how many of how many."""
    ticks = count(0, 10)  # each look at the clock is ten seconds later
    monkeypatch.setattr("time.monotonic", lambda: float(next(ticks)))
    words = ("--seeds", "50", "--design", "slow-heart", *SHORT)
    short = run("simulate", *words, "--time-budget", "35s", "--json")
    found = json.loads(short.stdout)
    assert 1 <= found["seeds"] < 6
    assert found["seeds_asked"] == 50
    again = run("simulate", "--seeds", str(found["seeds"]), *words[2:], "--json")
    same = json.loads(again.stdout)
    assert {**found, "seeds_asked": 0} == {**same, "seeds_asked": 0}
    assert evolve(HELD, campaign=evolve(HELD.campaign, seeds=9)).counted.startswith("3 of 9 seeds")


def test_a_password_in_a_wrong_place_is_not_repeated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where the word is refused by this command itself."""
    url = "postgresql://ann:hush@host/db"
    for option in ("--faults", "--shard", "--time-budget", "--design", "--junit"):
        assert "hush" not in refusal(monkeypatch, capsys, "simulate", option, url)
