"""One process at a time: a lock file beside the database.

The lock is the kernel's and ends with the process, however it ends; the file stays and says whose it
was last.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from dws.model.errors import FailedPrecondition, Unavailable


class LockFile:
    """The exclusive right to use the database at `path`, held until released."""

    def __init__(self, path: Path) -> None:
        """Raises FailedPrecondition naming the process that holds it, Unavailable when the file cannot
        be made."""
        self.path = path.with_name(path.name + ".lock")
        try:
            self._descriptor = os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Unavailable(f"cannot open the lock file {self.path}: {error.strerror}") from None
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._descriptor, 32).decode(errors="replace").strip() or "unknown"
            os.close(self._descriptor)
            raise FailedPrecondition(
                f"{path} is in use by process {holder}; stop that server first, or talk to it",
                details={"pid": holder},
            ) from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let others in; harmless twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
