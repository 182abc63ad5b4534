"""The one clock, and the one place that reads the machine's.

Domain time (what the planner, promises and due dates live in) is a `Clock`; process time (leases,
waits) is a `ProcessClock`. Only domain time can be virtual.
"""

from __future__ import annotations

import threading
import time


class SystemClock:
    """The wall clock at start plus the boot-time clock: a step of the wall clock is never followed
    backwards, so no run ends early or late because someone set the time."""

    is_virtual = False

    def __init__(self) -> None:
        self._wall = time.time()
        self._boot = time.clock_gettime(time.CLOCK_BOOTTIME)

    def now(self) -> int:
        """Seconds since the epoch."""
        return int(self._wall + time.clock_gettime(time.CLOCK_BOOTTIME) - self._boot)

    def wall_skew_s(self) -> int:
        """How far the wall clock has been stepped since the start, in seconds."""
        return round(time.time() - self._wall - time.clock_gettime(time.CLOCK_BOOTTIME) + self._boot)


class VirtualClock:
    """Time that moves only when told, and never back."""

    is_virtual = True

    def __init__(self, start: int) -> None:
        self._now = start
        self._lock = threading.Lock()

    def now(self) -> int:
        """Seconds since the epoch."""
        return self._now

    def jump_to(self, instant: int) -> None:
        """Make it `instant`. Raises ValueError when that lies in the past."""
        with self._lock:
            if instant < self._now:
                raise ValueError(f"time cannot go back from {self._now} to {instant}")
            self._now = instant


class MonotonicClock:
    """Process time: leases and waits."""

    def now(self) -> int:
        """Whole seconds of the monotonic clock."""
        return int(time.monotonic())


def stopwatch() -> float:
    """Fractional seconds of the monotonic clock, for measuring how long something took."""
    return time.perf_counter()
