"""Copies of the database, and putting one back.

A copy is taken from one commit while the server works on, is compact, and can be read by its owner
only. It is a database like any other: restoring is checking it and putting it in the place.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Engine

from dws.model.errors import AlreadyExists, InvalidArgument, Unavailable
from dws.store import dialect, migrate
from dws.store.lockfile import LockFile


def write(engine: Engine, path: str) -> None:
    """Copy the database to `path`, durably. Raises InvalidArgument when there is something already or
    no such folder; a copy that fails leaves nothing."""
    target = Path(path)
    try:
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, dialect.PRIVATE))
    except FileExistsError:
        raise InvalidArgument(f"path: {target} exists; give a new file", field="path") from None
    except OSError as error:
        raise InvalidArgument(f"path: cannot write {target}: {error.strerror}", field="path") from None
    try:
        with dialect.translated():
            connection = engine.raw_connection()
            try:
                connection.cursor().execute("VACUUM INTO ?", (str(target),))
            finally:
                connection.close()
        _make_durable(target)
    except BaseException:
        target.unlink()
        raise


def restore(backup: str, url: str, *, overwrite: bool = False) -> None:
    """Make the database at `url` what the backup is.

    Raises InvalidArgument when the backup is not a sound database of ours, FailedPrecondition when it is
    of a newer version or a server has the database, AlreadyExists when there is a database and
    `overwrite` is not set.
    """
    source, target = Path(backup), dialect.file_of(dialect.parse(url))
    _check(source)
    migrate.pending(f"sqlite:///{source.absolute()}")
    lock = LockFile(target)
    try:
        if target.exists() and target.stat().st_size and not overwrite:
            raise AlreadyExists(f"{target} exists; restore over it with --overwrite, if you mean to lose it")
        _replace(source, target)
    finally:
        lock.release()


def _check(source: Path) -> None:
    if not source.is_file():
        raise InvalidArgument(f"backup: there is no file {source}", field="backup")
    connection = _open(source)
    try:
        (mark,) = connection.execute("PRAGMA application_id").fetchone()
        (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        mark, verdict = 0, str(error)
    finally:
        connection.close()
    if mark != dialect.APPLICATION_ID or verdict != "ok":
        raise InvalidArgument(f"backup: {source} is not a sound OpenDWS database ({verdict})", field="backup")


def _open(source: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(source.absolute()))}?mode=ro", uri=True)


def _replace(source: Path, target: Path) -> None:
    fresh = target.with_name(target.name + ".restoring")
    try:
        fresh.unlink(missing_ok=True)
        dialect.create_private(fresh)
        connection = _open(source)
        try:
            connection.execute("VACUUM INTO ?", (str(fresh),))
        finally:
            connection.close()
        _make_durable(fresh)
        for suffix in ("-wal", "-shm"):
            target.with_name(target.name + suffix).unlink(missing_ok=True)
        fresh.replace(target)
    except (OSError, sqlite3.Error) as error:
        fresh.unlink(missing_ok=True)
        raise Unavailable(f"cannot restore to {target}: {error}") from None


def _make_durable(path: Path) -> None:
    for place, flags in ((path, os.O_RDWR), (path.parent, os.O_RDONLY | os.O_DIRECTORY)):
        descriptor = os.open(place, flags)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
