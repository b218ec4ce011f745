"""Keeps the direction of imports, and keeps the core pure, by reading the source of every file.

    core         ->  the standard library's pure modules, attrs
    spec         ->  core
    simulations  ->  core, spec
    adapters     ->  core, spec, simulations

Nothing but adapters knows a database driver. Nothing is imported as `core` or `tests`, which
works in a checkout and nowhere else. The core has no I/O, no clock, no randomness, no logging,
no threads, and no state in a module or a class.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

import pytest

ROOT = Path(__file__).parent.parent

# The arrows: what each folder may import of the library.
ARROWS = MappingProxyType(
    {
        "core": frozenset({"core"}),
        "spec": frozenset({"core", "spec"}),
        "simulations": frozenset({"core", "spec", "simulations"}),
        "adapters": frozenset({"core", "spec", "simulations", "adapters"}),
    }
)

# All that the core may import from elsewhere. A list of what is pure, not of what is banned:
# a module that nobody thought of is refused until somebody has thought of it.
PURE = frozenset(
    {
        "__future__", "abc", "base64", "binascii", "bisect", "collections", "contextlib", "copy",
        "dataclasses", "decimal", "enum", "fractions", "functools", "graphlib", "hashlib", "heapq",
        "itertools", "json", "keyword", "math", "numbers", "operator", "re", "reprlib", "string",
        "struct", "textwrap", "types", "typing", "unicodedata",
    }
)  # fmt: skip
VALUES = frozenset({"attr", "attrs"})

DRIVERS = frozenset({"sqlite3", "psycopg", "psycopg_pool", "asyncpg"})

# Builtins that do I/O, load code, or answer differently in each process.
IMPURE_CALLS = frozenset(
    {"__import__", "breakpoint", "eval", "exec", "hash", "id", "input", "open", "print"}
)

MUTABLE_LITERALS = (
    ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp, ast.GeneratorExp,
)  # fmt: skip
MUTABLE_MAKERS = frozenset(
    {"Counter", "OrderedDict", "bytearray", "count", "cycle", "defaultdict", "deque", "dict",
     "iter", "list", "set"}
)  # fmt: skip
FREEZERS = frozenset({"MappingProxyType", "frozenset", "tuple"})
# `Final` with one of these: rebinding and changing are both type errors.
READ_ONLY_TYPES = frozenset(
    {"AbstractSet", "Collection", "Mapping", "Sequence", "frozenset", "tuple"}
)


def imports(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """Every module that the code names in an import, with its line; at any depth, also for types.

    `from a import b` gives `a.b`, since b may be a module; relative names are resolved.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                parents = parents[: len(parents) - node.level + 1]
                base = ".".join([*parents, base] if base else parents)
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"
        elif isinstance(node, ast.Call) and name_of(node.func) in {"import_module", "__import__"}:
            for argument in node.args[:1]:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield node.lineno, argument.value


def name_of(node: ast.expr) -> str:
    """The last part of a dotted name: `Final` for both `Final` and `typing.Final`."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def import_violation(folder: str, module: str) -> str | None:
    """What is wrong with this import in a file of this folder, as `arrow: reason`."""
    top, _, rest = module.partition(".")
    if top == "unswept":
        target = rest.partition(".")[0]
        if target not in ARROWS:
            return f"{folder} -> {module}: name the subpackage, one of {', '.join(ARROWS)}"
        if target not in ARROWS[folder]:
            allowed = ", ".join(sorted(ARROWS[folder]))
            return f"{folder} -> {target}: imports {module}; {folder} may import only {allowed}"
        return None
    if top in ARROWS or top == "tests":
        return f"{folder} -> {top}: imports {module}, which exists only in a checkout"
    if folder != "adapters" and top in DRIVERS:
        return f"{folder} -> {top}: only adapters may know a database driver"
    if folder == "core" and top not in PURE | VALUES:
        if top in sys.stdlib_module_names:
            return f"core -> {top}: imports {module}; {top} is not on the list of pure modules"
        return f"core -> {top}: imports {module}; of other libraries core may import only attrs"
    return None


def mutable_part(value: ast.expr) -> ast.expr | None:
    """The part of this expression that makes a mutable object and keeps it, if any."""
    if isinstance(value, MUTABLE_LITERALS):
        return value
    if isinstance(value, ast.Call):
        maker = name_of(value.func)
        if maker in MUTABLE_MAKERS:
            return value
        if maker in FREEZERS:
            # The outer literal is frozen or copied; what stands inside it is not.
            return first_mutable(kept for frozen in value.args for kept in elements(frozen))
        return None
    if isinstance(value, (ast.Tuple, ast.Starred, ast.IfExp, ast.BoolOp, ast.NamedExpr)):
        return first_mutable(elements(value))
    return None


def first_mutable(values: Iterator[ast.expr]) -> ast.expr | None:
    return next((part for value in values if (part := mutable_part(value)) is not None), None)


def elements(value: ast.expr) -> Iterator[ast.expr]:
    """The expressions whose values this one holds."""
    if isinstance(value, ast.DictComp):
        yield value.value
    elif isinstance(value, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        yield value.elt
    elif not isinstance(value, ast.Call):
        yield from (child for child in ast.iter_child_nodes(value) if isinstance(child, ast.expr))


def is_read_only_type(annotation: ast.expr) -> bool:
    """`Final[Mapping[...]]` and its like."""
    if not (isinstance(annotation, ast.Subscript) and name_of(annotation.value) == "Final"):
        return False
    inner = annotation.slice
    return name_of(inner.value if isinstance(inner, ast.Subscript) else inner) in READ_ONLY_TYPES


def shared_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run once, at import: the module's, also under `if`, and each class's."""
    for node in body:
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for field in ("body", "orelse", "finalbody"):
                yield from shared_statements(getattr(node, field, []))
            for handler in getattr(node, "handlers", []):
                yield from shared_statements(handler.body)


