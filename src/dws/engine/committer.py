"""The one writer.

Commands from every door are put into one queue; a single thread takes up to `BATCH_MAX` of them into
one transaction, each in a savepoint of its own, and answers after the commit. Without the thread
(virtual time, simulation) a command is a transaction by itself, in the caller's thread.

    door ─┐                        ┌─ reply
    door ─┼─▶ queue ─▶ [begin · unit · unit · … · commit] ─┼─ reply
    tick ─┘                        └─ reply, after the commit
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from dws.engine.books import Books
from dws.engine.ports import Clock, Hints, IdSource, Store, Transaction
from dws.engine.write import Write
from dws.model.errors import DwsError, Unavailable
from dws.model.events import Event
from dws.planner.options import PolicyOptions

T = TypeVar("T")
BATCH_MAX: Final = 64
UNIT_WAIT_MAX_S: Final = 60


@dataclass(slots=True)
class _Unit:
    work: Callable[[Write], Any]
    actor: str
    call_id: str
    answer: Future[Any]


class Committer:
    """Runs units of writing, one transaction at a time."""

    def __init__(
        self,
        *,
        store: Store,
        books: Books,
        clock: Clock,
        ids: IdSource,
        policy: PolicyOptions,
        hints: Hints,
        on_events: Callable[[list[Event]], None],
    ) -> None:
        self._store = store
        self._books = books
        self._clock = clock
        self._ids = ids
        self._policy = policy
        self._hints = hints
        self._on_events = on_events
        self._queue: queue.SimpleQueue[_Unit | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._alone = threading.RLock()
        self._in_doubt = False

    def write(self, work: Callable[[Write], T], *, actor: str, call_id: str = "") -> T:
        """Run one unit and return its answer, after it is durable.

        Raises what the unit raised, with nothing written; Unavailable when the store cannot take it
        now, also with nothing written.
        """
        if self._thread is None:
            with self._alone:
                return self._commit_alone(work, actor, call_id)
        unit = _Unit(work, actor, call_id, Future())
        self._queue.put(unit)
        return unit.answer.result(UNIT_WAIT_MAX_S)  # type: ignore[no-any-return]

    def start(self) -> None:
        """Give the writer a thread of its own."""
        self._thread = threading.Thread(target=self._run, name="dws-committer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Commit what is queued, then end the thread; who comes meanwhile is told so at once."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None
            while not self._queue.empty():
                unit = self._queue.get()
                if unit is not None:
                    unit.answer.set_exception(Unavailable("the server is stopping; repeat the call"))

    def _run(self) -> None:
        while True:
            first = self._queue.get()
            if first is None:
                return
            batch = [first]
            stopping = False
            while len(batch) < BATCH_MAX and not self._queue.empty():
                unit = self._queue.get()
                if unit is None:
                    stopping = True
                    break
                batch.append(unit)
            if len(batch) == 1:
                self._serve_alone(first)
            else:
                self._commit(batch)
            if stopping:
                return

    def _serve_alone(self, unit: _Unit) -> None:
        try:
            answer = self._commit_alone(unit.work, unit.actor, unit.call_id)
        except BaseException as error:
            unit.answer.set_exception(error)
            if not isinstance(error, Exception):
                raise
        else:
            unit.answer.set_result(answer)

    def _commit_alone(self, work: Callable[[Write], T], actor: str, call_id: str) -> T:
        """One transaction for one unit, in this thread: nothing to hand over, no part to undo alone."""
        with self._books.lock:
            mark = self._books.mark()
            try:
                self._believe()
                with self._store.begin() as tx:
                    write = self._open(tx, self._clock.now(), actor, call_id)
                    answer = work(write)
                    write.seal()
            except BaseException as error:
                self._take_back(mark, error)
                raise
            self._books.committed()
        self._tell(write.events)
        return answer

    def _commit(self, batch: list[_Unit]) -> None:
        """One transaction for the batch. A unit that fails is undone alone; a transaction that fails
        takes all its units with it."""
        done: list[tuple[_Unit, Any]] = []
        failed: list[tuple[_Unit, BaseException]] = []
        told: list[Event] = []
        with self._books.lock:
            mark = self._books.mark()
            try:
                self._believe()
                with self._store.begin() as tx:
                    now = self._clock.now()
                    for unit in batch:
                        write = self._open(tx, now, unit.actor, unit.call_id)
                        try:
                            with write.part():
                                answer = unit.work(write)
                                write.seal()
                        except Unavailable:
                            raise
                        except Exception as error:
                            failed.append((unit, error))
                        else:
                            done.append((unit, answer))
                            told += write.events
            except BaseException as error:
                self._take_back(mark, error)
                for unit in batch:
                    unit.answer.set_exception(error)
                if not isinstance(error, Exception):
                    raise
                return
            self._books.committed()
        for unit, fault in failed:
            unit.answer.set_exception(fault)
        for unit, answer in done:
            unit.answer.set_result(answer)
        if done:
            self._tell(told)

    def _open(self, tx: Transaction, now: int, actor: str, call_id: str) -> Write:
        return Write(tx, self._books, self._policy, self._ids, now, actor, call_id)

    def _believe(self) -> None:
        """Read the books again after a commit that may or may not have happened: the store knows."""
        if self._in_doubt:
            with self._store.read() as reader:
                self._books.load(reader)
            self._in_doubt = False

    def _take_back(self, mark: int, error: BaseException) -> None:
        self._books.undo_to(mark)
        self._in_doubt = not isinstance(error, DwsError) or isinstance(error, Unavailable)

    def _tell(self, events: list[Event]) -> None:
        if events:
            self._on_events(events)
        self._hints.planning()
        self._hints.executing()
