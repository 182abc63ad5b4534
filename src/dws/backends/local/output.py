"""What a program prints, kept within a bound: all of it up to the limit, and then the end of it.

    output.log   first `limit` bytes │ "[… N bytes left out …]" │ last TAIL_BYTES bytes

The file only grows, so a reader's offset stays good; the last part is added when the program is over.
"""

from __future__ import annotations

import os
from pathlib import Path

TAIL_BYTES = 64 * 1024
READ_BYTES = 64 * 1024


class Output:
    """Takes bytes, keeps what fits. A full disk loses output, never the program."""

    def __init__(self, path: Path | None, limit: int) -> None:
        self._file = -1 if path is None else os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._room = limit if path is not None else 0
        self._tail = b""
        self._left_out = 0

    def take(self, data: bytes) -> None:
        """Keep this too."""
        head, rest = data[: self._room], data[self._room :]
        if head:
            self._room -= len(head)
            self._write(head)
        if rest:
            if self._file >= 0 and not self._left_out:
                self._write(b"\n[dws: the output limit is reached; only the end will follow]\n")
            self._left_out += len(rest)
            self._tail = (self._tail + rest)[-TAIL_BYTES:]

    def take_from(self, pipe: int) -> bool:
        """Keep what is in a non-blocking pipe, at most one read; False at its end."""
        try:
            data = os.read(pipe, READ_BYTES)
        except BlockingIOError:
            return True
        self.take(data)
        return bool(data)

    @property
    def tail(self) -> bytes:
        """The last bytes that did not fit."""
        return self._tail

    def close(self) -> None:
        """The program is over: add the end of what was left out."""
        if self._file < 0:
            return
        if self._left_out:
            missing = self._left_out - len(self._tail)
            if missing:
                self._write(f"[dws: {missing} bytes left out]\n".encode())
            self._write(self._tail)
        os.close(self._file)
        self._file = -1

    def _write(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError:
            self._room = 0
