"""Collects what a process writes, up to a cap, and hands it on in numbered chunks.

Bytes are stored as they came; a chunk ends between two characters wherever the output is UTF-8, so
that each chunk can be read by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from unswept.core.values import Chunk, Stream

MAX_CHUNK_BYTES: Final = 1024 * 1024
_LONGEST_CHARACTER: Final = 4


class Capture:
    """The output of one run, in the order in which it is handed on. Of one thread."""

    def __init__(self, max_bytes: int, on_overflow: Callable[[], None]) -> None:
        """`on_overflow` is called once, by the piece that does not fit any more."""
        self._max_bytes = max_bytes
        self._on_overflow = on_overflow
        self._pending: dict[Stream, bytearray] = {stream: bytearray() for stream in Stream}
        self._chunks = 0
        self.bytes_taken = 0
        self.overflowed = False

    def add(self, stream: Stream, data: bytes) -> None:
        """Some output; the piece that crosses the cap is dropped, and all that follows it."""
        if self.overflowed:
            return
        if self.bytes_taken + len(data) > self._max_bytes:
            self.overflowed = True
            self._on_overflow()
            return
        self.bytes_taken += len(data)
        self._pending[stream] += data

    @property
    def waiting_bytes(self) -> int:
        """How much has not been handed on."""
        return sum(map(len, self._pending.values()))

    def take(self, *, last: bool) -> list[Chunk]:
        """What has not been handed on; the beginning of a character waits, unless it is `last`."""
        chunks = []
        for stream, pending in self._pending.items():
            ready = len(pending) if last else whole_characters(pending)
            while ready:
                size = min(ready, MAX_CHUNK_BYTES)
                if size < ready:
                    size = whole_characters(pending[:size]) or size
                chunks.append(Chunk(self._chunks, stream, bytes(pending[:size])))
                self._chunks += 1
                del pending[:size]
                ready -= size
        return chunks


def whole_characters(data: bytes | bytearray) -> int:
    """How much of `data` does not end inside a UTF-8 character."""
    for back in range(1, min(_LONGEST_CHARACTER, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - back if length > back else len(data)
    return len(data)
