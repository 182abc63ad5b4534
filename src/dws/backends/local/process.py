"""Processes of this machine, as /proc tells of them.

A process is its pid and its start time together: a pid alone is used again. Everything here is standard
library only and quick to import, because every supervisor does.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")


class Process(NamedTuple):
    """One process. `started` is in clock ticks since the machine started."""

    pid: int
    started: int
    parent: int
    session: int
    is_dead: bool

    @property
    def identity(self) -> tuple[int, int]:
        """What tells it from a later one with its pid."""
        return (self.pid, self.started)


def boottime() -> float:
    """Seconds since the machine started, time asleep included; no one can set this clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@cache
def boot_id() -> str:
    """Differs after every start of the machine."""
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def look(pid: int) -> Process | None:
    """The process that has this pid now, None when there is none."""
    try:
        stat = (PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    fields = stat[stat.rindex(b")") + 2 :].split()
    return Process(
        pid=pid,
        started=int(fields[19]),
        parent=int(fields[1]),
        session=int(fields[3]),
        is_dead=fields[0] in (b"Z", b"X"),
    )


def is_alive(identity: tuple[int, int]) -> bool:
    """True while that very process runs."""
    process = look(identity[0])
    return process is not None and process.started == identity[1] and not process.is_dead


def everyone() -> dict[int, Process]:
    """Every process, by pid."""
    found = (look(int(name)) for name in os.listdir(PROC) if name.isdecimal())  # noqa: PTH208  a third of the time
    return {p.pid: p for p in found if p is not None}


def descendants(pid: int, all_of_them: Mapping[int, Process] | None = None) -> list[Process]:
    """What a process started, directly or not, in no particular order."""
    children: dict[int, list[Process]] = {}
    for process in (everyone() if all_of_them is None else all_of_them).values():
        children.setdefault(process.parent, []).append(process)
    found = list(children.get(pid, ()))
    for process in found:  # grows while it is walked
        found += children.get(process.pid, ())
    return found


def bearers(name: str, value: str) -> list[Process]:
    """Living processes that began with an environment variable of that value, and what they started.
    Processes of other users keep their environment to themselves."""
    running = everyone()
    mark = f"{name}={value}".encode()
    found = {p.pid: p for p in running.values() if mark in _environment(p.pid)}
    for pid in list(found):
        found.update({p.pid: p for p in descendants(pid, running)})
    return [p for p in found.values() if not p.is_dead and p.pid != os.getpid()]


def _environment(pid: int) -> frozenset[bytes]:
    try:
        return frozenset((PROC / str(pid) / "environ").read_bytes().split(b"\0"))
    except OSError:
        return frozenset()


def environment_value(pid: int, name: str) -> str:
    """What a variable was when the process began; empty when unset or not for us to see."""
    prefix = f"{name}=".encode()
    return next((v[len(prefix) :].decode() for v in _environment(pid) if v.startswith(prefix)), "")


def send(processes: Iterable[Process], number: signal.Signals) -> None:
    """Signal these very processes; whoever has ended is passed over."""
    for process in processes:
        try:
            handle = os.pidfd_open(process.pid)
        except OSError:
            continue
        try:  # the handle holds on to whoever has the pid now; make sure it is the one meant
            now = look(process.pid)
            if now is not None and now.identity == process.identity:
                signal.pidfd_send_signal(handle, number)
        except OSError:
            continue
        finally:
            os.close(handle)
