"""A polite kill (SIGTERM) treated like Ctrl-C, so that whoever is told to stop cleans up either way."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts() -> Iterator[None]:
    """Within this block SIGTERM raises KeyboardInterrupt, as SIGINT does."""
    try:
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    except ValueError:  # not in the main thread: whoever embeds us handles signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
