"""Looks after one instance, in a process of its own: starts its program, ends it in time, clears up after it.

    python -m dws.backends.local.supervisor DIRECTORY

    checking ──▶ running ──▶ exited ──▶ gone            each state is written before the next begins
        └─ failed_check ───────────────▶ gone

It needs no server. The deadline is on the boot-time clock, so that setting the wall clock ends nothing
early or late. Whatever the program starts stays below this process, even in sessions of its own, and
"gone" is said when nothing is left below. Standard library only: a start costs an interpreter.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import sys
import time
from pathlib import Path

from dws.backends.local import process, program
from dws.backends.local.output import Output
from dws.backends.local.record import BELL, DEADLINE, ORDER, OUTPUT, STOP, Fields, Record

LOOK_AGAIN_S = 1.0
KILL_AGAIN_S = 0.1
EVIDENCE_BYTES = 2000
HARD_STOP_ROUNDS = 50


class Supervisor:
    """Runs an order to its end. Every wait is in `_round`, which does what is due by then."""

    def __init__(self, record: Record, order: Fields, umask: int) -> None:
        self._record = record
        self._order = order
        self._umask = umask
        self._status: Fields = {"state": "checking", "code": None, "ended_by": "", "evidence": ""}
        self._bell = os.open(record.path / BELL, os.O_RDWR | os.O_NONBLOCK)
        self._woken, wake = os.pipe()
        for end in (self._woken, wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._asked_by_signal = False
        self._main = 0
        self._pipe = -1
        self._code: int | None = None
        self._deadline = 0.0
        self._warned_of = 0.0
        self._kill_at: float | None = None
        self._look_at = 0.0

    def run(self) -> None:
        """From the first check to the last process gone."""
        self._look(process.boottime())
        output = Output(self._record.path / OUTPUT, int(self._order["output_max_bytes"]))
        if self._passes_check():
            self._run_program(output)
        self._clear_away(output)
        output.close()
        self._say(state="gone")

    def asked_by_signal(self, *_: object) -> None:
        """Somebody ends this process itself, as a machine that shuts down does."""
        self._asked_by_signal = True

    # --- what is run --------------------------------------------------------------------------

    def _passes_check(self) -> bool:
        """Run the health check, if there is one. What it leaves behind is killed."""
        check = self._order["check"]
        if not check:
            return True
        self._say(state="checking")
        told = Output(None, 0)
        limit = process.boottime() + check["timeout_s"]
        self._start(check["command"], told)
        while self._main and not self._is_stopping and process.boottime() < limit:
            self._round(told, limit)
        in_time, was_stopped = not self._main, self._is_stopping
        self._kill_at = process.boottime()
        self._clear_away(told)
        if was_stopped:
            return False
        self._kill_at = None
        if in_time and self._code == 0:
            return True
        how = f"status {self._code}" if in_time else f"no answer in {check['timeout_s']} s"
        evidence = told.tail[-EVIDENCE_BYTES:].decode(errors="replace").strip()
        self._say(state="failed_check", evidence=f"{how}: {evidence}" if evidence else how)
        return False

    def _run_program(self, output: Output) -> None:
        command = self._order["command"]
        if command:
            self._start(command, output)
        self._say(state="running", started_at=int(time.time()))
        while self._main if command else not self._is_stopping:
            self._round(output, warns=True)
        if command:
            self._say(state="exited", code=self._code)

    def _start(self, command: list[str], output: Output) -> None:
        """Start a program; one that cannot be is one that ended at once, as in a shell."""
        self._code = None
        order = self._order
        try:
            self._main, self._pipe = program.start(
                command, order["environment"], order["directory"], self._umask
            )
        except OSError as error:
            output.take(f"dws: cannot run {error.filename}: {error.strerror}\n".encode())
            self._code = program.NOT_FOUND if error.errno == errno.ENOENT else program.CANNOT_RUN

    def _clear_away(self, output: Output) -> None:
        """End what is left of a program until nothing is."""
        while self._reap():
            if not self._is_stopping:
                self._stop(float(self._order["grace_s"]), "")
            self._round(output)
        self._drain(output)

    # --- one round ----------------------------------------------------------------------------

    def _round(self, output: Output, until: float | None = None, *, warns: bool = False) -> None:
        """Do what is due, wait for the next thing, take what is there."""
        now = process.boottime()
        if now >= self._look_at:
            self._look(now)
        self._obey_the_clock(now, warns=warns)
        due = [self._look_at, self._next_on_the_clock(warns=warns), *([] if until is None else [until])]
        sources = [self._bell, self._woken, *([self._pipe] if self._pipe >= 0 else [])]
        ready, _, _ = select.select(sources, [], [], max(0.0, min(due) - now))
        if self._bell in ready or self._woken in ready:
            for source in (self._bell, self._woken):
                _empty(source)
            self._look(process.boottime())
        if self._pipe in ready and not output.take_from(self._pipe):
            self._close_pipe()
        self._reap()

    def _look(self, now: float) -> None:
        """Read what the backend asks for."""
        self._look_at = now + LOOK_AGAIN_S
        deadline = self._record.read(DEADLINE)
        if deadline is not None:
            self._deadline = float(deadline["boottime"])
        stop = self._record.read(STOP)
        if stop is not None:
            self._stop(0.0 if stop["hard"] else float(stop["grace_s"]), "request")
        elif self._asked_by_signal:
            self._stop(float(self._order["grace_s"]), "signal")

    def _obey_the_clock(self, now: float, *, warns: bool) -> None:
        if now >= self._deadline and not self._is_stopping:
            self._stop(float(self._order["grace_s"]), "deadline")
        elif warns and self._warning_at is not None and now >= self._warning_at:
            self._warned_of = self._deadline
            self._signal(signal.SIGTERM)
        if self._kill_at is not None and now >= self._kill_at:
            self._signal(signal.SIGKILL)
            self._kill_at = now + KILL_AGAIN_S

    def _next_on_the_clock(self, *, warns: bool) -> float:
        if self._kill_at is not None:
            return self._kill_at
        warning = self._warning_at if warns else None
        return self._deadline if warning is None else warning

    @property
    def _warning_at(self) -> float | None:
        """When the early signal for the present deadline is sent, None when it was or never is."""
        before_s = float(self._order["signal_before_s"])
        if not before_s or self._is_stopping or self._warned_of == self._deadline:
            return None
        return self._deadline - before_s

    @property
    def _is_stopping(self) -> bool:
        return self._kill_at is not None

    def _stop(self, grace_s: float, why: str) -> None:
        """Soft now, hard after the grace; asked again, only ever sooner."""
        kill_at = process.boottime() + grace_s
        if self._kill_at is None:
            self._kill_at = kill_at
            if not self._status["ended_by"]:
                self._say(ended_by=why)
            if grace_s > 0:
                self._signal(signal.SIGTERM)
        self._kill_at = min(self._kill_at, kill_at)

    def _signal(self, number: signal.Signals) -> None:
        process.send(process.descendants(os.getpid()), number)

    def _reap(self) -> bool:
        """Take note of who ended; False when nothing is left below this process."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._main:
                self._main, self._code = 0, program.exit_code(status)

    def _drain(self, output: Output) -> None:
        """Take what is still in the pipe; whoever holds its other end now is none of ours."""
        while self._pipe >= 0:
            there, _, _ = select.select([self._pipe], [], [], 0)
            if not there or not output.take_from(self._pipe):
                self._close_pipe()

    def _close_pipe(self) -> None:
        os.close(self._pipe)
        self._pipe = -1

    def _say(self, **what: object) -> None:
        self._status |= what
        self._record.set_status(self._status)


def _empty(source: int) -> None:
    try:
        while os.read(source, 4096):
            pass
    except BlockingIOError:
        return


def _kill_everything() -> None:
    """Last act of a supervisor in trouble: leave nothing running that nobody looks after."""
    for _ in range(HARD_STOP_ROUNDS):
        process.send(process.descendants(os.getpid()), signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(KILL_AGAIN_S)


def main(directory: str) -> None:
    """Look after the instance of a directory, unless somebody does or did already."""
    umask = os.umask(0o077)
    record = Record.at(Path(directory))
    me = process.look(os.getpid())
    assert me is not None, "/proc does not show this process"
    if not record.claim({"pid": me.pid, "started": me.started, "boot_id": process.boot_id()}):
        return
    order = record.read(ORDER)
    assert order is not None, f"{record.path / ORDER} cannot be read"
    program.adopt_orphans()
    supervisor = Supervisor(record, order, umask)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, supervisor.asked_by_signal)
    for ignored in (signal.SIGHUP, signal.SIGINT):
        signal.signal(ignored, signal.SIG_IGN)
    try:
        supervisor.run()
    except BaseException:
        _kill_everything()
        raise


if __name__ == "__main__":
    main(sys.argv[1])
