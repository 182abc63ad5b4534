"""The schema's history: in order it gives the schema, and nobody runs on another one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import create_engine, make_url

from dws.model.errors import DoubleBooking, FailedPrecondition, InvalidArgument
from dws.store import backup, dialect, migrate
from dws.store.schema import metadata
from dws.store.sql import SqlStore
from tests.contract.store.conftest import url_of
from tests.contract.store.samples import a_booking, a_request, a_reservation, a_series, a_usage

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


# What a database of the first schema has: rows that knew of no reservation, as that version wrote them.
BEFORE_RESERVATIONS = (
    """INSERT INTO request VALUES (1, 'vision', 'run-1', 'user:ada', 'PENDING', 0, 0, '', 1000, 0, 0, 1, '{}',
    '{"id":1,"name":"run-1","project":"vision","principal":"user:ada","demand":{"alternatives":[{"count":2,
    "duration_s":3600,"shape":"a3-highgpu-8g"}],"not_before":1000,"not_after":9000},"state":"PENDING",
    "submitted_at":1000}')""",
    """INSERT INTO booking VALUES (2, 0, 'h100', 'LIVE', 'REQUEST', 1, 0, 100, 1,
    '{"id":2,"pool":"h100","span":{"start":0,"end":100},"stage":"LIVE","owner_kind":"REQUEST","owner":1,
    "parts":[{"cell":0,"count":2,"units":[0,1],"since":0}],"parent":0,"version":1}')""",
    "INSERT INTO booking_part VALUES (2, 0, 0, 'h100', 0, 100), (2, 1, 0, 'h100', 0, 100)",
    "INSERT INTO booking_count VALUES (2, 0, 'h100', 0, 100, 2)",
    """INSERT INTO event VALUES (1, 'REQUEST', 1, 1, 1000, 'CancelRequested', 'user:ada', 'vision', 'run-1',
    '', '', '{}')""",
    """INSERT INTO usage VALUES (7, 1, 'run-1', 'vision', 'user:ada', 'h100', 'a3-highgpu-8g', 'h100', 8, 0,
    10, 20, 2500000, 'RUN'), (9, 1, 'run-1', 'vision', 'user:ada', 'h100', 'a3-highgpu-8g', 'h100', 8, 1,
    10, 30, 2500000, 'FAILED_ATTEMPT')""",
    "INSERT INTO counter VALUES ('event', 1), ('ledger', 4)",
)


# What one of the second schema has besides: a reservation, as that version wrote it.
BEFORE_SERIES = (
    """INSERT INTO reservation VALUES (5, 'vision', 'block-5', 'APPROVED', 0, 'h100', 1000, 2000, 'nights', 500,
    0, 1, '{"id":5,"name":"block-5","project":"vision","principal":"user:ada","state":"APPROVED","window":
    {"start":1000,"end":2000},"pool":"h100","zone":"eu-west4-a","shape":"a3-highgpu-8g","count":4,
    "created_at":500,"series":"nights"}')""",
    """INSERT INTO event VALUES (1, 'RESERVATION', 5, 1, 1000, 'ReservationLocked', 'system', 'vision',
    'block-5', '', '', '{}')""",
    """INSERT INTO usage VALUES (7, 5, 'block-5', 'vision', 'user:ada', 'h100', 'a3-highgpu-8g', 'h100', 8, 0,
    10, 20, 2500000, 'RESERVED', 5)""",
    "INSERT INTO counter VALUES ('event', 1), ('ledger', 4)",
)


def _make_old(path: Path, revision: str, statements: Iterable[str]) -> None:
    """A database of an older schema, with rows."""
    engine = dialect.connect(make_url(url_of(path)))
    with engine.begin() as own:
        config = migrate._config()
        config.attributes["connection"] = own
        command.upgrade(config, revision)
        dialect.mark(own)
    engine.dispose()
    connection = sqlite3.connect(path)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def test_a_database_from_before_reservations_keeps_what_it_has(tmp_path: Path, sql: Open) -> None:
    """An upgrade would lose what was promised, what happened, or what is to be paid."""
    path = tmp_path / "dws.db"
    _make_old(path, "0001", BEFORE_RESERVATIONS)
    with pytest.raises(FailedPrecondition, match=r"at revision 0001 .*dws migrate"):
        sql()
    assert migrate.upgrade(url_of(path))[0] == "0002"
    migrate.upgrade(url_of(tmp_path / "new.db"))
    assert _schema_of(path) == _schema_of(tmp_path / "new.db")
    store = sql()
    with store.begin() as tx:
        request, booking = tx.request(1), tx.booking(2)
        assert request is not None
        assert (request.name, request.demand.alternatives[0].count) == ("run-1", 2)
        assert booking == a_booking(2, (0, 1), owner=1)
        with pytest.raises(DoubleBooking):
            tx.put_booking(a_booking(3, (1,)))
        assert tx.peak("h100", 0, 0, 100) == 2
        assert [(e.seq, e.kind) for e in tx.events()] == [(1, "CancelRequested")]
        assert tx.ledger_version() == 4
        tx.put_usage([a_usage(1, (20, 40), reservation=5)])
        used = tx.usage(start=0, end=100)
        assert [(u.rank, u.end, u.kind.value, u.reservation) for u in used] == [
            (0, 20, "RUN", 0),
            (1, 30, "FAILED_ATTEMPT", 0),
            (3, 40, "FAILED_ATTEMPT", 5),
        ]
        tx.put_reservation(a_reservation(6))
        assert tx.largest_id() == 6


def test_a_database_from_before_series_keeps_what_it_has(tmp_path: Path, sql: Open) -> None:
    """An upgrade would lose what was reserved and what is to be paid for it."""
    path = tmp_path / "dws.db"
    _make_old(path, "0002", BEFORE_SERIES)
    with pytest.raises(FailedPrecondition, match=r"at revision 0002 .*dws migrate"):
        sql()
    assert migrate.upgrade(url_of(path))[0] == "0003"
    migrate.upgrade(url_of(tmp_path / "new.db"))
    assert _schema_of(path) == _schema_of(tmp_path / "new.db")
    with sql().begin() as tx:
        assert tx.reservation(5) == a_reservation(5, series="nights")
        assert [(e.subject, e.kind) for e in tx.events()] == [(5, "ReservationLocked")]
        assert [u.reservation for u in tx.usage(start=0, end=100)] == [5]
        assert (tx.all_series(), tx.ledger_version()) == ([], 4)
        tx.put_series(a_series(6))
        assert tx.largest_id() == 6


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
    known = migrate._known()
    monkeypatch.setattr(migrate, "_known", lambda: [*known, "9000"])
    with pytest.raises(FailedPrecondition, match=rf"at revision {known[-1]} .* needs 9000; .*dws migrate"):
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
