"""The threads in which handlers run: the engine is synchronous and may wait, the event loop may not.

Bounded twice: so many run, so many more wait for a thread, and who comes then is told to try later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

from dws.model.errors import Unavailable

P = ParamSpec("P")
T = TypeVar("T")
THREADS: Final = 64
"""As many as the committer takes into one transaction."""
IN_HAND_MAX: Final = 2_048


class Workers:
    """Runs blocking calls for the event loop."""

    def __init__(self, threads: int = THREADS, in_hand_max: int = IN_HAND_MAX) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="dws-api")
        self._in_hand_max = in_hand_max
        self._in_hand = 0

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `work` in a thread. Raises what it raises, and Unavailable when too many calls wait."""
        if self._in_hand >= self._in_hand_max:
            raise Unavailable(
                f"{self._in_hand} calls are in hand already; try again in a moment", reason="overloaded"
            )
        self._in_hand += 1
        try:
            loop = asyncio.get_running_loop()
            if kwargs:
                return await loop.run_in_executor(self._pool, lambda: work(*args, **kwargs))
            return await loop.run_in_executor(self._pool, work, *args)
        finally:
            self._in_hand -= 1

    def close(self) -> None:
        """Let running calls end and start no more."""
        self._pool.shutdown(wait=True, cancel_futures=True)
