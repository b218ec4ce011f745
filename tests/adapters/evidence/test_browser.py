"""The evidence page in a real Chromium: no errors, no network, light and dark, and on a phone.

Skipped where there is no Chromium, like the tests of a run's page.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.evidence.made import fill, record
from tests.adapters.report.test_browser import (
    Browser,
    browser,
    chromium,
    downloads,
    pytestmark,
)
from unswept.adapters.evidence.dossier import dossier
from unswept.adapters.evidence.page import page
from unswept.spec.laws import LAWS

__all__ = ["browser", "chromium", "downloads", "pytestmark"]


@pytest.fixture
def shown(browser: Browser, tmp_path: Path) -> Path:
    """A page with some of everything, opened."""
    told = dossier(fill(tmp_path, record("chaos"), record("audit"), record("prove", sources={})))
    file = tmp_path / "evidence.html"
    file.write_text(page(told), encoding="utf-8")
    browser.driver.get(file.as_uri())
    return file


def test_it_opens_without_errors_and_without_network(
    browser: Browser,
    shown: Path,
) -> None:
    """The one thing that is loaded is the file itself."""
    assert browser.errors() == []
    assert [url for url in browser.requests() if not url.startswith("data:")] == [shown.as_uri()]


def test_each_law_has_a_link_that_leads_to_it(browser: Browser, shown: Path) -> None:
    """Also from elsewhere: the page's address with #L12a opens there."""
    for law in LAWS:
        assert browser.ask(f"document.getElementById('{law.id}').matches('section.chapter')")
    browser.driver.get(f"{shown.as_uri()}#L12a")
    browser.settle()
    assert -5 < browser.ask("document.getElementById('L12a').getBoundingClientRect().top") < 60


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_it_fits(browser: Browser, shown: Path, width: int) -> None:
    """Nothing is wider than the screen, also with every table unfolded."""
    browser.size(width, 780)
    browser.ask("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    browser.settle()
    assert browser.ask("document.documentElement.scrollWidth") <= width


def test_on_a_phone_each_word_says_by_which_road(
    browser: Browser,
    shown: Path,
) -> None:
    """There is no room for the table's head."""
    cell = "document.querySelector('.roads td')"
    label = f"getComputedStyle({cell}, '::before').content"
    assert browser.ask(label) == "none"
    browser.size(360, 780)
    browser.settle()
    assert browser.ask(label) == '"Proofs"'


def test_it_is_light_or_dark_as_the_reader_likes(
    browser: Browser,
    shown: Path,
) -> None:
    """First as the system says, then as the button says."""
    paper = "getComputedStyle(document.documentElement).backgroundColor"
    light = browser.ask(paper)
    browser.prefer("dark")
    dark = browser.ask(paper)
    assert dark != light
    assert browser.text("theme") == "Light"
    browser.click("theme")
    assert browser.ask(paper) == light
