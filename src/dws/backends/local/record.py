"""The directory of one instance: where the backend and the supervisor of a program meet.

    instances/KEY/RANK/    made whole or not at all: its existence is the exactly-once token
      order.json           what to run                       written before it exists
      deadline             by when it ends                   written by the backend
      stop                 that it shall end now             written by the backend
      bell                 a pipe: look at the files above   rung by the backend
      supervisor.json      who looks after it                linked once, by the first to come
      status.json          what became of it                 written by whoever looks after it
      output.log           what it printed                   written by the supervisor

Files are replaced, never changed, so that a reader sees the old one or the new one. Only the owner can
read any of them: the environment of a program may hold secrets. Standard library only and quick to
import, because every supervisor does.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dws.backends.local import process

ORDER, DEADLINE, STOP, BELL = "order.json", "deadline", "stop", "bell"
SUPERVISOR, STATUS, OUTPUT, TROUBLE = "supervisor.json", "status.json", "output.log", "supervisor.log"
MASTER_PORT = "master_port"
FINAL_STATES = ("gone", "lost")

Fields = dict[str, Any]


class Record:
    """One instance's directory, `root/KEY/RANK`."""

    __slots__ = ("key", "path", "rank")

    def __init__(self, root: Path, key: str, rank: int) -> None:
        self.key = key
        self.rank = rank
        self.path = root / key / str(rank)

    @classmethod
    def at(cls, path: Path) -> Record:
        """The record in a directory that exists."""
        return cls(path.parent.parent, path.parent.name, int(path.name))

    # --- once --------------------------------------------------------------------------------

    def make(self, order: Fields, deadline: Fields) -> bool:
        """Make it with its order, whole; False when it is there already, whoever made it."""
        if self.path.exists():
            return False
        private_directory(self.path.parent)
        new = self.path.parent / f".new-{os.getpid()}-{os.urandom(4).hex()}"
        new.mkdir(mode=0o700)
        try:
            write(new / ORDER, order)
            write(new / DEADLINE, deadline)
            os.mkfifo(new / BELL, 0o600)
            new.rename(self.path)
        except OSError as error:
            shutil.rmtree(new, ignore_errors=True)
            if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
                return False
            raise
        return True

    def claim(self, who: Fields) -> bool:
        """Become the one who looks after it; False when somebody is, or was, already."""
        if (self.path / SUPERVISOR).exists():
            return False
        mine = self.path / f".claim-{os.getpid()}-{os.urandom(4).hex()}"
        write(mine, who)
        try:
            os.link(mine, self.path / SUPERVISOR)
        except FileExistsError:
            return False
        finally:
            mine.unlink()
        return True

    # --- reading -----------------------------------------------------------------------------

    @property
    def exists(self) -> bool:
        """Whether it was ever made, and is still kept."""
        return self.path.is_dir()

    @property
    def deadline_file(self) -> Path:
        """What a program may read to know its end."""
        return self.path / DEADLINE

    def read(self, name: str) -> Fields | None:
        """A file's fields, as `read`."""
        return read(self.path / name)

    def size(self, name: str) -> int:
        """Bytes in a file, 0 when it is not there."""
        try:
            return (self.path / name).stat().st_size
        except OSError:
            return 0

    def tail(self, name: str, limit: int) -> str:
        """The last bytes of a file, as text."""
        try:
            return (self.path / name).read_bytes()[-limit:].decode(errors="replace")
        except OSError:
            return ""

    # --- writing -----------------------------------------------------------------------------

    def set_status(self, fields: Fields) -> None:
        """Say what became of it."""
        write(self.path / STATUS, fields)

    def set_deadline(self, deadline: Fields) -> None:
        """Say by when it ends."""
        write(self.path / DEADLINE, deadline)
        self.ring()

    def ask_to_stop(self, *, hard: bool, grace_s: int) -> None:
        """Ask its supervisor to end it; a hard request is not taken back by a soft one."""
        if not hard and self.read(STOP) is not None:
            return
        write(self.path / STOP, {"hard": hard, "grace_s": grace_s})
        self.ring()

    def ring(self) -> None:
        """Make its supervisor look now; without one, or with a full pipe, there is nothing to do."""
        with contextlib.suppress(OSError):
            bell = os.open(self.path / BELL, os.O_WRONLY | os.O_NONBLOCK)
            try:
                os.write(bell, b".")
            finally:
                os.close(bell)

    def remove(self) -> None:
        """Forget it, with what it printed; with the last of an order, the port of its gang too."""
        shutil.rmtree(self.path, ignore_errors=True)
        order = self.path.parent
        with contextlib.suppress(OSError):
            if [path.name for path in order.iterdir()] == [MASTER_PORT]:
                (order / MASTER_PORT).unlink()
            order.rmdir()


def kept_in(root: Path) -> list[Record]:
    """Every record below a directory; what a killed server left half made is swept away."""
    for path in root.glob("*/.new-*"):
        if process.look(int(path.name.split("-")[1])) is None:
            shutil.rmtree(path, ignore_errors=True)
    return [Record.at(path) for path in root.glob("*/*") if path.name.isdecimal()]


def private_directory(path: Path) -> None:
    """Make a directory only its owner can enter, with its parents."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.chmod(0o700)


def read(path: Path) -> Fields | None:
    """A file's fields; None when it is not there or, after a power failure, not whole."""
    try:
        fields = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return fields if isinstance(fields, dict) else None


def write(path: Path, fields: Mapping[str, Any]) -> None:
    """Replace a file as a whole, for its owner's eyes only."""
    beside = path.with_name(f".{path.name}-{os.getpid()}-{os.urandom(4).hex()}")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(json.dumps(fields).encode())
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


def identity_of_supervisor(fields: Fields | None) -> tuple[int, int] | None:
    """The process named in supervisor.json; None when there is none, or the machine was restarted since."""
    if fields is None or fields.get("boot_id") != process.boot_id():
        return None
    return int(fields["pid"]), int(fields["started"])
