"""The schema's history: in order it gives the schema, and nobody runs on another one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from dws.model.errors import FailedPrecondition, InvalidArgument
from dws.store import backup, migrate
from dws.store.schema import metadata
from dws.store.sql import SqlStore
from tests.contract.store.conftest import url_of
from tests.contract.store.samples import a_request

Open = Callable[..., SqlStore]


def _schema_of(path: Path) -> dict[str, str]:
    """Every table, index and trigger with its statement, but for spacing."""
    connection = sqlite3.connect(path)
    rows = connection.execute(
        "SELECT type || ' ' || name, sql FROM sqlite_master WHERE name NOT LIKE 'alembic%'"
        " AND tbl_name NOT LIKE 'alembic%'"
    ).fetchall()
    connection.close()
    return {name: " ".join((sql or "").split()) for name, sql in rows}


def test_migrations_in_order_equal_the_schema(tmp_path: Path) -> None:
    """A server that was upgraded would run on other tables than one that is new."""
    migrate.upgrade(url_of(tmp_path / "migrated.db"))
    engine = create_engine(url_of(tmp_path / "made.db"))
    metadata.create_all(engine)
    engine.dispose()
    migrated, made = _schema_of(tmp_path / "migrated.db"), _schema_of(tmp_path / "made.db")
    assert set(migrated) == set(made)
    for name, statement in made.items():
        assert migrated[name] == statement
    assert sum(name.startswith("trigger") for name in made) == 6


def test_an_upgrade_says_what_it_ran_and_runs_once(tmp_path: Path) -> None:
    """`dws migrate` would leave the operator guessing, or run a step twice."""
    url = url_of(tmp_path / "dws.db")
    assert migrate.current(url) is None
    known = migrate.pending(url)
    assert known[0] == "0001"
    assert not (tmp_path / "dws.db").exists()
    assert migrate.upgrade(url) == known
    assert migrate.current(url) == known[-1]
    assert migrate.pending(url) == migrate.upgrade(url) == []


def test_an_empty_database_is_made_ready(tmp_path: Path, sql: Open) -> None:
    """The first start would fail with a lecture."""
    (tmp_path / "dws.db").touch()
    store = sql()
    with store.begin() as tx:
        tx.put_request(a_request(1))
    assert migrate.pending(url_of(tmp_path / "dws.db")) == []


def _set_revision(path: Path, revision: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))
    connection.close()


def test_an_older_database_asks_for_a_migration(
    tmp_path: Path, sql: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new version would write into tables it does not know, without a backup made first."""
    sql().close()
    monkeypatch.setattr(migrate, "_known", lambda: ["0001", "0002"])
    with pytest.raises(FailedPrecondition, match=r"at revision 0001 .* needs 0002; .*dws migrate"):
        sql()
    monkeypatch.undo()
    sql()


def test_a_newer_database_is_refused(tmp_path: Path, sql: Open) -> None:
    """After a downgrade the old version would write what the new one cannot read."""
    store, url = sql(), url_of(tmp_path / "dws.db")
    store.backup(str(tmp_path / "copy.db"))
    store.close()
    for path in ("dws.db", "copy.db"):
        _set_revision(tmp_path / path, "9999")
    for attempt in (SqlStore, migrate.upgrade, migrate.pending):
        with pytest.raises(FailedPrecondition, match=r"9999.*newer"):
            attempt(url)
    with pytest.raises(FailedPrecondition, match=r"9999.*newer"):
        backup.restore(str(tmp_path / "copy.db"), url, overwrite=True)


def test_other_databases_have_no_migrations() -> None:
    """A typo in a URL would end in a stack trace."""
    for ask in (migrate.upgrade, migrate.current, migrate.pending):
        with pytest.raises(InvalidArgument):
            ask("postgresql://host/db")
