"""The page in a real Chromium: it works, fetches nothing, and fits a phone.

Skipped where there is no Chromium (Debian: `apt-get install chromium chromium-driver`).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.adapters.report.scripts import TWO_STEP_CLAIM, script
from tests.adapters.report.traces import HOSTILE, lines, write
from unswept.adapters.report.composing import compose
from unswept.adapters.report.page import Subject, page
from unswept.adapters.report.playing import played
from unswept.adapters.report.reading import Line, read

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="there is no chromium with chromedriver here"
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
AXIS, LANE, HEADING, LABELS = 30, 28, 26, 132
"""Where the lanes lie on the canvas, in pixels."""


class Browser:
    """A Chromium, and what a person does with it."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, file: Path) -> None:
        self.driver.get(file.as_uri())
        self.until(lambda: self.ask("document.getElementById('timeline').dataset.ready"))

    def ask(self, expression: str) -> Any:
        return self.driver.execute_script(f"return ({expression})")

    def until(self, happened: Callable[[], object]) -> None:
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, 20).until(lambda _: happened())

    def settle(self) -> None:
        """Two frames: what was asked for is drawn."""
        self.driver.execute_async_script(
            "const done = arguments[0];"
            "requestAnimationFrame(() => requestAnimationFrame(() => done()))"
        )

    def press(self, *keys: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()
        self.settle()

    def click(self, name: str) -> None:
        self.driver.find_element("id", name).click()
        self.settle()

    def touch(self, *places: list[tuple[int, int]]) -> None:
        """Fingers go down at the first places, move to the next ones, and go up."""
        kinds = ["touchStart"] + ["touchMove"] * (len(places) - 1)
        for kind, fingers in zip(kinds, places, strict=True):
            points = [{"x": x, "y": y, "id": n} for n, (x, y) in enumerate(fingers)]
            event = {"type": kind, "touchPoints": points}
            self.driver.execute_cdp_cmd("Input.dispatchTouchEvent", event)
        ended = {"type": "touchEnd", "touchPoints": []}
        self.driver.execute_cdp_cmd("Input.dispatchTouchEvent", ended)
        self.settle()

    def text(self, name: str) -> str:
        return str(self.ask(f"document.getElementById('{name}').textContent"))

    def save(self, kind: str, folder: Path) -> Path:
        """The timeline as a file."""
        file = folder / f"unswept-seed-7.{kind}"
        file.unlink(missing_ok=True)
        self.click(f"save-{kind}")
        self.until(file.exists)
        return file

    def size(self, width: int, height: int) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def prefer(self, scheme: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def pixels(self) -> set[tuple[int, int, int]]:
        """The colours on the timeline's canvas."""
        self.settle()
        drawn = (
            "(() => { const c = document.getElementById('canvas');"
            "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
            "const seen = new Set();"
            "for (let i = 0; i < d.length; i += 4) seen.add(d[i] * 65536 + d[i+1] * 256 + d[i+2]);"
            "return [...seen]; })()"
        )
        return {(each >> 16, each >> 8 & 255, each & 255) for each in self.ask(drawn)}

    def errors(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """The addresses of all that pages fetched, or tried to; the browser's own new tab, which
        newer ones open first and fill at leisure, fetches from the browser."""
        events = (
            json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")
        )
        return [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
            and not event["params"]["documentURL"].startswith("chrome://")
        ]


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory, downloads: Path) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    service = webdriver.chrome.service.Service(str(DRIVER))
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


@pytest.fixture
def browser(chromium: Any) -> Browser:
    there = Browser(chromium)
    there.size(1280, 900)
    there.prefer("light")
    for left_by_the_test_before in (there.errors, there.requests):
        left_by_the_test_before()
    return there


@pytest.fixture
def shown(browser: Browser, tmp_path: Path) -> Callable[[list[Line]], Path]:
    def show(told: list[Line]) -> Path:
        trace = read(write(tmp_path / "run.jsonl", told))
        file = tmp_path / "page.html"
        text = page(Subject(trace, compose(trace), replay="unswept simulate --seed 7"))
        file.write_text(text, encoding="utf-8")
        browser.open(file)
        return file

    return show


Show = Callable[[list[Line]], Path]


def test_the_page_opens_without_errors_and_without_network(browser: Browser, shown: Show) -> None:
    """The one thing that is loaded is the file itself."""
    file = shown(lines())
    for key in ("v", "+", "0"):
        browser.press(key)
    assert browser.errors() == []
    assert [url for url in browser.requests() if not url.startswith("data:")] == [file.as_uri()]


def test_a_violation_is_what_one_sees_first(browser: Browser, shown: Show) -> None:
    """Its sentence, the row before and after, and only the jobs that it touches."""
    shown(lines())
    assert browser.text("moment-title") == "L12 was broken"
    assert "a-1 was swept by b though a lives" in browser.text("moment-sentence")
    status = "[...document.querySelectorAll('#moment-body tr')].map((r) => r.innerText)"
    assert "status\trunning\tqueued" in browser.ask(status)
    assert browser.text("found") == "1 of 2 jobs"
    browser.click("touched")
    assert browser.text("found") == "2 of 2 jobs"


def test_a_script_opens_with_its_violation_and_its_steps_apart(
    browser: Browser, tmp_path: Path
) -> None:
    """Told in one moment, each step can still be seen and walked to."""
    from selenium.webdriver.common.keys import Keys

    trace = played(script(tmp_path, TWO_STEP_CLAIM, "two-step-claim"))
    file = tmp_path / "page.html"
    file.write_text(page(Subject(trace, compose(trace))), encoding="utf-8")
    browser.open(file)
    assert browser.text("moment-title") == "WF was broken"
    assert browser.text("found") == "1 of 1 jobs"
    browser.press("v", Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    assert "0:00:01.000" in browser.text("moment-body")
    assert browser.errors() == []


def test_keys_lead_through_moments_and_lanes(browser: Browser, shown: Show) -> None:
    """Left and right on a lane, up and down between lanes, Enter to the details, v back."""
    from selenium.webdriver.common.keys import Keys

    shown(lines())
    browser.driver.execute_script("document.getElementById('lanes').focus()")
    browser.press(Keys.HOME)
    assert browser.text("moment-title") == "a-1: admit"
    browser.press(Keys.ARROW_RIGHT)
    assert browser.text("moment-title") == "a-1: renew"
    assert "0:01:50.000" in browser.text("moment-body")  # the deadline that it stamped
    browser.press(Keys.ARROW_LEFT)
    assert browser.text("moment-title") == "a-1: admit"
    browser.press(Keys.ARROW_UP)
    assert browser.text("moment-title").startswith("b ")
    browser.press(Keys.ENTER)
    assert browser.ask("document.activeElement.id") == "moment"
    browser.press(Keys.ESCAPE)
    assert browser.ask("document.activeElement.id") == "lanes"
    browser.press("v")
    assert browser.text("moment-title") == "L12 was broken"
    browser.press("?")
    assert browser.ask("document.getElementById('help').open")
    browser.press(Keys.ESCAPE)
    assert not browser.ask("document.getElementById('help').open")
    assert browser.errors() == []


def test_zoom_shows_less_time_and_the_whole_run_again(browser: Browser, shown: Show) -> None:
    """By key and by button; what is drawn changes with it."""
    shown(lines())
    browser.driver.execute_script("document.getElementById('lanes').focus()")
    picture = "document.getElementById('canvas').toDataURL()"
    browser.press("0")
    whole = browser.ask(picture)
    browser.press("+")
    assert browser.ask(picture) != whole
    browser.click("fit")
    assert browser.ask(picture) == whole
    browser.click("zoom-in")
    assert browser.ask(picture) != whole
    browser.click("zoom-out")
    browser.press("-", "0")


def test_hovering_shows_what_changed(browser: Browser, shown: Show) -> None:
    """Over the sweep stands the row before and after."""
    shown(lines())
    left, top, width = browser.ask(
        "(({left, top, width}) => [left, top, width])"
        "(document.getElementById('canvas').getBoundingClientRect())"
    )
    depth = AXIS + 3 * LANE + 2 * HEADING + LANE // 2  # below the faults and two instances
    told = []
    for x in range(LABELS, int(width), 4):
        move = {"type": "mouseMoved", "x": left + x, "y": top + depth}
        browser.driver.execute_cdp_cmd("Input.dispatchMouseEvent", move)
        told.append(str(browser.ask("document.getElementById('tip').innerText")))
    assert any("a-1: renew" in tip and "beats\t1\t2" in tip for tip in told)


def test_two_fingers_zoom_and_one_moves(browser: Browser, shown: Show) -> None:
    """A pinch shows less time around it; a drag other time."""
    browser.size(360, 740)
    shown(lines())
    browser.click("fit")
    picture = "document.getElementById('canvas').toDataURL()"
    whole = browser.ask(picture)
    browser.driver.execute_script("document.getElementById('lanes').scrollIntoView()")
    browser.touch([(180, 100), (220, 100)], [(120, 100), (280, 100)])
    pinched = browser.ask(picture)
    assert pinched != whole
    browser.touch([(200, 100)], [(260, 100)])
    assert browser.ask(picture) not in (pinched, whole)
    assert browser.errors() == []


def test_a_search_leaves_the_jobs_that_it_names(browser: Browser, shown: Show) -> None:
    """By id, owner or status."""
    shown(lines(violated=False))
    assert browser.text("found") == "2 of 2 jobs"
    search = browser.driver.find_element("id", "search")
    for words, found in (("b-1", 1), ("running", 2), ("running b-1", 1), ("nothing", 0)):
        search.clear()
        search.send_keys(words)
        assert browser.text("found") == f"{found} of 2 jobs", words


def test_light_and_dark_are_both_drawn(browser: Browser, shown: Show) -> None:
    """As the system prefers, and as the reader chooses; canvas and page alike."""
    shown(lines())
    paper = "getComputedStyle(document.documentElement).backgroundColor"
    light = browser.ask(paper)
    assert (0xAE, 0xCB, 0xEE) in browser.pixels()
    browser.prefer("dark")
    dark = browser.ask(paper)
    assert dark != light
    assert (0x2C, 0x55, 0x88) in browser.pixels()
    browser.click("theme")
    assert browser.ask(paper) == light
    assert (0xAE, 0xCB, 0xEE) in browser.pixels()
    browser.prefer("light")
    browser.click("theme")
    assert browser.ask(paper) == dark


def test_a_phone_shows_it_without_sideways_scrolling(browser: Browser, shown: Show) -> None:
    """At 360 pixels, and every button is wide enough for a finger."""
    browser.size(360, 740)
    shown(lines())
    assert browser.ask("document.documentElement.scrollWidth") == 360
    assert browser.ask("document.getElementById('canvas').width") <= 360
    smallest = browser.ask(
        "Math.min(...[...document.querySelectorAll('main button')].map((b) => b.offsetHeight))"
    )
    assert smallest >= 34


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_the_timeline_is_saved_from_the_page(
    browser: Browser, shown: Show, downloads: Path, kind: str
) -> None:
    """As a picture that can be read."""
    shown(lines())
    file = browser.save(kind, downloads)
    if kind == "svg":
        root = ElementTree.fromstring(file.read_bytes())
        assert {"a-1", "a · epoch 1", "L12"} <= {element.text for element in root.iter()}
    else:
        image = pytest.importorskip("PIL.Image").open(file).convert("RGB")
        seen = {colour for _, colour in image.getcolors(maxcolors=100_000)}
        assert {(0xAE, 0xCB, 0xEE), (0xB3, 0x15, 0x0B)} <= seen


def test_hostile_words_are_shown_and_not_obeyed(
    browser: Browser, shown: Show, downloads: Path
) -> None:
    """On the timeline, in the details, in the header, and in a saved picture."""
    told = json.loads(json.dumps(lines()).replace("a-1", HOSTILE.replace('"', "")))
    shown(told)
    browser.press("v")
    assert HOSTILE in browser.text("moment-sentence")
    root = ElementTree.fromstring(browser.save("svg", downloads).read_bytes())
    assert any((element.text or "").startswith("</script") for element in root.iter())
    assert browser.ask("document.querySelectorAll('img').length") == 0
    assert browser.errors() == []
