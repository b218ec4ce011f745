"""Which sources a command judges, and their hashes: a record of other sources says nothing of
these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Final

_STORES: Final = ("adapters/sql", "adapters/sqlite", "adapters/postgres", "adapters/urls.py")
_PROOFS: Final = ("core", "spec", "adapters/proofs", *_STORES)
_REAL: Final = ("core", *_STORES, "adapters/chaos", "adapters/gateway", "adapters/runner")

JUDGED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "prove": _PROOFS,
        "twins": _PROOFS,
        "explore": ("core", "spec"),
        "windows": ("core", "spec"),
        "simulate": ("core", "spec", "simulations", *_STORES),
        "mutants": ("core", "spec", "simulations"),
        "chaos": _REAL,
        "fleet": _REAL,
        "audit": ("core", "spec", "adapters/audit", "adapters/duck.py", *_STORES),
    }
)
"""By the name under which a command's records are kept: the folders, or modules, of the package."""

_KINDS: Final = frozenset({".py", ".sql", ".qnt", ".json"})


def hashes(name: str) -> dict[str, str]:
    """The SHA-256 of each part that the command of this name judges, as it is installed."""
    return {part: _hashed(part) for part in JUDGED[name]}


def _hashed(part: str) -> str:
    """Of names and contents, in the order of the names."""
    whole = sha256()
    root = _root(part)
    for file in sorted(_files(root)):
        name = file.relative_to(root.parent).as_posix()
        whole.update(f"{name}\0{sha256(file.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()


def _root(part: str) -> Path:
    package, _, rest = part.partition("/")
    return Path(str(files(f"unswept.{package}"))) / rest


def _files(root: Path) -> Iterator[Path]:
    if root.is_file():
        yield root
        return
    for file in root.rglob("*"):
        if file.suffix in _KINDS and "__pycache__" not in file.parts:
            yield file
