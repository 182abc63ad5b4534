"""This machine under test: a local backend in a directory of its own, and every process it is guilty of."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dws.backends.local import process
from dws.backends.local.backend import LocalBackend
from dws.backends.local.record import Record
from dws.engine.ports import Backend
from dws.model.resources import MachineShape

PATIENCE_S = 30.0
NOW = 1_800_000_000


class LocalMachine:
    """A harness for the kit. Domain time stands still at `NOW` unless a test moves it, so that
    `runs_until = NOW + 1` is one second from now exactly."""

    def __init__(self, state_dir: Path, **settings: object) -> None:
        self.state_dir = state_dir
        self.settings: dict[str, object] = {"cpu_slots": 8, "accelerators": "h100:4", **settings}
        self.pool = "local-cpu"
        self.shape = MachineShape(name="local-cpu", vcpus=1)
        self.hosts = tuple(f"local-cpu-{i}" for i in range(8))
        self._made: list[LocalBackend] = []  # supervisors of all of them are children of this process
        self.backend = self.make()

    def make(self) -> LocalBackend:
        """A backend as a server that starts would make it."""
        self._made.append(LocalBackend(self.state_dir, self.now, **self.settings))  # type: ignore[arg-type]
        return self._made[-1]

    def answers_for(self, backends: Iterable[Backend]) -> None:
        """Others make backends in this process too; their supervisors are to be waited for as well."""
        self._made += [backend for backend in backends if isinstance(backend, LocalBackend)]

    def now(self) -> int:
        return NOW

    def restart(self) -> None:
        self.backend = self.make()

    def until(self, holds: Callable[[], bool]) -> bool:
        give_up = time.monotonic() + PATIENCE_S
        while not holds():
            if time.monotonic() > give_up:
                return False
            time.sleep(0.01)
        return True

    def directory(self, key: str = "101-1", rank: int = 0) -> Path:
        """Where an instance is kept."""
        return self.state_dir / "instances" / key / str(rank)

    def output(self, key: str = "101-1", rank: int = 0) -> str:
        """What an instance printed so far."""
        return self.backend.read_log(key, rank, offset=0, limit=10**7)[0].decode()

    def supervisors(self) -> dict[tuple[str, int], list[int]]:
        """Pids of the supervisors that run, by instance."""
        found: dict[tuple[str, int], list[int]] = {}
        for running in process.everyone().values():
            arguments = _arguments(running.pid)
            if not running.is_dead and "dws.backends.local.supervisor" in arguments:
                path = Path(arguments[-1])
                if path.is_relative_to(self.state_dir):
                    found.setdefault((path.parent.name, int(path.name)), []).append(running.pid)
        return found

    def programs(self) -> list[int]:
        """Pids of every process of any instance, whatever its session or parent."""
        below = str(self.state_dir / "instances")
        return [
            p.pid
            for p in process.everyone().values()
            if not p.is_dead and process.environment_value(p.pid, "DWS_INSTANCE").startswith(below)
        ]

    def existing(self) -> set[tuple[str, int]]:
        twice = {place: pids for place, pids in self.supervisors().items() if len(pids) > 1}
        assert not twice, f"several supervisors: {twice}"
        return {place for place in self.supervisors() if not self._is_leaving(place)}

    def _is_leaving(self, place: tuple[str, int]) -> bool:
        """A supervisor that said "gone" has nothing below it any more, whether or not its record is still
        kept; one that has not begun has said nothing yet."""
        directory = self.directory(*place)
        try:
            return '"gone"' in (directory / "status.json").read_text()
        except FileNotFoundError:
            return not directory.exists()

    def leftovers(self) -> list[int]:
        """Processes that a test left behind; they are ended here."""
        self.until(lambda: not self.supervisors() or bool(self.programs()))
        left = [*(pid for pids in self.supervisors().values() for pid in pids), *self.programs()]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        return left

    def zombies(self) -> list[int]:
        """Children of this very process that ended and were not waited for."""
        self.until(lambda: not self._zombies(look=True))
        return self._zombies()

    def _zombies(self, *, look: bool = False) -> list[int]:
        if look:
            for backend in self._made:
                backend.observe("")
        return [p.pid for p in process.everyone().values() if p.is_dead and p.parent == os.getpid()]

    def end_everything(self) -> None:
        """Release whatever runs, hard, by the backend itself."""
        for path in (self.state_dir / "instances").glob("*/[0-9]*"):
            Record.at(path).ask_to_stop(hard=True, grace_s=0)
        self.until(lambda: not self.supervisors())


def _arguments(pid: int) -> list[str]:
    try:
        return (process.PROC / str(pid) / "cmdline").read_bytes().decode().split("\0")[:-1]
    except OSError:
        return []


@contextmanager
def a_local_machine(state_dir: Path, **settings: object) -> Iterator[LocalMachine]:
    """A machine that must be found without a process of ours when the test is over."""
    machine = LocalMachine(state_dir, **settings)
    try:
        yield machine
    finally:
        machine.end_everything()
        left = machine.leftovers()
        zombies = machine.zombies()
    assert not left, f"processes were left: {left}"
    assert not zombies, f"nobody waited for: {zombies}"


def python(source: str) -> tuple[str, ...]:
    """A command that runs this."""
    return (sys.executable, "-c", source)
