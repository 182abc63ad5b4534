"""A store that fails on cue: busy, or the process dies before, within or after a commit.

It wraps any store. The cue is for the next write that begins; afterwards all is well again, so a restart
can succeed. A crash leaves through every `except Exception`, as a real one would.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum

from dws.engine.ports import Reader, Store, Transaction
from dws.model.errors import Unavailable


class Mood(StrEnum):
    """What happens to a write: nothing, the store is busy, or the process dies somewhere around it."""

    FINE = "fine"
    BUSY = "busy"
    DIES_BEFORE = "dies before it"
    DIES_WITHIN = "dies within it"
    DIES_AFTER = "dies after it"


class SimulatedCrash(BaseException):
    """The process is gone."""


class FrailStore:
    """The store, until the cue comes: `cue(mood, writes)` makes the write after so many others suffer."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self._mood = Mood.FINE
        self._writes_left = 0

    def cue(self, mood: Mood, writes: int) -> None:
        """Let the write behind the next `writes` ones suffer."""
        self._mood, self._writes_left = mood, writes

    def heal(self) -> None:
        """Forget the cue."""
        self._mood = Mood.FINE

    def _take_mood(self) -> Mood:
        if self._mood is Mood.FINE:
            return Mood.FINE
        if self._writes_left > 0:
            self._writes_left -= 1
            return Mood.FINE
        mood, self._mood = self._mood, Mood.FINE
        return mood

    @contextmanager
    def begin(self) -> Iterator[Transaction]:
        """Open a write transaction, if the mood allows."""
        mood = self._take_mood()
        if mood is Mood.BUSY:
            raise Unavailable("the store is busy (simulated)")
        if mood is Mood.DIES_BEFORE:
            raise SimulatedCrash
        with self.inner.begin() as tx:
            yield tx
            if mood is Mood.DIES_WITHIN:
                raise SimulatedCrash
        if mood is Mood.DIES_AFTER:
            raise SimulatedCrash

    def read(self) -> AbstractContextManager[Reader]:
        """Open a read view."""
        return self.inner.read()

    def backup(self, path: str) -> None:
        """Write a copy."""
        self.inner.backup(path)

    def close(self) -> None:
        """Release everything."""
        self.inner.close()
