"""The guide as a site: it builds without network or warning, and its reference is whole."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

griffe: Any = pytest.importorskip("griffe", reason="needs the extra `docs`")
pytest.importorskip("mkdocs", reason="needs the extra `docs`")

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "docs/reference"
FETCHING = "script|link|img|iframe|source|video|audio|object"


def hook() -> Any:
    spec = importlib.util.spec_from_file_location("docs_hook", ROOT / ".ci/docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; a proxy that answers nobody stands in for the network."""
    out = tmp_path_factory.mktemp("site")
    names = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
    deaf = dict.fromkeys(names, "http://[::1]:9")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)],
        cwd=ROOT,
        env={**os.environ, **deaf, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr, built.stderr
    return out


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    """No script, style, font, picture or frame of a page has an address with a host."""
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for tag in re.findall(rf"<(?:{FETCHING})\b[^>]*>", text):
            assert not re.search(r"\b(?:src|href|data|srcset)=[\"']?(?:https?:)?//", tag), (
                page,
                tag,
            )
        # The theme would load what draws these from elsewhere.
        assert not re.search(r"class=[\"']?[^\"'>]*\bmermaid\b", text), page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(?:https?:)?//", sheet.read_text(encoding="utf-8")), sheet


def test_every_page_of_the_reference_has_its_names(site: Path) -> None:
    """Each public name has an anchor in the built page, to be linked to."""
    for page, asked in directives():
        html = (site / "reference" / page.stem / "index.html").read_text(encoding="utf-8")
        for path, _ in public(asked):
            assert f'id="{path}"' in html, f"{page.name} does not show {path}"


# What the reference is made of --------------------------------------------------------------------


class Asked:
    """One directive of a page: a module or a name in it, and which of its members."""

    def __init__(self, path: str, members: list[str] | None) -> None:
        self.path, self.members = path, members


def directives() -> Iterator[tuple[Path, Asked]]:
    for page in sorted(REFERENCE.glob("*.md")):
        for found in re.finditer(
            r"^::: (\S+)\n((?: {4}.*\n|\n)*)", page.read_text(encoding="utf-8"), re.MULTILINE
        ):
            members = re.search(r"^ {6}members: \[(.*)\]$", found[2], re.MULTILINE)
            yield page, Asked(found[1], members and members[1].split(", "))


@cache
def tree() -> Any:
    hook().on_startup()
    loader = griffe.GriffeLoader(search_paths=[str(ROOT / "build/types")])
    read = loader.load("unswept", submodules=True)
    loader.resolve_aliases(external=False)
    return read


def public(asked: Asked) -> Iterator[tuple[str, Any]]:
    """The names that a directive shows, under the paths that it shows them under."""
    top = tree()[asked.path.removeprefix("unswept.")]
    yield asked.path, top
    yield from _members(top, asked.path, asked.members)


def _members(parent: Any, path: str, members: list[str] | None) -> Iterator[tuple[str, Any]]:
    exports = {str(name) for name in parent.exports or ()} if parent.is_module else set()
    for name, member in parent.members.items():
        if members is not None and name not in members:
            continue
        if members is None and (name.startswith("_") or name in ("T", "R", "R_co")):
            continue
        if member.is_alias and (name not in exports or member.target.is_module):
            continue
        if member.is_module or (exports and name not in exports):
            continue
        yield f"{path}.{name}", member
        if member.is_class:
            kind = member.final_target if member.is_alias else member
            yield from _members(kind, f"{path}.{name}", None)


def glossary() -> set[str]:
    text = (REFERENCE / "glossary.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]+`) \|", text, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_no_public_name_goes_without_a_word() -> None:
    """Modules, classes, functions, methods and properties have docstrings; a field that many
    values have, and that means the same in all, may stand in the glossary instead."""
    fields: set[str] = set()
    bare: set[str] = set()
    names: set[str] = set()
    for _, asked in directives():
        for path, member in public(asked):
            names.add(path.rpartition(".")[2])
            if not member.has_docstring:
                is_field = member.is_attribute and "property" not in member.labels
                (fields if is_field else bare).add(path)
    assert not bare, "they have no docstring"
    known = glossary()
    unknown = sorted(path for path in fields if path.rpartition(".")[2] not in known)
    assert not unknown, "they have neither a docstring nor a row in docs/reference/glossary.md"
    assert known <= names, "the glossary has names that no page of the reference shows"


@pytest.mark.parametrize("page", ["laws.md", "cli.md"])
def test_generated_pages_are_as_the_code_is(page: str) -> None:
    """`python .ci/docs.py --write` renews them."""
    assert (REFERENCE / page).read_text(encoding="utf-8") == hook().GENERATED[page]()


def test_the_navigation_has_every_page() -> None:
    """MkDocs says so too, where it is not told to be strict; here each page is there once."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[1]
    listed = re.findall(r"([\w/]+\.md)$", text, re.MULTILINE)
    there = [p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")]
    assert sorted(listed) == sorted(there)
