"""The store in a SQL database: everything that must survive a crash.

    begin ─▶ one writer at a time, committed to the disk when the block ends
    read  ─▶ its own connection, one commit's view, never waiting for the writer

One process at a time uses a SQLite file; a lock file beside it sees to that.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dws.engine.ports import Reader, Transaction
from dws.model.errors import Unavailable
from dws.store import backup, dialect, migrate
from dws.store.lockfile import LockFile
from dws.store.reading import SqlReader
from dws.store.writing import SqlTransaction


class SqlStore:
    """A `Store` behind an SQLAlchemy URL, `sqlite:////path/to/dws.db`.

    An empty or absent database gets its tables. Raises FailedPrecondition when another process has the
    database, when it needs `dws migrate`, or when it is none of ours; Unavailable when it cannot be
    opened; InvalidArgument for a URL that is no store.
    """

    def __init__(self, url: str, *, busy_timeout_s: float = dialect.BUSY_TIMEOUT_S) -> None:
        parsed = dialect.parse(url)
        self._writing = threading.RLock()
        self._is_writing = False
        self._is_closed = False
        self._lock = LockFile(dialect.file_of(parsed))
        self._engine = dialect.connect(parsed, busy_timeout_s=busy_timeout_s)
        self._writer = self._engine.execution_options(**{dialect.WRITES: True})
        try:
            migrate.prepare(parsed)
            dialect.settle(self._engine)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def begin(self) -> Iterator[Transaction]:
        """Open a write transaction; other threads queue up for theirs."""
        with self._writing:
            self._refuse_if_closed()
            if self._is_writing:
                raise RuntimeError("a transaction is open in this thread already")
            self._is_writing = True
            try:
                with (
                    dialect.translated(),
                    self._writer.connect() as connection,
                    connection.begin(),
                ):
                    transaction = SqlTransaction(connection)
                    yield transaction
                    transaction.finish()
            finally:
                self._is_writing = False

    @contextmanager
    def read(self) -> Iterator[Reader]:
        """Open a consistent read view."""
        self._refuse_if_closed()
        with dialect.translated(), self._engine.connect() as connection, connection.begin():
            yield SqlReader(connection)

    def backup(self, path: str) -> None:
        """Write a consistent copy that only its owner can read. Raises InvalidArgument if `path` exists."""
        self._refuse_if_closed()
        backup.write(self._engine, path)

    def close(self) -> None:
        """Release everything, after the write under way; harmless twice."""
        with self._writing:
            self._is_closed = True
            self._engine.dispose()
            self._lock.release()

    def _refuse_if_closed(self) -> None:
        """Without the lock file the database may be another process's by now."""
        if self._is_closed:
            raise Unavailable("the store is closed")
