"""Two kinds of error: the caller's misuse, and the outside world's failure.

Whatever the protocol can meet is a reply, never an exception (see `unswept.core.replies`).
"""

from __future__ import annotations


class UnsweptError(Exception):
    """Base of every error that unswept raises."""


class MisuseError(UnsweptError, ValueError):
    """The caller did it: a value that is no valid id, epoch, duration, ... Nothing was changed."""


class StoreError(UnsweptError):
    """The outside world did it: the store could not carry out a command."""


class StoreUnavailableError(StoreError):
    """The store is out of reach, locked or busy now; the command took no effect. Try again."""


class OutcomeUnknownError(StoreError):
    """The connection broke around the commit; the command may have taken effect. Repeat it."""


class RowRefusedError(StoreError):
    """A row is not as unswept made it, and the database refused its change; the command took no
    effect."""


class StoreFullError(StoreError):
    """The store's disk is full; the command took no effect."""


class StoreReadOnlyError(StoreError):
    """The store accepts no writes; the command took no effect."""


class NotAStoreError(StoreError):
    """What was opened is no unswept store, or is damaged. It was left as it was."""


class StoreVersionError(StoreError):
    """The store's schema is newer than this version, or older and not to be migrated now."""
