"""The drawings show every step of the chart, and no other."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from attrs import evolve

from unswept.core.lease import MOVES, Kind, Status
from unswept.spec.charts import GONE, NOBODYS_QUEUE, steps_of_chart
from unswept.spec.drawings import mermaid, svg

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "states.svg"
ARROW = re.compile(r"    (\S+) --> (\S+): (.+)")


def test_mermaid_has_an_arrow_for_each_step_and_no_other() -> None:
    """Read back, the diagram is the chart."""
    names = {"waiting": NOBODYS_QUEUE, "[*]": GONE}
    drawn = set()
    for leaves, reaches, said in ARROW.findall(mermaid()):
        if leaves == "[*]":
            continue
        for move in said.split(", "):
            kind = Kind(move.removesuffix(" +1").replace(" ", "_"))
            step = (kind, names.get(leaves, leaves), names.get(reaches, reaches))
            drawn.add((*step, int(move.endswith(" +1"))))
    steps = steps_of_chart()
    assert drawn == {(step.kind, step.leaves, step.reaches, step.epoch_step) for step in steps}


def test_the_picture_in_the_documents_is_the_table() -> None:
    """`unswept chart --out docs/images/states.svg` draws it anew."""
    assert PICTURE.read_text(encoding="utf-8") == svg()


def test_the_picture_names_each_state_and_each_move() -> None:
    """It is well-formed, and nothing that the chart has is left out."""
    root = ElementTree.fromstring(svg())
    texts = [text.text or "" for text in root.iter("{http://www.w3.org/2000/svg}text")]
    said = " ".join(texts)
    for status in Status:
        assert status.value in texts
    for kind in MOVES:
        assert kind.value.replace("_", " ") in said


@pytest.mark.parametrize("draw", [mermaid, svg])
def test_another_table_gives_another_drawing(draw: Callable[..., str]) -> None:
    """What is drawn is the table that is given, not one that is written down a second time."""
    fewer = {kind: move for kind, move in MOVES.items() if kind is not Kind.WITHDRAW}
    assert "withdraw" in draw(MOVES)
    assert "withdraw" not in draw(fewer)


def test_a_table_with_a_step_that_has_no_place_is_not_drawn() -> None:
    """Rather no picture than one that lacks an arrow."""
    broken = {**MOVES, Kind.START: evolve(MOVES[Kind.START], leaves=frozenset({Status.EXPIRED}))}
    with pytest.raises(KeyError):
        svg(broken)
