"""Which version of the package this is, for files that a later one may read."""

from __future__ import annotations

from importlib import metadata


def version() -> str:
    """The version of the package; a checkout that is not installed has none."""
    try:
        return metadata.version("unswept")
    except metadata.PackageNotFoundError:
        return "unknown"
