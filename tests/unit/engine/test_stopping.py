"""The one writer when the server stops: what was queued is written, and nobody waits for what will not be."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from dws.engine.app import Engine
from dws.engine.clock import VirtualClock
from dws.engine.write import Write
from dws.model.errors import Unavailable
from dws.store.memory import MemoryStore


def test_who_comes_while_the_writer_stops_is_told_so_at_once() -> None:
    """A server that is told to stop would go on for a minute, waiting for a call that nobody will answer."""
    committer = Engine(store=MemoryStore(), backends={}, clock=VirtualClock(1_000)).committer
    committer.start()
    begun, go_on = threading.Event(), threading.Event()

    def slow(w: Write) -> int:
        begun.set()
        go_on.wait(10)
        return w.now

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(committer.write, slow, actor="first")
        assert begun.wait(10)
        stopped = pool.submit(committer.stop)
        while committer._queue.empty():  # the word to stop
            pass
        late = pool.submit(committer.write, lambda w: w.now, actor="late")
        while committer._queue.qsize() < 2:
            pass
        go_on.set()
        assert first.result(10) == 1_000
        stopped.result(10)
        with pytest.raises(Unavailable, match="is stopping"):
            late.result(10)
