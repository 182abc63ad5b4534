"""Time-ordered 63-bit ids.

An id is the second it was made in, shifted, plus a counter: larger than every earlier one, also after
a restart, when the source is told the largest id the store knows. Deterministic: no randomness.
"""

from __future__ import annotations

import threading

_COUNTER_BITS = 22


class Ids:
    """One source of ids for requests, bookings and operations."""

    def __init__(self, last: int = 0) -> None:
        self._last = last
        self._lock = threading.Lock()

    def next(self, now: int) -> int:
        """A new id, larger than any returned before and than `last`."""
        with self._lock:
            self._last = max(self._last + 1, now << _COUNTER_BITS)
            return self._last
