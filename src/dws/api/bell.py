"""The bell: wakes every follower of the event log when something was committed.

One thread waits for the engine on behalf of all followers, so that a thousand open streams cost a
thousand small objects and not a thousand threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Final

from dws.engine.app import Engine

LISTEN_S: Final = 0.5


class Bell:
    """Rings for new events; closed, it lets every follower go."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        self._thread: threading.Thread | None = None
        self.closing = False

    async def wait(self, after: int, timeout_s: float) -> bool:
        """True as soon as there is an event behind `after` or the bell closes; False after `timeout_s`."""
        mine = (asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            self._waiting.append(mine)
            if self._thread is None and not self.closing:
                self._thread = threading.Thread(target=self._listen, name="dws-bell", daemon=True)
                self._thread.start()
        try:
            if self.closing or self._engine.last_seq() > after:
                return True
            async with asyncio.timeout(timeout_s):
                await mine[1].wait()
            return True
        except TimeoutError:
            return False
        finally:
            with self._lock, contextlib.suppress(ValueError):
                self._waiting.remove(mine)

    def close(self) -> None:
        """Let every follower go, now and from now on."""
        self.closing = True
        self._ring()

    def _listen(self) -> None:
        seen = 0
        while not self.closing:
            if self._engine.wait_for_events(seen, LISTEN_S):
                seen = self._engine.last_seq()
                self._ring()

    def _ring(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for loop, event in waiting:
            with contextlib.suppress(RuntimeError):  # its loop is closed: nobody listens there any more
                loop.call_soon_threadsafe(event.set)
