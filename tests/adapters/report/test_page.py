"""The page is whole in itself, fetches nothing, and lets no word of a trace become markup."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.report.traces import HOSTILE, lines, write
from unswept.adapters.report import assets
from unswept.adapters.report.composing import compose
from unswept.adapters.report.page import Subject, page
from unswept.adapters.report.reading import Line, Listed, read
from unswept.simulations.faults import FAULTS
from unswept.spec.laws import BY_ID


class Elements(HTMLParser):
    """Every element of a page with its attributes, and the text of the last of each kind."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.raw: dict[str, str] = {}
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self.raw[tag] = ""
        self.inside = tag

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.raw[self.inside] += data

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def page_of(tmp_path: Path, told: list[Line], **more: Any) -> str:
    trace = read(write(tmp_path / "run.jsonl", told))
    return page(Subject(trace, compose(trace), **more))


def test_the_page_says_what_broke_and_how_to_run_it_again(tmp_path: Path) -> None:
    """Verdict, law with its sentence, offence, digest, seed and the command; without a script."""
    text = page_of(tmp_path, lines(), replay="unswept simulate --seed 7")
    assert "L12 was broken" in text
    assert BY_ID["L12"].sentence in text
    assert "a-1 was swept by b though a lives" in text
    for fact in ("<dd>7</dd>", "<dd>d1</dd>", "0:01:10.000", "unswept simulate --seed 7"):
        assert fact in text


def test_a_run_that_held_says_so_and_has_no_violation_to_go_to(tmp_path: Path) -> None:
    """Nor a box that would hide its jobs."""
    text = page_of(tmp_path, lines(violated=False))
    assert "Every law held" in text
    assert 'id="to-violation"' not in text
    assert re.search(r'<label class="check" hidden>', text)


def test_a_run_that_was_cut_short_is_no_pass(tmp_path: Path) -> None:
    """The verdict is that there is none."""
    text = page_of(tmp_path, lines()[:5])
    assert "Undetermined" in text
    assert "Every law held" not in text


def test_every_law_that_a_run_can_judge_is_listed_with_its_count(tmp_path: Path) -> None:
    """The broken one is marked; one that was never judged shows its 0."""
    text = page_of(tmp_path, lines())
    row = re.search(r'<tr role="row" class=broken><th[^>]*>L12.*?</tr>', text)
    assert row is not None
    assert ">1</td>" in row[0]
    assert re.search(r">F4</th><td[^>]*>0</td>", text)


def test_nothing_in_the_page_leads_elsewhere(tmp_path: Path) -> None:
    """No source, no link, no import, and a policy that would forbid them."""
    text = page_of(tmp_path, lines())
    elements = Elements(text)
    for _, attributes in elements.found:
        assert not {"src", "srcset", "action"} & attributes.keys()
        target = attributes.get("href") or ""
        assert target.startswith(("#", "data:")) or not target
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert not re.search(
        r"@import|\burl\((?!#)|\bfetch\(|XMLHttpRequest|\bimport\b", assets.script()
    )
    (policy,) = (
        each["content"]
        for each in elements.all("meta")
        if each.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    for tag in ("script", "style"):
        hashed = b64encode(sha256(elements.raw[tag].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{hashed}'" in policy


@pytest.mark.parametrize("place", ["offence", "store", "version", "design"])
def test_no_word_of_a_trace_becomes_markup(tmp_path: Path, place: str) -> None:
    """A job, a store or a design may be called anything."""
    told = lines()
    if place == "offence":
        told[-2]["offence"] = HOSTILE
    elif place == "design":
        told[0]["settings"]["design"] = HOSTILE
    else:
        told[0][place] = HOSTILE
    text = page_of(tmp_path, told, replay=HOSTILE)
    assert HOSTILE not in text
    assert not Elements(text).all("img")


def test_the_runs_of_a_folder_are_listed(tmp_path: Path) -> None:
    """With the law that each broke, and which one is shown."""
    cut = Listed(Path("c.jsonl"), 8, None, ended=False)
    listed = (Listed(Path("a.jsonl"), 6, None), Listed(Path("b.jsonl"), 7, "L12"), cut)
    text = page_of(tmp_path, lines(), listed=listed)
    assert re.search(r"seed 6</th><td[^>]*>held</td>", text)
    assert re.search(r"seed 8</th><td[^>]*>undetermined: the trace ends early</td>", text)
    assert re.search(r'seed 7 <span class="badge bad">shown here</span></th><td[^>]*>L12', text)


def test_a_campaign_brings_its_designs(tmp_path: Path) -> None:
    """Design, law, seed and how it fails; one that nothing caught is marked."""
    caught = {"design": "lock-blind", "sentence": "It does.", "law": "L12", "seed": 3}
    missed = {"design": "sly", "sentence": "It hides.", "law": None, "seed": None}
    campaign = {
        "settings": {"design": "unswept"},
        "violation": None,
        "seeds": 20,
        "designs": [{**caught, "offence": "a-1 was swept"}, {**missed, "offence": None}],
        "table": [
            {"design": "unswept", "profile": "all", "heartbeated_jobs_swept": 0, "jobs_swept": 9},
            {"design": "sly", "profile": "none", "heartbeated_jobs_swept": 0, "jobs_swept": 1},
            {"design": "sly", "profile": "all", "heartbeated_jobs_swept": 44, "jobs_swept": 50},
        ],
    }
    text = page_of(tmp_path, lines(violated=False), campaign=campaign)
    assert re.search(
        r"lock-blind</th><td[^>]*>L12</td><td[^>]*>seed 3</td><td[^>]*>It does. a-1", text
    )
    assert re.search(r"class=broken><th[^>]*>sly</th><td[^>]*>nothing</td>", text)
    assert re.search(r">unswept</th><td[^>]*>held</td><td[^>]*>seeds 1 to 20", text)
    assert re.search(r'>unswept</th><td[^>]*>0</td><td role="cell"></td>', text)
    assert re.search(r"class=broken><th[^>]*>sly</th><td[^>]*>44</td><td[^>]*>0</td>", text)


def test_the_same_trace_gives_the_same_page(tmp_path: Path) -> None:
    """Byte for byte."""
    assert page_of(tmp_path, lines()) == page_of(tmp_path, lines())


def test_every_script_of_the_page_is_in_it() -> None:
    """A file that is not listed would be shipped and never run."""
    folder = Path(assets.__file__).parent / "assets"
    assert {file.name for file in folder.glob("*.js")} == set(assets.SCRIPTS)


def test_all_faults_are_told_in_a_word(tmp_path: Path) -> None:
    """A list of some is told whole."""
    told = lines()
    assert "<dt>faults</dt><dd>outage</dd>" in page_of(tmp_path, told)
    told[0]["settings"]["faults"] = list(FAULTS)
    assert f"<dt>faults</dt><dd>all {len(FAULTS)}</dd>" in page_of(tmp_path, told)
