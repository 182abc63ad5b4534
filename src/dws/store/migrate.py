"""The database's schema and its history: which migrations there are, and bringing a database up to date.

Migrations live in the package and need no configuration file. All that are pending run in one
transaction: a database is at one revision or at another, never between.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, inspect

from dws.model.errors import FailedPrecondition
from dws.store import dialect
from dws.store.lockfile import LockFile


def upgrade(url: str) -> list[str]:
    """Run what is pending, making the database if it is not there; returns the revisions run, in order.

    Raises FailedPrecondition when a server has the database, or when it is none of ours or of a newer
    version.
    """
    parsed = dialect.parse(url)
    lock = LockFile(dialect.file_of(parsed))
    try:
        return _upgrade(parsed)
    finally:
        lock.release()


def current(url: str) -> str | None:
    """The revision the database is at, None for an empty or absent one."""
    parsed = dialect.parse(url)
    if not dialect.file_of(parsed).exists():
        return None
    return _current(parsed)


def pending(url: str) -> list[str]:
    """The revisions that `upgrade` would run, in order."""
    return _after(current(url))


def prepare(url: URL) -> None:
    """Make the tables of an empty database; refuse one that is not up to date. Needs the lock."""
    revision = _current(url)
    if revision is None:
        _upgrade(url)
    elif behind := _after(revision):
        raise FailedPrecondition(
            f"{dialect.file_of(url)} is at revision {revision} and this version needs {behind[-1]}; "
            "make a backup and run 'dws migrate'"
        )


def _upgrade(url: URL) -> list[str]:
    dialect.create_private(dialect.file_of(url))
    engine = dialect.connect(url)
    try:
        with dialect.translated(), engine.execution_options(**{dialect.WRITES: True}).begin() as own:
            revisions = _after(_revision_of(own))
            config = _config()
            config.attributes["connection"] = own
            command.upgrade(config, "head")
            dialect.mark(own)
            return revisions
    finally:
        engine.dispose()


def _current(url: URL) -> str | None:
    dialect.create_private(dialect.file_of(url))
    engine = dialect.connect(url)
    try:
        with dialect.translated(), engine.begin() as connection:
            return _revision_of(connection)
    finally:
        engine.dispose()


def _revision_of(connection: Connection) -> str | None:
    """The revision of a database, None when it is empty. Raises FailedPrecondition for a stranger's."""
    revision = MigrationContext.configure(connection).get_current_revision()
    if revision is None and inspect(connection).get_table_names():
        raise FailedPrecondition("the database has tables, but not those of OpenDWS; give another file")
    return revision


def _after(revision: str | None) -> list[str]:
    known = _known()
    if revision is None:
        return known
    if revision not in known:
        raise FailedPrecondition(
            f"the database is at revision {revision}, which this version does not know: it was "
            "written by a newer one; use that, or restore a backup"
        )
    return known[known.index(revision) + 1 :]


def _known() -> list[str]:
    """Every revision there is, the first one first."""
    scripts = ScriptDirectory.from_config(_config())
    return [script.revision for script in scripts.walk_revisions()][::-1]


def _config() -> Config:
    config = Config()
    folder = Path(__file__).parent / "migrations"
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
