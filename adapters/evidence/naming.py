"""Which tests name a law, from the list that the package brings: it brings no tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from unswept.adapters.evidence.verdicts import Kind, Row, Verdict, counted

TITLE = "Tests"
SAYS = (
    "Tests of the project that name the law; races are those in which threads, sessions or "
    "processes meet in a real store. That they pass, the project's test run says, not this page."
)


@cache
def _listed() -> Mapping[str, Mapping[str, Sequence[str]]]:
    text = (files("unswept.adapters.evidence") / "laws_of_tests.json").read_text(encoding="utf-8")
    found: Mapping[str, Mapping[str, Sequence[str]]] = json.loads(text)
    return found


def tests(law: str) -> Verdict:
    """The tests and races of a law, by file."""
    listed = _listed().get(law, {"tests": (), "races": ()})
    races, others = listed["races"], listed["tests"]
    if not races and not others:
        return Verdict(Kind.HOLE, "no test names it")
    rows = tuple(
        Row((kind, file, ", ".join(names)))
        for kind, ids in (("race", races), ("test", others))
        for file, names in _by_file(ids).items()
    )
    said = counted(len(others) + len(races), "test")
    if races:
        said += f", {counted(len(races), 'race')} among them"
    return Verdict(Kind.NAMED, said, ("kind", "file", "names"), rows)


def _by_file(ids: Sequence[str]) -> dict[str, list[str]]:
    files_: dict[str, list[str]] = {}
    for each in ids:
        file, _, name = each.partition("::")
        files_.setdefault(file, []).append(name)
    return files_
