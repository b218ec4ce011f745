"""Reads JSON that another command has written, and says plainly where there is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from unswept.core.errors import MisuseError


def read_json(path: Path, name: str) -> Any:
    """What the file holds; raises `MisuseError`, which calls it `name`, where that is no JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise MisuseError(f"{name} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise MisuseError(f"{name} is no JSON: {error}") from None