def called_builtin(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def impurities(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """What the core must not contain, besides imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield node.lineno, f"core: `global {', '.join(node.names)}`; return a new value instead"
        elif isinstance(node, ast.Call) and called_builtin(node) in IMPURE_CALLS:
            yield node.lineno, f"core: calls {called_builtin(node)}(); the core only computes"
    for statement in shared_statements(tree.body):
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign) and not is_read_only_type(statement.annotation):
            targets = [statement.target]
        else:
            continue
        names = ", ".join(ast.unparse(target) for target in targets)
        if names != "__all__" and statement.value and mutable_part(statement.value):
            yield (
                statement.lineno,
                f"core: {names} is shared and mutable; use a tuple, a frozenset, "
                "MappingProxyType, or annotate it Final[Mapping[...]]",
            )


def violations(path: str, source: str) -> list[str]:
    """Everything wrong with one file, as `path:line: arrow: reason`; path is relative to ROOT."""
    folder, *parts = Path(path).parts
    package = ".".join(["unswept", folder, *parts[:-1]])
    tree = ast.parse(source, filename=path)
    found = [
        (line, problem)
        for line, module in imports(tree, package)
        if (problem := import_violation(folder, module)) is not None
    ]
    if folder == "core":
        found += impurities(tree)
    return [f"{path}:{line}: {problem}" for line, problem in sorted(found)]


def files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("folder", ARROWS)
def test_the_code_keeps_the_arrows(folder: str) -> None:
    """Every file of the folder imports only what the folder may, and the core is pure."""
    assert files(folder), f"no Python file under {folder}/: is this the project's tree?"
    found = [
        problem
        for file in files(folder)
        for problem in violations(file.relative_to(ROOT).as_posix(), file.read_text("utf-8"))
    ]
    assert not found, "\n" + "\n".join(found)


def test_tests_import_the_library_by_its_name() -> None:
    """A test that imports `core.lease` tests a second copy of the module, with enums of its own."""
    found = [
        f"{file.relative_to(ROOT).as_posix()}:{line}: imports {module}, not unswept.{module}"
        for file in files("tests")
        for line, module in imports(ast.parse(file.read_text("utf-8")), "tests")
        if module.partition(".")[0] in ARROWS
    ]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("path", "line", "arrow"),
    [
        ("core/a.py", "import unswept.spec.laws", "core -> spec"),
        ("core/a.py", "from unswept.adapters.sql import statements", "core -> adapters"),
        ("core/a.py", "from unswept import simulations", "core -> simulations"),
        ("core/a.py", "from ..spec import laws", "core -> spec"),
        ("core/a.py", "from .. import adapters", "core -> adapters"),
        ("core/sub/a.py", "from ...spec import laws", "core -> spec"),
        ("core/a.py", "import os", "core -> os"),
        ("core/a.py", "import os.path as p", "core -> os"),
        ("core/a.py", "from time import monotonic", "core -> time"),
        ("core/a.py", "import json, random", "core -> random"),
        ("core/a.py", "def f():\n    import logging", "core -> logging"),
        ("core/a.py", "if TYPE_CHECKING:\n    from pathlib import Path", "core -> pathlib"),
        ("core/a.py", "from concurrent.futures import Future", "core -> concurrent"),
        ("core/a.py", "import sqlite3", "core -> sqlite3"),
        ("core/a.py", "import hypothesis", "core -> hypothesis"),
        ("core/a.py", "import rich.table", "core -> rich"),
        ("core/a.py", "import lease", "core -> lease"),
        ("core/a.py", "from core import lease", "core -> core"),
        ("spec/a.py", "from unswept.simulations import faults", "spec -> simulations"),
        ("spec/theorems/a.py", "from ...adapters import sql", "spec -> adapters"),
        ("spec/a.py", "import psycopg.rows", "spec -> psycopg"),
        ("simulations/a.py", "import unswept.adapters", "simulations -> adapters"),
        ("simulations/a.py", "import sqlite3", "simulations -> sqlite3"),
        (
            "simulations/a.py",
            "import importlib\nimportlib.import_module('unswept.adapters.sqlite')",
            "simulations -> adapters",
        ),
        ("adapters/sql/a.py", "from core.lease import Lease", "adapters -> core"),
        ("adapters/a.py", "import tests.helpers", "adapters -> tests"),
        ("adapters/a.py", "import unswept", "adapters -> unswept"),
    ],
)
def test_a_forbidden_import_is_found(path: str, line: str, arrow: str) -> None:
    """A planted import against the arrows is reported once, with file, line and arrow."""
    source = f'"""Planted."""\n{line}\n'
    (found,) = violations(path, source)
    assert found.startswith(f"{path}:{source.count(chr(10))}: {arrow}: ")


@pytest.mark.parametrize(
    "planted",
    [
        "def f():\n    global seen",
        "open('jobs')",
        "def f():\n    print('swept')",
        "answer = input()",
        "key = hash('job-1')",
        "eval('1')",
        "CACHE = {}",
        "SEEN = []",
        "SEEN = {1, 2}",
        "A = B = [1]",
        "A, B = 1, []",
        "SEEN = [n for n in range(3)]",
        "SEEN = set()",
        "SEEN = collections.deque()",
        "NEXT = itertools.count()",
        "TABLE = ({'a': 1}, 2)",
        "TABLE = MappingProxyType({'a': [1]})",
        "TABLE = tuple([1] for _ in range(3))",
        "TABLE: dict[str, int] = {}",
        "TABLE: Final = {'a': 1}",
        "TABLE: Final[dict[str, int]] = {'a': 1}",
        "if True:\n    CACHE = {}",
        "try:\n    pass\nexcept ValueError:\n    CACHE = {}",
        "class Heart:\n    beats = []",
    ],
)
def test_an_impurity_in_the_core_is_found(planted: str) -> None:
    """Planted state or I/O in the core is reported once; the same code elsewhere is let be."""
    source = f'"""Planted."""\n{planted}\n'
    (found,) = violations("core/a.py", source)
    assert found.startswith(f"core/a.py:{source.count(chr(10))}: core: ")
    assert violations("adapters/a.py", source) == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("core/a.py", "from __future__ import annotations\nimport enum, typing\nimport attrs"),
        ("core/a.py", "from collections.abc import Mapping\nfrom attr import define"),
        (
            "core/a.py",
            "from unswept.core.lease import Lease\nfrom . import lease\nfrom .lease import x",
        ),
        ("core/a.py", "ACTIVE = frozenset({1, 2})\nORDER = (1, (2, 3))\n__all__ = ['ACTIVE']"),
        ("core/a.py", "TABLE = MappingProxyType({1: frozenset({2}), 3: (4,)})"),
        ("core/a.py", "TABLE: Final[Mapping[int, int]] = {1: 2}"),
        ("core/a.py", "TABLE: typing.Final[typing.Mapping[int, int]] = {1: 2}"),
        ("core/a.py", "def f():\n    seen = []\n    return [*seen, 1]"),
        ("core/a.py", "class Box:\n    def __init__(self):\n        self.rows = {}"),
        ("core/a.py", "Ms = NewType('Ms', int)\nLIMIT: Final = 200\nNAME: str"),
        ("spec/a.py", "import unswept.core\nfrom unswept.core import lease\nimport time"),
        ("simulations/a.py", "from unswept.spec import laws\nfrom unswept.core import lease"),
        ("adapters/sqlite/a.py", "import sqlite3\nfrom ..sql import scripts\nCACHE = {}"),
        ("adapters/a.py", "from unswept.simulations import faults\nimport rich"),
    ],
)
def test_what_is_allowed_is_let_be(path: str, source: str) -> None:
    """Code that keeps the rules has no violation, whatever it looks like."""
    assert violations(path, source) == []
