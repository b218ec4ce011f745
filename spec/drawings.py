"""The status table drawn: as Mermaid and as SVG."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from attrs import frozen

from unswept.core.lease import MOVES, TERMINAL, Kind, Move, Status
from unswept.spec.charts import GONE, NOBODYS_QUEUE, STATES, Step, steps_of_chart

NEXT_EPOCH: Final = " +1"
"""Behind a move that ends the hold that was."""
_OVER: Final = "terminal"
"""The terminal statuses, drawn as one."""
_TERMINAL: Final = tuple(status.value for status in Status if status in TERMINAL)
_QUEUED, _RUNNING, _ORPHANED = (
    status.value for status in (Status.QUEUED, Status.RUNNING, Status.ORPHANED)
)


def mermaid(moves: Mapping[Kind, Move] = MOVES) -> str:
    """A state diagram, as documents on the web render it: every step that the chart takes.

    `transitions` can draw its machines so too, but names a state by what Mermaid cannot read.
    """
    lines = ["stateDiagram-v2", f'    state "{NOBODYS_QUEUE}" as {_id(NOBODYS_QUEUE)}']
    lines.append(f"    [*] --> {_id(NOBODYS_QUEUE)}: enqueue")
    lines.append(f"    [*] --> {_QUEUED}: admit")
    told: dict[tuple[str, str], list[str]] = defaultdict(list)
    for step in sorted(steps_of_chart(moves), key=lambda step: _order(step.leaves, step)):
        told[step.leaves, step.reaches].append(_said(step))
    for (leaves, reaches), said in told.items():
        aim = "[*]" if reaches == GONE else _id(reaches)
        lines.append(f"    {_id(leaves)} --> {aim}: {', '.join(said)}")
    return "\n".join(lines) + "\n"


def _id(state: str) -> str:
    return "waiting" if state == NOBODYS_QUEUE else state


def _order(leaves: str, step: Step) -> tuple[int, Step]:
    return STATES.index(leaves), step


def _said(step: Step) -> str:
    return step.kind.value.replace("_", " ") + (NEXT_EPOCH if step.epoch_step else "")


# SVG --------------------------------------------------------------------------------------------


@frozen
class _Box:
    """Where a state stands: its middle, and its size."""

    x: int
    y: int
    wide: int = 170
    high: int = 64


@frozen
class _Arrow:
    """The way from one state to another, and where it is told what goes it."""

    path: str
    label_at: tuple[int, int]


_SIZE: Final = (1080, 680)
_BOXES: Final[Mapping[str, _Box]] = MappingProxyType(
    {
        NOBODYS_QUEUE: _Box(170, 110),
        _QUEUED: _Box(170, 400, high=92),
        _RUNNING: _Box(500, 250, high=92),
        _ORPHANED: _Box(500, 570),
        _OVER: _Box(930, 290, high=250),
        GONE: _Box(930, 600, high=48),
    }
)
_ARROWS: Final[Mapping[tuple[str, str], _Arrow]] = MappingProxyType(
    {
        (NOBODYS_QUEUE, _RUNNING): _Arrow("M255,120 L415,220", (352, 160)),
        (_RUNNING, NOBODYS_QUEUE): _Arrow("M415,250 L230,142", (292, 212)),
        (_QUEUED, NOBODYS_QUEUE): _Arrow("M170,354 L170,142", (170, 250)),
        (_QUEUED, _RUNNING): _Arrow("M255,370 L415,275", (345, 316)),
        (_QUEUED, _ORPHANED): _Arrow("M240,446 L415,550", (322, 494)),
        (_RUNNING, _ORPHANED): _Arrow("M500,296 L500,538", (500, 470)),
        (_ORPHANED, NOBODYS_QUEUE): _Arrow(
            "M415,590 C150,680 20,620 22,380 C24,240 50,160 85,124", (74, 540)
        ),
        (NOBODYS_QUEUE, _OVER): _Arrow("M255,95 C480,40 800,30 900,165", (640, 90)),
        (_QUEUED, _OVER): _Arrow("M255,404 L845,380", (690, 356)),
        (_RUNNING, _OVER): _Arrow("M585,250 L845,262", (715, 232)),
        (_ORPHANED, _OVER): _Arrow("M585,560 C720,550 800,500 860,415", (660, 474)),
        (_OVER, GONE): _Arrow("M930,415 L930,576", (930, 500)),
    }
)
_LINE: Final = 17
_STYLE: Final = """
text { font: 14px system-ui, sans-serif; fill: #1b1f24; text-anchor: middle }
.state { font-weight: 600; font-size: 15px }
.moves { font-size: 12.5px; paint-order: stroke; stroke: #fff; stroke-width: 5px }
.stays { font-size: 12px; fill: #57606a }
rect { fill: #f6f8fa; stroke: #57606a; stroke-width: 1.2 }
rect.over { fill: #eef6ee } rect.lost { fill: #fdf0e6 } rect.gone { stroke-dasharray: 4 4 }
path { fill: none; stroke: #57606a; stroke-width: 1.4; marker-end: url(#tip) }
#tip path { fill: #57606a; stroke: none; marker-end: none }
@media (prefers-color-scheme: dark) {
svg { background: #0d1117 } text { fill: #e6edf3 } .stays { fill: #9ba5b0 }
.moves { stroke: #0d1117 } rect { fill: #161b22; stroke: #8b949e }
rect.over { fill: #12261a } rect.lost { fill: #2d1f12 }
path { stroke: #8b949e } #tip path { fill: #8b949e }
}
"""


def svg(moves: Mapping[Kind, Move] = MOVES) -> str:
    """A picture of the table: every step that its chart takes, and no other.

    The terminal statuses are one box: which of them a move reaches, its label says.
    """
    ways = _ways(steps_of_chart(moves))
    wide, high = _SIZE
    root = Element(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {wide} {high}",
        role="img",
    )
    root.set("aria-label", "The states of a job, and every move between them")
    SubElement(root, "style").text = _STYLE
    tip = SubElement(
        SubElement(root, "defs"),
        "marker",
        id="tip",
        viewBox="0 0 10 10",
        refX="9",
        refY="5",
        markerWidth="8",
        markerHeight="8",
        orient="auto-start-reverse",
    )
    SubElement(tip, "path", d="M0,0 L10,5 L0,10 z")
    for way in ways:
        if way[0] != way[1]:
            SubElement(root, "path", d=_ARROWS[way].path)
    for state, box in _BOXES.items():
        _draw_box(root, state, box, ways.get((state, state), ()))
    for way, labels in ways.items():
        if way[0] != way[1]:
            _write(root, "moves", _ARROWS[way].label_at, labels)
    legend = f"“{NEXT_EPOCH.strip()}”: under the next epoch; what had the old one is fenced"
    _write(root, "stays", (wide // 2, high - 14), (legend,))
    indent(root)
    return tostring(root, encoding="unicode") + "\n"


def _ways(steps: Iterable[Step]) -> dict[tuple[str, str], tuple[str, ...]]:
    """For each arrow its labels: a move, with the terminal statuses that it reaches."""
    found: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for step in sorted(steps):
        leaves, reaches = (_OVER if s in _TERMINAL else s for s in (step.leaves, step.reaches))
        aims = found[leaves, reaches][_said(step)]
        if reaches == _OVER and leaves != _OVER:
            aims.append(step.reaches)
    return {
        way: tuple(f"{move}: {', '.join(aims)}" if aims else move for move, aims in moves.items())
        for way, moves in found.items()
    }


def _draw_box(root: Element, state: str, box: _Box, stays: Sequence[str]) -> None:
    kind = {_OVER: "over", GONE: "gone", _ORPHANED: "lost"}.get(state, "state-box")
    SubElement(
        root,
        "rect",
        {"class": kind, "rx": "10"},
        x=str(box.x - box.wide // 2),
        y=str(box.y - box.high // 2),
        width=str(box.wide),
        height=str(box.high),
    )
    names = _TERMINAL if state == _OVER else (state,)
    apart = 52
    for number, name in enumerate(names):
        y = box.y + apart * number - apart * (len(names) - 1) // 2
        _write(root, "state", (box.x, y - 9 * len(stays) // 2), (name,))
    if stays:
        _write(root, "stays", (box.x, box.y + 16), tuple(_pairs(stays)))


def _pairs(moves: Sequence[str]) -> Iterator[str]:
    """Two to a line."""
    for begin in range(0, len(moves), 2):
        yield ", ".join(moves[begin : begin + 2])


def _write(root: Element, kind: str, at: tuple[int, int], lines: Sequence[str]) -> None:
    x, y = at
    top = y - _LINE * (len(lines) - 1) // 2 + 5
    for number, line in enumerate(lines):
        text = SubElement(root, "text", {"class": kind}, x=str(x), y=str(top + _LINE * number))
        text.text = line
