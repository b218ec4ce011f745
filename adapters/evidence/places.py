"""Where the code states each law: file and line of its sentence, its predicate, and of what states
it a second time without sharing code, in Quint and in SQL."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Final

from attrs import frozen

_QUINT: Final = ("laws.qnt", "protocol.qnt")


@frozen
class Place:
    """A line of a file, as it is installed."""

    what: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def places() -> dict[str, tuple[Place, ...]]:
    """By law."""
    found: dict[str, list[Place]] = {}
    for law, place in (*_in_python(), *_in_quint(), *_in_sql()):
        found.setdefault(law, []).append(place)
    return {law: tuple(each) for law, each in found.items()}


def _text(package: str, name: str) -> str:
    return (files(f"unswept.{package}") / name).read_text(encoding="utf-8")


def _in_python() -> Iterator[tuple[str, Place]]:
    """The entry in the catalogue, and the predicates that it names."""
    tree = ast.parse(_text("spec", "laws.py"))
    functions = {node.name: node.lineno for node in tree.body if isinstance(node, ast.FunctionDef)}
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "Law" and len(call.args) > 3:
            law = str(ast.literal_eval(call.args[0]))
            yield law, Place("sentence", "spec/laws.py", call.lineno)
            for name in ast.walk(call.args[3]):
                if isinstance(name, ast.Name) and name.id in functions:
                    yield law, Place("predicate", "spec/laws.py", functions[name.id])


def _in_quint() -> Iterator[tuple[str, Place]]:
    """The first definition that is named after the law; what builds on it is none of its own."""
    seen = set()
    for name in _QUINT:
        for number, line in enumerate(_text("spec", name).splitlines(), 1):
            found = re.match(r"\s*(?:pure )?(?:def|val|temporal) ([lL]\d+a?|[fF]\d|WF)\b", line)
            if found is None:
                continue
            law = found[1][0].upper() + found[1][1:]
            if law not in seen:
                seen.add(law)
                yield law, Place("specification in Quint", f"spec/{name}", number)


def _in_sql() -> Iterator[tuple[str, Place]]:
    """The SELECT over traces that finds its offences."""
    for name in ("law_sql.py", "fleet_law_sql.py"):
        lines = _text("adapters", f"traces/{name}").splitlines()
        for number, line in enumerate(lines, 1):
            found = re.match(r"_?(L\d+A?|F\d|WF): Final", line)
            if found is not None:
                law = found[1].replace("A", "a")
                yield law, Place("SQL over traces", f"adapters/traces/{name}", number)
