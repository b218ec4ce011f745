"""The file of a store: its name, its making, and whether it is still the one that was opened."""

from __future__ import annotations

import os
import threading
from typing import Final, NamedTuple

from unswept.adapters.sqlite.errors import translated_os
from unswept.core.checks import shown
from unswept.core.errors import (
    MisuseError,
    NotAStoreError,
    StoreReadOnlyError,
    StoreUnavailableError,
    StoreVersionError,
)

MEMORY: Final = ":memory:"

_making = threading.Lock()


class FileId(NamedTuple):
    """What makes a file the same one, whatever it is called."""

    device: int
    inode: int


def path_of(path_or_url: str | os.PathLike[str]) -> str:
    """The path of `sqlite:PATH`, `sqlite::memory:` or a plain path, made absolute."""
    try:
        given = os.fspath(path_or_url)
    except TypeError:
        given = None
    if not isinstance(given, str):
        raise MisuseError(f"a SQLite store's path must be text, got {shown(path_or_url)}")
    path = given.removeprefix("sqlite:")
    if not path or "\0" in path or not _is_encodable(path):
        raise MisuseError(f"expected sqlite:PATH, sqlite::memory: or a path, got {shown(given)}")
    if path == "memory:":
        # The simulator's name for a store in memory: a file of that name would be a surprise.
        raise MisuseError(
            f"expected sqlite:PATH, sqlite::memory: or a path, got {shown(given)}. Write"
            " sqlite::memory: for a store in memory, ./memory: for a file of that name"
        )
    return path if path == MEMORY else os.path.abspath(path)


def _is_encodable(path: str) -> bool:
    """Can the system have a file of that name? Not with a lone surrogate in it."""
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


def check_or_make(path: str, *, make: bool) -> FileId:
    """Make the file where there is none, readable by its owner only; refuse a read-only one.

    The mode is given when the file is made, so that there is no moment with another one; SQLite
    gives its log the same. An existing file is never opened here: closing it again would drop the
    locks that this process's connections have on it.
    """
    if os.path.exists(path):
        _check_writable(path)
        if os.path.getsize(path) == 1:
            # SQLite takes a file of one byte for an empty one, and would write over it.
            raise NotAStoreError(
                f"{path}: expected a SQLite database, found a file of one byte; it was left as it"
                " was. Name another path"
            )
    elif make:
        _make(path)
    else:
        raise StoreVersionError(
            f"{path}: expected a store, found no file, and making one was not asked for. Run"
            " `unswept db init`, or open the store with migrate=True"
        )
    try:
        return _file_id(path)
    except OSError as error:
        raise translated_os(error, path) from error


def check_same(path: str, file: FileId) -> None:
    """Refuse a path that no longer leads to the file that was opened.

    What is written to a file that was removed is lost, and a file made in its place would hide
    that it was.
    """
    try:
        found = _file_id(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StoreUnavailableError(
            f"{path}: the file was there when the store was opened, and is gone now; nothing was"
            " written, and no file was made. Put it back, or open the store anew to begin with an"
            " empty one"
        ) from error
    except OSError:
        return  # it may be there: SQLite will say
    if found != file:
        raise NotAStoreError(
            f"{path}: another file is there than when the store was opened; it was left as it was."
            " Put the first one back, or open the store anew to go on with this one"
        )


def is_same_name(one: str, other: str) -> bool:
    """Do both lead to the same file under the same name? Symbolic links are followed, as SQLite
    follows them; under another hard link it would keep another log, and so other locks."""
    return _place(one) == _place(other)


def _place(path: str) -> str:
    return os.path.normcase(os.path.realpath(path))


def _file_id(path: str) -> FileId:
    found = os.stat(path)
    return FileId(found.st_dev, found.st_ino)


def _make(path: str) -> None:
    # One thread at a time: none may connect between the making and the closing of the file.
    with _making:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            return  # another process was faster
        except OSError as error:
            raise translated_os(error, path) from error


def _check_writable(path: str) -> None:
    # SQLite would open a write-protected file for reading, and fail at the first write.
    for place in (path, os.path.dirname(path)):
        if not os.access(place, os.W_OK):
            raise StoreReadOnlyError(
                f"{path}: expected a writable file in a writable directory, found that {place} is"
                " not writable. Change its mode or mount, or name another path"
            )
