"""`unswept chart`: the states of a job and the moves between them, as a diagram."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unswept.core.errors import MisuseError
from unswept.spec.drawings import mermaid, svg

_SUFFIXES = {".svg": svg, ".mmd": mermaid}


def chart(
    out: Annotated[
        Path | None,
        typer.Option(help="Write it to this file, .svg or .mmd; without it Mermaid is printed."),
    ] = None,
) -> None:
    """Draw the table that the transition functions are checked against."""
    if out is None:
        print(mermaid(), end="")
        return
    draw = _SUFFIXES.get(out.suffix)
    if draw is None:
        raise MisuseError(f"--out must end with {' or '.join(_SUFFIXES)}, got {out.name}")
    try:
        out.write_text(draw(), encoding="utf-8")
    except OSError as error:
        raise MisuseError(f"--out cannot be written: {error}") from None
