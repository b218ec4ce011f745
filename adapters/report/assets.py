"""The page's own parts: style sheet, scripts and template, as they are shipped with it."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from string import Template
from typing import Final

SCRIPTS: Final = (
    "model.js",
    "scale.js",
    "words.js",
    "painters.js",
    "shapes.js",
    "lanes.js",
    "drawing.js",
    "palette.js",
    "details.js",
    "export.js",
    "timeline.js",
    "interaction.js",
    "main.js",
)
"""In the order in which the one script has them: they share one scope."""

_ASSETS: Final = files("unswept.adapters.report") / "assets"


def text(name: str) -> str:
    """One file."""
    return (_ASSETS / name).read_text(encoding="utf-8")


def template(name: str) -> Template:
    """One file with places to fill."""
    return Template(text(name))


def script() -> str:
    """All that the page runs."""
    return "\n".join(map(text, SCRIPTS))


def style() -> str:
    """The style sheet. Dark is both what the system may prefer and what a reader may choose."""
    dark = text("dark.css")
    return (
        f"{text('page.css')}\n"
        f"@media (prefers-color-scheme: dark) {{ :root:not([data-theme='light']) {{\n{dark}}} }}\n"
        f":root[data-theme='dark'] {{\n{dark}}}\n"
    )


def policy(style_sheet: str, scripts: str) -> str:
    """A content security policy under which these two run, and nothing is ever fetched."""
    return (
        f"default-src 'none'; style-src {_hashed(style_sheet)}; script-src {_hashed(scripts)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hashed(content: str) -> str:
    return f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"
