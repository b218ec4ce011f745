"""Both schemes name the same colours, and words in them can be read (WCAG AA)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from unswept.adapters.report import assets
from unswept.adapters.report.colours import Colour, named, palette

DARK = named(assets.text("dark.css"))
WORDS = (
    ("ink", "paper"),
    ("ink", "panel"),
    ("muted", "paper"),
    ("muted", "panel"),
    ("muted", "lit"),
    ("good", "good-wash"),
    ("bad", "bad-wash"),
    ("open", "open-wash"),
    ("ink", "bad-wash"),
    ("muted", "bad-wash"),
    ("bar-ink", "status-running"),
    ("bar-ink", "status-queued"),
    ("bar-ink", "status-orphaned"),
    ("fault-ink", "fault"),
    ("violation-ink", "violation"),
    ("violation-ink", "bad"),
    ("violation", "panel"),
)
MARKS = ("beat", "sweep", "deadline", "violation", "focus", "status-completed", "status-failed")


def luminance(colour: Colour) -> float:
    def linear(part: int) -> float:
        share = part / 255
        return share / 12.92 if share <= 0.04045 else float(((share + 0.055) / 1.055) ** 2.4)

    return (
        0.2126 * linear(colour.red) + 0.7152 * linear(colour.green) + 0.0722 * linear(colour.blue)
    )


def contrast(one: Colour, other: Colour) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_colours_are_those_of_the_style_sheet() -> None:
    """Plain ones, and those that let something through."""
    assert palette()["status-running"] == Colour(0xAE, 0xCB, 0xEE)
    assert palette()["band"] == Colour(222, 160, 40, 0.15)


def test_both_schemes_have_the_same_colours() -> None:
    """One that only one of them had would be drawn black in the other."""
    assert DARK.keys() == palette().keys()


@pytest.mark.parametrize("scheme", [palette(), DARK], ids=["light", "dark"])
def test_words_and_marks_stand_out(scheme: Mapping[str, Colour]) -> None:
    """Words by 4.5 to 1, marks by 3 to 1."""
    for ink, ground in WORDS:
        assert contrast(scheme[ink], scheme[ground]) >= 4.5, (ink, ground)
    for mark in MARKS:
        assert contrast(scheme[mark], scheme["panel"]) >= 3, mark
