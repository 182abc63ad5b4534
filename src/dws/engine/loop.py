"""Production's loop: the same round the simulator makes, driven by threads and the real clock.

    committer   one thread: every write
    driver      carries out, fires timers, plans; sleeps until something is due or a hint comes
    observers   one thread a backend: a backend that hangs holds up nobody else
    callers     a bounded pool for backend calls

A thread that hits trouble says so and goes on a little later: nothing it does is lost, because what is due
stays due until it is done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from dws.engine.app import Engine
from dws.engine.executing import Job
from dws.engine.observing import Observer
from dws.engine.ports import HasTimers
from dws.planner import kernels

CALLERS: Final = 16
OBSERVE_EVERY_S: Final = 0.25
IDLE_WAIT_MAX_S: Final = 1.0
TROUBLE_WAIT_S: Final = 1.0


class CallerPool:
    """Carries jobs out in a bounded pool; a job that fails is due again when its lease is over."""

    def __init__(self, report: Callable[[str, BaseException], None]) -> None:
        self._pool = ThreadPoolExecutor(CALLERS, thread_name_prefix="dws-caller")
        self._report = report

    def run_all(self, work: Callable[[list[Job]], None], jobs: list[Job]) -> None:
        """Hand the jobs over, each on its own, and return at once."""
        for job in jobs:
            self._pool.submit(self._guarded, work, job)

    def _guarded(self, work: Callable[[list[Job]], None], job: Job) -> None:
        try:
            work([job])
        except Exception as error:
            self._report(f"{job.item.kind} of request {job.item.subject}", error)

    def stop(self) -> None:
        """Wait for the calls under way, and for those that are leased: nobody else would make them soon."""
        self._pool.shutdown(wait=True)


class Loop:
    """Starts and stops the threads around an engine on the real clock."""

    def __init__(
        self, engine: Engine, report: Callable[[str, BaseException], None], callers: CallerPool
    ) -> None:
        self._engine = engine
        self._report = report
        self._callers = callers
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Begin. What was due while nobody was there is done first."""
        self._engine.committer.start()
        self._engine.open()
        self._spawn("dws-driver", self._drive)
        for observer in self._engine.observers:
            self._spawn(f"dws-observer-{observer.backend.name}", lambda o=observer: self._observe(o))  # type: ignore[misc]

    def stop(self) -> None:
        """End every thread; whatever was answered is durable. Running programs go on, each to the end that
        its backend was told: so what is due by now is still carried out."""
        self._stopping.set()
        self._engine.wake.set()
        for thread in self._threads:
            thread.join(timeout=10)
        self._callers.stop()  # before the writer: what a backend answered is still written
        try:
            self._engine.executor.finish(self._engine.now())
        except Exception as error:
            self._report("last calls", error)
        self._engine.committer.stop()

    def _spawn(self, name: str, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _drive(self) -> None:
        engine = self._engine
        for _ in kernels.warming():
            if self._stopping.is_set():
                return
        while not self._stopping.is_set():
            engine.wake.clear()
            try:
                did = engine.work(engine.now())
            except Exception as error:
                self._report("driver", error)
                self._stopping.wait(TROUBLE_WAIT_S)
                continue
            if not did:
                engine.wake.wait(self._until_next_due())

    def _until_next_due(self) -> float:
        due = self._engine.next_due()
        if due is None:
            return IDLE_WAIT_MAX_S
        return min(IDLE_WAIT_MAX_S, max(0.02, due - self._engine.now()))

    def _observe(self, observer: Observer) -> None:
        while not self._stopping.is_set():
            try:
                if isinstance(observer.backend, HasTimers):
                    observer.backend.advance(self._engine.now())
                observer.observe()
            except Exception as error:
                self._report(f"observer {observer.backend.name}", error)
                self._stopping.wait(TROUBLE_WAIT_S)
            self._stopping.wait(OBSERVE_EVERY_S)
