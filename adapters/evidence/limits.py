"""What a page without holes does not mean, as its last words: from the roads' own lists."""

from __future__ import annotations

from typing import Final

from unswept.spec.explorer.scope import NOT_SEARCHED
from unswept.spec.theorems.scope import ASSUMED, NOT_COVERED

NOT_MEANT: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("The proofs assume", ASSUMED),
    ("The proofs do not cover", NOT_COVERED),
    ("The explorer does not search", NOT_SEARCHED),
    (
        "The simulator",
        (
            "Shows that no schedule that was tried breaks a law: so many seeds, and no others.",
            "Draws its faults from a list; what is not in it befalls no run.",
        ),
    ),
    (
        "No road covers",
        (
            "Failover to an asynchronous replica, a restored backup, SQLite on a network file "
            "system, two hosts on one SQLite file.",
            "That this page was made by the sources whose hashes it bears: run the commands, make "
            "it again, and compare.",
        ),
    ),
)
"""Headings, and sentences under each."""
