"""What differs from database to database: connecting, locking, a few phrases, and what errors mean.

SQLite only, for now. Another database gets its answers to the same questions here; the rest of the
store asks no dialect's name.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import (
    URL,
    ColumnElement,
    Connection,
    Engine,
    Executable,
    Table,
    create_engine,
    event,
    exists,
    func,
    make_url,
    select,
)
from sqlalchemy.dialects.sqlite import Insert, insert
from sqlalchemy.dialects.sqlite import dialect as sqlite_dialect
from sqlalchemy.exc import ArgumentError, DBAPIError

from dws.model.errors import DoubleBooking, FailedPrecondition, InvalidArgument, Unavailable
from dws.store import schema

APPLICATION_ID: Final = 0x44575331
"""What marks a SQLite file as ours ("DWS1")."""
BUSY_TIMEOUT_S: Final = 5.0
WRITES: Final = "dws_writes"
PRIVATE: Final = 0o600

_TRY_LATER: Final = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_NOMEM,
    }
)
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def parse(url: str) -> URL:
    """The URL of a store. Raises InvalidArgument for what is not a SQLite file."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        parsed = None
    is_file = (
        parsed is not None
        and parsed.get_backend_name() == "sqlite"
        and parsed.database not in (None, "", ":memory:")
        and parsed.query.get("mode") != "memory"
    )
    if parsed is None or not is_file:
        raise InvalidArgument(
            f"db: '{url}' is not a store; use 'sqlite:////path/to/dws.db' or 'memory:'", field="db"
        )
    return parsed


def file_of(url: URL) -> Path:
    """The database's file."""
    database = str(url.database)
    return Path(database.removeprefix("file:")).absolute()


def connect(url: URL, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> Engine:
    """An engine for the database, which need not exist. Touches nothing yet.

    Transactions begin when we say so, and at once for writing when the engine's option `WRITES` is set.
    A commit is on the disk when it returns (`synchronous=FULL`).
    """
    engine = create_engine(url, pool_size=8, max_overflow=-1)

    @event.listens_for(engine, "connect")
    def prepare(dbapi: sqlite3.Connection, _record: Any) -> None:
        dbapi.isolation_level = None
        for pragma in (
            f"busy_timeout = {int(busy_timeout_s * 1000)}",
            "synchronous = FULL",
            "foreign_keys = ON",
        ):
            dbapi.execute(f"PRAGMA {pragma}").close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(WRITES)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def settle(engine: Engine) -> None:
    """Have readers never wait for the writer, nor it for them (WAL). The file remembers it."""
    with translated():
        connection = engine.raw_connection()
        try:
            connection.cursor().execute("PRAGMA journal_mode = WAL")
        finally:
            connection.close()


def create_private(path: Path) -> None:
    """Make an empty file that only its owner can read, unless there is one. Raises Unavailable."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE))
    except FileExistsError:
        return
    except OSError as error:
        raise Unavailable(f"cannot make {path}: {error.strerror}") from None


def mark(connection: Connection) -> None:
    """Write into the database whose it is."""
    connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")


class Phrase:
    """A statement compiled once, for what is said thousands of times a second.

    SQLAlchemy's own way from a statement to a cursor costs ten times what SQLite needs to carry it out.
    A phrase goes straight to the driver: constants are bound already, the rest by name.
    """

    def __init__(self, statement: Executable, columns: Sequence[str] | None = None) -> None:
        """`columns` are those an insert gives, when not all."""
        compiled = statement.compile(  # type: ignore[attr-defined]
            dialect=sqlite_dialect(paramstyle="named"), column_keys=columns
        )
        self.text = str(compiled)
        self._constants = {name: v for name, v in compiled.params.items() if v is not None}

    def bound(self, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        """The parameters with the statement's constants."""
        return {**self._constants, **parameters} if self._constants else parameters


def upsert(table: Table) -> Insert:
    """Insert a row, or give the one of the same key these values."""
    statement = insert(table)
    keys = {column.name for column in table.primary_key}
    others = {c.name: statement.excluded[c.name] for c in table.columns if c.name not in keys}
    return statement.on_conflict_do_update(index_elements=list(table.primary_key), set_=others)


def has_label(key: str, value: str) -> ColumnElement[bool]:
    """The request's labels say `key` is `value`."""
    pair = func.json_each(schema.request.c.labels).table_valued("key", "value")
    return exists(select(1).select_from(pair).where(pair.c.key == key, pair.c.value == value))


@contextmanager
def translated() -> Iterator[None]:
    """Turn the database's errors into ours."""
    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:
        raise meaning(error) from error


def meaning(error: DBAPIError | sqlite3.Error) -> Exception:
    """Our error for one of the database's; the same error when it has no meaning for a caller."""
    own = error.orig if isinstance(error, DBAPIError) else error
    return (_meaning(own) if isinstance(own, sqlite3.Error) else None) or error


def _meaning(error: sqlite3.Error) -> Exception | None:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    said = str(error)
    if code in _TRY_LATER:
        return Unavailable(f"the store cannot take or give anything now: {said}; nothing was written")
    if code in _DAMAGED:
        return FailedPrecondition(f"the database cannot be used: {said}; restore a backup with 'dws restore'")
    if said in (schema.TWICE, schema.OUTSIDE):
        return DoubleBooking(said)
    return None
