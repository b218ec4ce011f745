"""The timeline without a browser: SVG that is well formed, and PNG that is one."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.adapters.report.traces import HOSTILE, lines, row, write
from unswept.adapters.report.colours import palette
from unswept.adapters.report.composing import compose
from unswept.adapters.report.drawing import MOST_JOBS, draw
from unswept.adapters.report.png import png
from unswept.adapters.report.reading import Line, read
from unswept.adapters.report.shapes import Drawing, Rect, Words
from unswept.adapters.report.svg import svg
from unswept.core.errors import MisuseError


def drawing_of(tmp_path: Path, told: list[Line]) -> Drawing:
    return draw(compose(read(write(tmp_path / "run.jsonl", told))), HOSTILE, "seed 7")


def words(drawing: Drawing) -> set[str]:
    return {shape.text for shape in drawing.shapes if isinstance(shape, Words)}


def test_a_violation_is_drawn_with_the_jobs_that_it_touches(tmp_path: Path) -> None:
    """And with every instance; the other jobs are left to the page."""
    told = words(drawing_of(tmp_path, lines()))
    assert {"a", "b", "a-1", "L12", "a · epoch 1", "clock +1 min"} <= told
    assert "b-1" not in told


def test_a_run_that_held_is_drawn_whole(tmp_path: Path) -> None:
    """All jobs, from its beginning to its end."""
    told = words(drawing_of(tmp_path, lines(violated=False)))
    assert {"a-1", "b-1", "outage", "0:00:00"} <= told
    assert "L12" not in told


def test_a_run_in_which_nothing_happened_is_drawn(tmp_path: Path) -> None:
    """No instance, no job, no fault: the axis alone."""
    head, *_, end = lines(violated=False)
    assert {"faults", "INSTANCES", "JOBS"} <= words(drawing_of(tmp_path, [head, end]))


def test_more_jobs_than_can_be_read_are_counted(tmp_path: Path) -> None:
    """The picture says how many it leaves out."""
    told = lines(violated=False)
    (admit,) = (line for line in told if line.get("n") == 3)
    admit["changes"] = [
        {"job": f"j{n}", "transition": "admit", "before": None, "after": row()} for n in range(100)
    ]
    assert f"and {101 - MOST_JOBS} more jobs" in words(drawing_of(tmp_path, told))


def test_a_lease_is_as_long_as_it_lasts(tmp_path: Path) -> None:
    """Of two jobs over the same axis the one that lasts ten times as long is as much longer."""
    told = lines(violated=False)
    fill = palette()["status-running"]
    shapes = drawing_of(tmp_path, told).shapes
    long, short = (s.width for s in shapes if isinstance(s, Rect) and s.fill == fill)
    assert long / short == pytest.approx(69 / 10)


def test_svg_is_well_formed_whatever_is_written_in_it(tmp_path: Path) -> None:
    """And the same twice."""
    drawing = drawing_of(tmp_path, lines())
    text = svg(drawing)
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(list(root)) == len(drawing.shapes)
    assert HOSTILE in {element.text for element in root}
    assert text == svg(drawing_of(tmp_path, lines()))


def test_png_shows_what_is_drawn(tmp_path: Path) -> None:
    """It is as large as it must be, and has the colours of leases and violations."""
    image = pytest.importorskip("PIL.Image")
    drawing = drawing_of(tmp_path, lines())
    (tmp_path / "picture.png").write_bytes(png(drawing))
    picture = image.open(tmp_path / "picture.png").convert("RGB")
    assert picture.size == (drawing.width * 2, drawing.height * 2)
    seen = {colour for _, colour in picture.getcolors(maxcolors=100_000)}
    for name in ("status-running", "violation", "beat"):
        colour = palette()[name]
        assert (colour.red, colour.green, colour.blue) in seen, name


def test_png_without_pillow_says_what_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what needs nothing."""
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MisuseError, match=r"--svg.*pip install 'unswept\[report\]'"):
        png(drawing_of(tmp_path, lines()))
