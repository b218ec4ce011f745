"""The two pages say the same, are made of nothing but the records, and lead nowhere else."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html import escape
from pathlib import Path

import pytest
from attrs import evolve

from tests.adapters.evidence.made import HOSTILE, Result, fill, record
from unswept.adapters.evidence.dossier import dossier
from unswept.adapters.evidence.limits import NOT_MEANT
from unswept.adapters.evidence.markdown import markdown
from unswept.adapters.evidence.page import page
from unswept.adapters.evidence.records import read, write
from unswept.simulations.scenarios.catalogue import SCENARIOS
from unswept.spec.laws import LAWS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return fill(tmp_path)


def pages(folder: Path) -> tuple[str, str]:
    told = dossier(folder)
    return page(told), markdown(told)


def test_each_law_has_its_chapter(folder: Path) -> None:
    """With an anchor, its sentence, where it is stated, and a line in the table above."""
    html, text = pages(folder)
    for law in LAWS:
        assert f'<section class="chapter" id="{law.id}">' in html
        assert f'<a href="#{law.id}">{law.id}</a></th>' in html
        assert escape(law.sentence) in html
        assert f"\n## {law.id}\n" in text
        assert f"| [{law.id}](#{law.id.lower()}) |" in text
        assert f"> {law.sentence}\n" in text
    assert re.search(r"spec/laws\.py:\d+", html)
    assert re.search(r"`spec/laws\.py:\d+` \(predicate\)", text)


def test_both_say_what_stands_behind_a_word(folder: Path) -> None:
    """Claims, seeds, designs, tests; the words in the table are short."""
    for content in pages(folder):
        for fact in ("L3 holds.", "It breaks L3.", "98,765", "test_locks.py", "No holes:"):
            assert fact in content
    _, text = pages(folder)
    line = next(each for each in text.splitlines() if each.startswith("| [L3](#l3)"))
    assert "| PROVED (1 theorem) | NOT RUN | EXHAUSTED (1,000 states in 1 world) |" in line
    assert "| SURVIVED (20 seeds) |" in line


def test_both_say_what_they_do_not_mean(folder: Path) -> None:
    """Assumptions and bounds, and the track record, from the lists of the roads themselves."""
    html, text = pages(folder)
    for heading, sentences in NOT_MEANT:
        assert f"<h3>{heading}</h3>" in html
        for sentence in sentences:
            assert escape(sentence) in html
            assert f"- {sentence}\n" in text
    assert html.count("<th scope") > len(SCENARIOS)
    assert all(
        each.title.replace("_", "") in text.replace("\\", "").replace("_", "")
        for each in SCENARIOS.values()
    )


def test_holes_and_counterexamples_come_first(folder: Path) -> None:
    """A reader need not look for them."""
    (folder / "prove.json").unlink()
    html, text = pages(folder)
    assert html.index("no record of unswept prove") < html.index('id="laws"')
    assert text.index("no record of unswept prove") < text.index("## Every law by every road")
    assert "there are holes: 1" in html


def test_the_same_records_make_the_same_pages(folder: Path) -> None:
    """Byte for byte."""
    assert pages(folder) == pages(folder)


def test_another_run_of_the_same_sources_differs_in_its_times_alone(folder: Path) -> None:
    """So that a diff of two Markdown pages shows what has changed, and times at its end."""
    _, before = pages(folder)
    again = read(folder / "prove.json")
    for theorem in again.result["theorems"]:
        theorem["seconds"] += 9
    later = evolve(again, began="2027-07-07T07:07:07+00:00", seconds=777.7)
    write(later, folder)
    _, after = pages(folder)
    assert before != after
    head = "\n## Times\n"
    assert before.partition(head)[0] == after.partition(head)[0]
    assert "\n## " not in after.partition(head)[2]
    assert "10.5" in after.partition(head)[2]


def test_a_change_of_sources_shows(folder: Path) -> None:
    """In the hash that the record bears, and in every chapter that leant on it."""
    _, before = pages(folder)
    old = read(folder / "explore.json")
    write(evolve(old, sources={**old.sources, "core": "f" * 64}), folder)
    _, after = pages(folder)
    changed = set(after.splitlines()) - set(before.splitlines())
    assert any("f" * 64 in line for line in changed)
    assert any("STALE" in line for line in changed)


def test_no_word_of_a_record_becomes_markup(folder: Path) -> None:
    """A design or an offence may be called anything."""

    def hostile(found: Result) -> None:
        found["store"] = HOSTILE
        found["designs"][0] |= {"design": HOSTILE, "sentence": HOSTILE, "offence": HOSTILE}
        found["never"] = [HOSTILE]
        found["exit_code"] = 4

    write(record("simulate", hostile, command=HOSTILE), folder)
    html, text = pages(folder)
    assert "<img" not in html
    assert escape(HOSTILE) in html
    assert HOSTILE not in text
    assert "\\<img src=x onerror=alert(1)\\>\\`\\|\\*\\_" in text


def test_nothing_in_the_page_leads_elsewhere(folder: Path) -> None:
    """No source, no link, and a policy that would forbid them."""
    html, _ = pages(folder)
    assert not re.search(r'\b(?:src|srcset|action)="', html)
    assert all(each.startswith(("#", "data:")) for each in re.findall(r'href="([^"]*)"', html))
    assert not re.search(r"https?://|@import|\bfetch\(", html)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    assert policy[1].startswith("default-src 'none';")
    for tag in ("script", "style"):
        content = re.search(rf"<{tag}[^>]*>(.*?)</{tag}>", html, re.DOTALL)
        assert content is not None
        hashed = b64encode(sha256(content[1].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{hashed}'" in policy[1]
