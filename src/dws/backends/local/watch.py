"""One instance as the backend watches it: is it looked after, and what is new about it?

    status.json says it is over          ─▶ that is the last word
    a supervisor looks after it          ─▶ its status holds
    nobody does, though somebody did     ─▶ kill what is left; with nothing left, lost

A supervisor that died cannot say so: its pid, start time and the machine's boot id tell, and its program's
processes are known by a mark in their environment. (One that cleared its environment is missed, in this one
case; otherwise every process is found by descent.)
"""

from __future__ import annotations

import signal
import subprocess
from typing import Final

from dws.backends.local import environment, facts, process
from dws.backends.local.record import (
    FINAL_STATES,
    ORDER,
    OUTPUT,
    STATUS,
    SUPERVISOR,
    TROUBLE,
    Fields,
    Record,
    identity_of_supervisor,
)
from dws.engine.ports import Fact, FactKind

TROUBLE_BYTES: Final = 500
NOBODY: Final[Fields] = {"pid": 0, "started": 0}


class Watch:
    """Watches a record. `child` is its supervisor when this very server started it."""

    def __init__(self, record: Record, child: subprocess.Popen[bytes] | None = None) -> None:
        self.record = record
        self.child = child
        self.said: tuple[Fact, ...] = ()
        self._order = record.read(ORDER) or {}
        self._status: Fields = {}
        self._stamp: tuple[int, int] = (0, 0)
        self._supervisor: tuple[int, int] | None = None
        self.output_bytes = 0

    @property
    def is_over(self) -> bool:
        """True when nothing will ever change again."""
        return self._status.get("state") in FINAL_STATES

    @property
    def is_told(self) -> bool:
        """True when the last word has been said."""
        return bool(self.said) and self.said[-1].kind in (FactKind.GONE, FactKind.LOST)

    @property
    def is_waiting(self) -> bool:
        """True while nobody looks after it, or was started to."""
        return self.child is None and not (self.record.path / SUPERVISOR).exists()

    @property
    def is_running(self) -> bool:
        """True while it was seen running, and not seen to end."""
        return self._status.get("state") == "running"

    def look(self) -> tuple[Fact, ...]:
        """What is new since the last look. Ends what nobody looks after any more."""
        if self.is_told:
            return ()
        was_there = self._is_looked_after()  # asked before the status is read: it may end in between
        self._read()
        if not was_there and not self.is_over:
            self._bury()
        now = facts.life(self.record.key, self.record.rank, self._order, self._status)
        new = tuple(fact for fact in now if fact not in self.said)
        self.said = now
        if self.is_told:
            self.output_bytes = self.record.size(OUTPUT)
        return new

    def let_go(self, *, hard: bool, grace_s: int) -> bool:
        """Have it ended; True when it is over already."""
        if not self.is_over and self.record.claim({**NOBODY, "boot_id": process.boot_id()}):
            self._write(state="gone", ended_by="request")  # before it began
        self._read()
        if not self.is_over:
            if self._is_looked_after():
                self.record.ask_to_stop(hard=hard, grace_s=grace_s)
            else:
                self._bury()
        return self.is_over

    @property
    def has_child(self) -> bool:
        """True while its supervisor is a child of this server; asking also takes note of its end."""
        return self.child is not None and self.child.poll() is None

    def _is_looked_after(self) -> bool:
        """Whether a supervisor is there, or may still come."""
        if self._supervisor is None:
            may_come = self.child is None or self.has_child  # asked first: it may come in between
            claim = self.record.read(SUPERVISOR)
            if claim is None:
                return may_come
            self._supervisor = identity_of_supervisor(claim) or (0, 0)
        return process.is_alive(self._supervisor)

    def _read(self) -> None:
        try:
            stat = (self.record.path / STATUS).stat()
        except OSError:
            return
        if (stat.st_ino, stat.st_mtime_ns) != self._stamp:
            self._stamp = (stat.st_ino, stat.st_mtime_ns)
            self._status = self.record.read(STATUS) or self._status

    def _bury(self) -> None:
        """Kill what a dead supervisor left, and say so once nothing is left."""
        left = process.bearers(environment.INSTANCE, str(self.record.path))
        if left:
            process.send(left, signal.SIGKILL)
        elif self._status.get("state") == "exited":
            self._write(state="gone")
        else:
            self._write(state="lost", evidence=self._cause())

    def _cause(self) -> str:
        claim = self.record.read(SUPERVISOR)
        if claim is not None and claim.get("boot_id") != process.boot_id():
            return "the machine was restarted"
        said = self.record.tail(TROUBLE, TROUBLE_BYTES).strip().rpartition("\n")[2]
        what = "its supervisor did not start" if claim is None else "its supervisor died"
        return f"{what}: {said}" if said else what

    def _write(self, **what: object) -> None:
        self._status = {**self._status, **what}
        self.record.set_status(self._status)
