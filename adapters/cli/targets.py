"""Refuses a place that cannot be written to before the work is done that is to be written there."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

from unswept.core.errors import MisuseError


def check_file(option: str, file: Path) -> None:
    """Refuse what is no file, or one that cannot be written."""
    try:
        if file.is_dir():
            raise MisuseError(f"{option} must name a file, and {file} is a folder")
        if not file.parent.is_dir():
            raise MisuseError(f"{option} must name a file in a folder that is there, got {file}")
        if not os.path.lexists(file):
            with TemporaryFile(dir=file.parent):
                pass
        elif not os.access(file, os.W_OK):
            raise MisuseError(f"{option} must name a file that can be written, got {file}")
    except OSError as error:
        raise unwritable(option, file, error) from None


def check_folder(option: str, folder: Path) -> None:
    """Refuse what is no folder and cannot become one, or one that nothing can be written into. It
    is not made yet: most campaigns leave nothing to keep."""
    there = next((each for each in (folder, *folder.parents) if os.path.lexists(each)), folder)
    try:
        with TemporaryDirectory(dir=there):
            pass
    except OSError as error:
        raise MisuseError(
            f"{option} must name a folder that can be written, {folder} cannot be one: "
            f"{error.strerror}"
        ) from None


def write(option: str, file: Path, content: bytes) -> None:
    """Write all of a file."""
    try:
        file.write_bytes(content)
    except OSError as error:
        raise unwritable(option, file, error) from None


def unwritable(option: str, file: Path, error: OSError) -> MisuseError:
    """What is said of a file that could not be written."""
    return MisuseError(f"{option} {file} cannot be written: {error.strerror}")
